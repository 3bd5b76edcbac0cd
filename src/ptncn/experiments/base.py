"""What every experiment is: runs of models on data, a record of each, and the cells of a table made from those."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ptncn.experiments.plan import Plan
from ptncn.experiments.runner import Outcome, execute, tidy
from ptncn.experiments.training import Training
from ptncn.experiments.workshop import Interrupted, Workshop
from ptncn.records import Record, RecordError, read_record

Cells = dict[str, dict[str, float | None]]
"""{metric: {column: value}} of one model; the column is "" where a metric has only one."""


def paper_cells(
    columns: tuple[str, ...], metrics: tuple[str, ...], *rows: tuple[Any, ...]
) -> dict[str, dict[str, dict[str, float]]]:
    """The paper's numbers by metric, model and column, from rows as it prints them: all metrics of a column in turn.

    >>> paper_cells(("left", "right"), ("ce", "se"), ("esn", 1.0, 2.0, 3.0, 4.0))["se"]
    {'esn': {'left': 2.0, 'right': 4.0}}
    """
    return {
        metric: {model: dict(zip(columns, values[place :: len(metrics)], strict=True)) for model, *values in rows}
        for place, metric in enumerate(metrics)
    }


@dataclass(frozen=True)
class Job:
    """One run, by names alone: any process can do it."""

    experiment: str
    scale: str
    model: str
    data: str
    seed: int
    configs: Path | None = None
    """The folder of tuned values."""

    def path(self, out: Path) -> Path:
        return out / self.experiment / f"{self.model}-{self.data.replace('/', '_')}-{self.seed}.json"

    def command(self) -> str:
        return (
            f"ptncn reproduce {self.experiment} --scale {self.scale} --models {self.model} --data {self.data} "
            f"--seeds {self.seed + 1}"
        )

    def __str__(self) -> str:
        return f"{self.experiment} {self.model} {self.data} seed {self.seed}"


@dataclass
class Findings:
    """What a run found, as its record has it."""

    metrics: dict[str, Any]
    learner: dict[str, Any] = field(default_factory=dict)
    datasets: dict[str, Any] = field(default_factory=dict)
    errors: dict[str, Any] = field(default_factory=dict)
    films: dict[str, Any] = field(default_factory=dict)
    curve: dict[str, Any] = field(default_factory=dict)
    seconds: float = 0.0
    peak_memory: int | None = None
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """A table or figure of the paper."""

    name: str
    about: str
    models: Mapping[str, tuple[str, ...]]
    """By data: whom the paper compares."""
    any_model: bool = True
    """Any learner of the registry may take part."""
    seeds: Mapping[str, int]
    """By scale: trials, if nobody says how many."""
    config: Callable[[Job], dict[str, Any]]
    """Every value that decides the numbers."""
    run: Callable[[Job, Workshop], Findings]
    cells: Callable[[Record], Cells]
    paper: Mapping[str, Mapping[str, Mapping[str, float]]]
    """The paper's cells: metric, model, column."""
    trainings: Callable[[Job], list[Training]] = lambda job: []
    """Networks that the run wants trained first; several runs may want the same."""
    small: bool = False
    """Its networks are so small that a second thread would only be in the way."""
    test: tuple[str, str] | None = None
    """The test and the metric of the errors by which models are compared sequence by sequence."""


def perform(experiment: Experiment, job: Job, workshop: Workshop, out: Path) -> Record:
    """Do a run and write its record; with `resume`, one that is finished is not done again."""
    path = job.path(out)
    config = json.loads(json.dumps(experiment.config(job), default=str))
    if workshop.resume and (known := _finished(path, config)) is not None:
        return known
    record = Record(
        experiment=job.experiment,
        model=job.model,
        data=job.data,
        scale=job.scale,
        seed=job.seed,
        config=config,
        command=job.command(),
        started=_now(),
    )
    record.write(path)
    try:
        for name, value in vars(experiment.run(job, workshop)).items():
            setattr(record, name, value)
        record.status = "finished"
    except (Interrupted, KeyboardInterrupt):
        raise
    except Exception as error:
        record.status = "failed"
        record.notes.append(f"{type(error).__name__}: {error}")
    record.finished = _now()
    record.write(path)
    return read_record(path)


def evaluate(plan: Plan, workshop: Workshop) -> Outcome:
    """Execute a plan whose outcome goes into a record at once, and leave no checkpoint behind."""
    outcome = execute(plan, workshop)
    tidy(plan, workshop)
    return outcome


def collect(outcome: Outcome, plan: Plan, *, metrics: dict[str, Any], shape: tuple[int, ...] = ()) -> Findings:
    """The findings of a plan: what the passes kept, and the metrics given here."""
    films = {}
    for name, result in outcome.results.items():
        if "film" in result:
            films[name] = {**result["film"], "observation_shape": list(shape)}
    return Findings(
        metrics=metrics,
        learner=outcome.learner.options(),
        datasets=plan.datasets,
        errors={name: result["errors"] for name, result in outcome.results.items() if "errors" in result},
        films=films,
        curve=outcome.curve if outcome.curve["steps"] else {},
        seconds=outcome.seconds,
        peak_memory=outcome.peak_memory,
    )


def _finished(path: Path, config: Mapping[str, Any]) -> Record | None:
    try:
        record = read_record(path)
    except RecordError:
        return None
    return record if record.status == "finished" and record.config == config else None


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
