"""Search the options of a learner for the smallest validation error; the test set is never looked at."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ptncn.experiments.plan import Pass
from ptncn.experiments.runner import execute, tidy
from ptncn.experiments.setting import Setting
from ptncn.experiments.training import Training
from ptncn.experiments.workshop import Interrupted, Workshop
from ptncn.files import write_atomically
from ptncn.learners import describe

LOOKS = 4
"""Validation errors in the course of a trial: one that lies behind most others at a look is given up."""


class GivenUp(Exception):  # noqa: N818 (nothing went wrong)
    """A trial is not worth going on with."""


@dataclass(frozen=True)
class Study:
    """What is searched, for whom, and where it is kept."""

    model: str
    data: str
    setting: Setting
    minutes: float
    trials: int | None
    storage: Path
    """An SQLite file; a study that is there already goes on."""
    seed: int = 0

    @property
    def name(self) -> str:
        return f"{self.model}-{self.data}"


def suggest(trial: Any, model: str) -> dict[str, Any]:
    """The options of one trial."""
    search = describe(model).search
    if search is None:
        raise ValueError(f"{model!r} has nothing to tune")
    return search(trial)


def first_points(model: str, kind: str, *, online: bool) -> list[dict[str, Any]]:
    """What is tried before the search sets in.

    >>> [round(point["lr"], 4) for point in first_points("rnn-bptt", "video", online=False)]
    [0.001, 0.0003, 0.003, 0.0001, 0.01]
    """
    entry = describe(model)
    return entry.first_points(entry.default_options(kind, online=online)) if entry.first_points else []


def tune(study: Study, workshop: Workshop, tell: Callable[[str], None]) -> dict[str, Any]:
    """Search until the time or the trials are used up, and return what was found, as a config holds it."""
    try:
        import optuna
    except ModuleNotFoundError as error:
        raise ValueError("tuning needs Optuna: pip install 'ptncn[tune]'") from error
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study.storage.parent.mkdir(parents=True, exist_ok=True)
    search = optuna.create_study(
        study_name=study.name,
        storage=f"sqlite:///{study.storage}",
        pruner=optuna.pruners.MedianPruner(n_startup_trials=4, n_warmup_steps=1),
        load_if_exists=True,
    )
    search.sampler = optuna.samplers.TPESampler(seed=study.seed + len(search.trials))  # not the same points again
    kind = Training(study.model, study.data, study.seed, study.setting).task.kind

    def objective(trial: Any) -> float:
        options = suggest(trial, study.model)
        trial.set_user_attr("options", options)

        def look(number: int, error: float) -> None:
            trial.report(error, number)
            if trial.should_prune():
                raise GivenUp

        try:
            error = attempt(study, options, f"tune/{study.name}/{trial.number}", workshop, look)
        except GivenUp:
            tell(f"trial {trial.number}: given up")
            raise optuna.TrialPruned from None
        except FloatingPointError:
            tell(f"trial {trial.number}: diverged")
            raise optuna.TrialPruned from None
        tell(f"trial {trial.number}: {error:.4g} with {json.dumps(options)}")
        return error

    stopped = False
    if not search.trials:
        for point in first_points(study.model, kind, online=study.setting.batch_size == 1):
            search.enqueue_trial(point, skip_if_exists=True)
    try:
        search.optimize(objective, n_trials=study.trials, timeout=study.minutes * 60)
    except (Interrupted, KeyboardInterrupt):
        stopped = True
    finished = [trial for trial in search.trials if trial.state == optuna.trial.TrialState.COMPLETE]
    if stopped or not finished:
        raise Interrupted(study.name)
    return summary(study, search, finished)


def attempt(
    study: Study, options: dict[str, Any], name: str, workshop: Workshop, look: Callable[[int, float], None]
) -> float:
    """Train once on the budget in `LOOKS` parts; the validation error after the last."""
    wanted = Training(study.model, study.data, study.seed, replace(study.setting, epochs=1), options=options)
    metric = wanted.task.metrics[0]
    passes: list[Pass] = []
    for number in range(LOOKS):
        learn, choose = wanted.epoch(number)
        passes += [replace(learn, limit=max(1, study.setting.sequences // LOOKS)), replace(choose, select=False)]

    def told(name: str, metrics: Mapping[str, float]) -> None:
        part, _, number = name.partition("/")
        if part == "valid":
            look(int(number), metrics[metric])

    plan = replace(wanted.plan(), name=name, passes=tuple(passes), keep=False, told=told)
    try:
        return execute(plan, workshop).metric(f"valid/{LOOKS - 1}", metric)
    finally:
        tidy(plan, workshop)


def summary(study: Study, search: Any, finished: list[Any]) -> dict[str, Any]:
    """The chosen options and how they were found."""
    best = search.best_trial
    over = [trial for trial in search.trials if trial.state.is_finished()]
    ranked = sorted(finished, key=lambda trial: trial.value)[:5]
    return {
        "model": study.model,
        "data": study.data,
        "source": Training(study.model, study.data, study.seed, study.setting).task.source,
        "options": best.user_attrs["options"],
        "validation": best.value,
        "study": {
            "trials": len(over),
            "finished": len(finished),
            "given_up": len(over) - len(finished),
            "best": [{"value": trial.value, "options": trial.user_attrs["options"]} for trial in ranked],
            "setting": study.setting.values(),
            "when": time.strftime("%Y-%m-%d"),
        },
    }


def write_config(found: dict[str, Any], folder: Path, name: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{found['model']}-{name}.json"
    write_atomically(path, (json.dumps(found, indent=1) + "\n").encode())
    return path
