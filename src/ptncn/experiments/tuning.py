"""Search the options of a learner for the smallest validation error. The test set is never used."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ptncn.experiments.phases import Phase, epoch_phases, training_run
from ptncn.experiments.run import ONLINE_NAME, Interrupted, RunContext, RunSpec
from ptncn.experiments.runner import execute, tidy
from ptncn.learners.registry import describe
from ptncn.system import write_atomically

CHECKS = 4
"""Validations during a trial; a trial that is worse than most others at one of them is pruned."""


class Pruned(Exception):  # noqa: N818 (not an error)
    """A trial is not worth continuing."""


@dataclass(frozen=True)
class Study:
    """A search and where its state is stored."""

    spec: RunSpec
    """The run of a trial, without the options that are searched."""
    minutes: float
    trials: int | None
    storage: Path
    """An SQLite file; an existing study is continued."""

    @property
    def name(self) -> str:
        return f"{self.spec.row}-{self.spec.data}"


def suggest(trial: Any, learner: str) -> dict[str, Any]:
    """Sample the options of one trial."""
    search = describe(learner).search
    if search is None:
        raise ValueError(f"{learner!r} has no options to tune")
    return search(trial)


def first_points(learner: str, kind: str, *, online: bool) -> list[dict[str, Any]]:
    """The points to try before the search samples any.

    >>> [round(point["lr"], 4) for point in first_points("rnn-bptt", "video", online=False)]
    [0.001, 0.0003, 0.003, 0.0001, 0.01]
    """
    entry = describe(learner)
    return entry.first_points(entry.default_options(kind, online=online)) if entry.first_points else []


def tune(study: Study, context: RunContext, report: Callable[[str], None]) -> dict[str, Any]:
    """Search until the time or the trials are used up; return the content of a tuned-values file."""
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
    seed = study.spec.seed + len(search.trials)  # a continued study must not sample the same points again
    search.sampler = optuna.samplers.TPESampler(seed=seed)

    def objective(trial: Any) -> float:
        options = suggest(trial, study.spec.learner)
        trial.set_user_attr("options", options)

        def check(number: int, error: float) -> None:
            trial.report(error, number)
            if trial.should_prune():
                raise Pruned

        try:
            error = attempt(study, options, f"tune/{study.name}/{trial.number}", context, check)
        except Pruned:
            report(f"trial {trial.number}: pruned")
            raise optuna.TrialPruned from None
        except FloatingPointError:
            report(f"trial {trial.number}: diverged")
            raise optuna.TrialPruned from None
        report(f"trial {trial.number}: {error:.4g} with {json.dumps(options)}")
        return error

    stopped = False
    if not search.trials:
        online = study.spec.config.batch_size == 1
        for point in first_points(study.spec.learner, study.spec.splits.kind, online=online):
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
    study: Study, options: dict[str, Any], name: str, context: RunContext, check: Callable[[int, float], None]
) -> float:
    """Train once, in `CHECKS` parts with a validation after each; return the last validation error."""
    config = study.spec.config
    spec = replace(study.spec, config=replace(config, epochs=1), options={**study.spec.options, **options})
    metric = spec.splits.metrics[0]
    phases: list[Phase] = []
    for number in range(CHECKS):
        learn, valid = epoch_phases(spec, number)
        phases += [replace(learn, limit=max(1, config.sequences // CHECKS)), replace(valid, select=False)]

    def after_phase(phase: str, metrics: Mapping[str, float]) -> None:
        part, _, number = phase.partition("/")
        if part == "valid":
            check(int(number), metrics[metric])

    phased = replace(training_run(spec), name=name, phases=tuple(phases), keep=False, after_phase=after_phase)
    try:
        return execute(phased, context).metric(f"valid/{CHECKS - 1}", metric)
    finally:
        tidy(phased, context)


def summary(study: Study, search: Any, finished: list[Any]) -> dict[str, Any]:
    """The chosen options and how they were found."""
    best = search.best_trial
    over = [trial for trial in search.trials if trial.state.is_finished()]
    ranked = sorted(finished, key=lambda trial: trial.value)[:5]
    return {
        "row": study.spec.row,
        "data": study.spec.data,
        "source": study.spec.splits.source,
        "options": best.user_attrs["options"],
        "validation": best.value,
        "study": {
            "trials": len(over),
            "finished": len(finished),
            "pruned": len(over) - len(finished),
            "best": [{"value": trial.value, "options": trial.user_attrs["options"]} for trial in ranked],
            "run_config": study.spec.config.values(),
            "when": time.strftime("%Y-%m-%d"),
        },
    }


def write_tuned(tuned: dict[str, Any], folder: Path, *, online: bool) -> Path:
    """Write tuned values to `folder`, under the name that runs look for."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{tuned['row']}-{ONLINE_NAME if online else tuned['data']}.json"
    write_atomically(path, (json.dumps(tuned, indent=1) + "\n").encode())
    return path
