"""Training one network on one dataset: what several tables share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from ptncn.experiments.models import options_for
from ptncn.experiments.plan import Pass, Plan
from ptncn.experiments.runner import Outcome, execute
from ptncn.experiments.setting import Setting
from ptncn.experiments.tasks import Task, open_task
from ptncn.experiments.workshop import Workshop
from ptncn.learners import make


@dataclass(frozen=True)
class Training:
    """All that decides what is learnt; equal trainings are made once and kept."""

    model: str
    data: str
    seed: int
    setting: Setting
    configs: Path | None = None
    """The folder of tuned values."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Options of the learner that go before all others."""

    @cached_property
    def task(self) -> Task:
        size = self.setting
        return open_task(
            self.data,
            embedded=size.embedded,
            canvas=size.canvas,
            sequences=size.sequences,
            valid=size.valid,
            test=size.test,
        )

    @cached_property
    def learner_options(self) -> dict[str, Any]:
        options, _ = options_for(self.model, self.task.kind, self.data, self.setting, self.seed, self.configs)
        return {**options, "output": self.task.output, **self.options}

    @property
    def tuned(self) -> str | None:
        return options_for(self.model, self.task.kind, self.data, self.setting, self.seed, self.configs)[1]

    @property
    def config(self) -> dict[str, Any]:
        return {
            "model": self.model,
            "data": self.data,
            "source": self.task.source,
            "seed": self.seed,
            "tuned": self.tuned,
            "setting": self.setting.values(),
            "options": self.learner_options,
        }

    def plan(self) -> Plan:
        return Plan(
            name=f"training/{self.model}/{self.data}/{self.seed}".replace("/", "-"),
            config=self.config,
            start=lambda: make(self.model, input_size=self.task.train.input_size, **self.learner_options),
            passes=tuple(one for epoch in range(self.setting.epochs) for one in self.epoch(epoch)),
            curve_metric="se" if self.task.kind == "video" else self.task.metrics[0],
            decay=self.setting.decay,
            keep=True,
        )

    def epoch(self, number: int) -> tuple[Pass, Pass]:
        """Learn from all, then look at the validation error."""
        size, task = self.setting, self.task
        return (
            Pass(
                name=f"train/{number}",
                data=task.train,
                metrics=task.metrics,
                batch_size=size.batch_size,
                learn=True,
                limit=size.sequences,
                shuffle_seed=self.seed,
                epoch=number,
            ),
            Pass(
                name=f"valid/{number}",
                data=task.valid,
                metrics=task.metrics,
                batch_size=max(size.batch_size, 20),
                limit=size.valid,
                select=True,
            ),
        )

    def make(self, workshop: Workshop) -> Outcome:
        """The trained network: as it was kept, or trained now."""
        return execute(self.plan(), workshop)
