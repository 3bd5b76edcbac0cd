"""From names on a command line to runs, one after the other or side by side, and to a table."""

from __future__ import annotations

import difflib
import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import wait
from pathlib import Path
from statistics import fmean
from typing import Any

import torch

from ptncn.experiments import find_experiment
from ptncn.experiments.base import Experiment, Job, perform
from ptncn.experiments.setting import SCALES
from ptncn.experiments.training import Training
from ptncn.experiments.workshop import Interrupted, Reporter, Stop, Workshop
from ptncn.learners.registry import describe
from ptncn.records import Record, RecordError, read_record, summarise
from ptncn.system import usable_cores

Table = dict[str, dict[str, Any]]
"""{metric: {model: {column: value}}}; without columns {metric: {model: value}}."""


@dataclass(frozen=True)
class Work:
    """A training that several runs share, or a run; by plain values, for any process."""

    what: Training | Job
    out: Path
    runs: Path
    resume: bool
    fresh: bool
    every: float
    threads: int | None = None

    @property
    def small(self) -> bool:
        """One thread is enough, and several would wait for each other."""
        if isinstance(self.what, Job):
            return self.what.scale == "smoke" or find_experiment(self.what.experiment).small
        return self.what.setting.units < 100

    def __str__(self) -> str:
        if isinstance(self.what, Job):
            return str(self.what)
        return f"training {self.what.model} on {self.what.data} seed {self.what.seed}"


def choose_jobs(
    experiment: Experiment,
    scale: str,
    *,
    models: Sequence[str] | None = None,
    data: Sequence[str] | None = None,
    seeds: int | None = None,
    configs: Path | None = None,
) -> list[Job]:
    """Every run of an experiment, or those asked for; a name that is not known is said with those that are."""
    if scale not in SCALES:
        raise ValueError(f"unknown scale {scale!r}; choose one of: {', '.join(SCALES)}")
    columns = list(data or experiment.models)
    trials = experiment.seeds[scale] if seeds is None else seeds
    jobs = []
    for column in columns:
        roster = experiment.models.get(column)
        if roster is None:
            if not experiment.any_model:
                raise ValueError(f"{experiment.name} has no data {column!r}; it has: {', '.join(experiment.models)}")
            roster = next(iter(experiment.models.values()))
        for model in _check_models(experiment, models or roster, roster):
            jobs += [Job(experiment.name, scale, model, column, seed, configs) for seed in range(trials)]
    for job in jobs:
        experiment.config(job)  # finds data and options that are not known before anything runs
    return jobs


def _check_models(experiment: Experiment, models: Sequence[str], roster: Sequence[str]) -> Sequence[str]:
    for model in models:
        if model in roster:
            continue
        if experiment.any_model:
            describe(model)
        else:
            close = difflib.get_close_matches(model, roster, n=1)
            hint = f"did you mean {close[0]!r}? " if close else ""
            raise ValueError(f"{experiment.name} has no model {model!r}; {hint}It has: {', '.join(roster)}")
    return models


def carry_out(works: Sequence[Work], jobs: int, tell: Callable[[str], None], stop: Stop) -> None:
    """Do all of it: trainings that runs share first. What a run came to is in its record."""
    trainings = [work for work in works if isinstance(work.what, Training)]
    runs = [work for work in works if isinstance(work.what, Job)]
    for stage in (trainings, runs):
        if jobs == 1:
            for work in stage:
                tell(str(work))
                _do(work, stop)
        else:
            _side_by_side(stage, jobs, tell, stop)


def plan_works(
    chosen: Sequence[Job], *, out: Path, runs: Path, resume: bool, fresh: bool, every: float, jobs: int
) -> list[Work]:
    """Each training once, then each run."""
    cores = usable_cores()
    threads = None if jobs == 1 else max(1, cores // jobs)
    common: dict[str, Any] = {"out": out, "runs": runs, "resume": resume, "every": every, "threads": threads}
    trainings: dict[str, Work] = {}
    for job in chosen:
        for training in find_experiment(job.experiment).trainings(job):
            trainings.setdefault(training.plan().folder, Work(training, fresh=fresh, **common))
    return [*trainings.values(), *(Work(job, fresh=False, **common) for job in chosen)]


def _do(work: Work, stop: Stop, *, quiet: bool = False) -> None:
    workshop = Workshop(work.runs, work.resume, work.fresh, work.every, Reporter(quiet=quiet), stop)
    with threads(1 if work.small else work.threads):
        _do_in(workshop, work)


@contextmanager
def threads(count: int | None) -> Iterator[None]:
    """Let torch use so many; None leaves it alone."""
    before = torch.get_num_threads()
    try:
        if count is not None:
            torch.set_num_threads(count)
        yield
    finally:
        torch.set_num_threads(before)


def _do_in(workshop: Workshop, work: Work) -> None:
    if isinstance(work.what, Job):
        perform(find_experiment(work.what.experiment), work.what, workshop, work.out)
        return
    try:
        work.what.make(workshop)
    except (Interrupted, KeyboardInterrupt):
        raise
    except Exception as error:  # the run that wanted it fails for the same reason, and its record says so
        workshop.reporter.say(f"{work}: {type(error).__name__}: {error}")


def _in_a_process(work: Work) -> None:
    stop = Stop()
    with stop.listen():
        try:
            _do(work, stop, quiet=True)
        except (Interrupted, KeyboardInterrupt):
            raise SystemExit(130) from None


def _side_by_side(stage: Sequence[Work], jobs: int, tell: Callable[[str], None], stop: Stop) -> None:
    context = multiprocessing.get_context("spawn")
    waiting = list(reversed(stage))
    running: dict[Any, tuple[Any, Work]] = {}
    while running or (waiting and not stop.requested):
        while waiting and len(running) < jobs and not stop.requested:
            work = waiting.pop()
            tell(str(work))
            process = context.Process(target=_in_a_process, args=(work,))
            process.start()
            running[process.sentinel] = (process, work)
        for sentinel in wait(list(running), timeout=0.2):
            process, work = running.pop(sentinel)
            process.join()
            if process.exitcode not in (0, 130):
                tell(f"{work}: ended with exit code {process.exitcode}")
        if stop.requested:
            for process, _ in running.values():
                process.terminate()
    if stop.requested:
        raise Interrupted("side by side")


def read_jobs(jobs: Sequence[Job], out: Path) -> tuple[list[Record], list[str]]:
    """The records of finished runs, and a line for each other run."""
    records, problems = [], []
    for job in jobs:
        try:
            record = read_record(job.path(out))
        except RecordError as error:
            problems.append(str(error))
            continue
        if record.status == "finished":
            records.append(record)
        else:
            problems.append(f"{job}: {record.status}: {'; '.join(record.notes) or 'it did not come to an end'}")
    return records, problems


def make_table(experiment: Experiment, records: Sequence[Record]) -> Table:
    """Means over trials."""
    values: dict[str, dict[str, dict[str, list[float]]]] = {}
    for record in records:
        for metric, row in experiment.cells(record).items():
            for column, value in row.items():
                if value is not None:
                    cells = values.setdefault(metric, {}).setdefault(record.model, {})
                    cells.setdefault(column, []).append(value)
    return {
        metric: {model: _collapse({column: fmean(each) for column, each in row.items()}) for model, row in rows.items()}
        for metric, rows in values.items()
    }


def spread(experiment: Experiment, records: Sequence[Record], metric: str, model: str, column: str) -> str | None:
    """Mean and standard deviation over trials, or None where there is nothing."""
    values = [
        value
        for record in records
        if record.model == model and (value := experiment.cells(record).get(metric, {}).get(column)) is not None
    ]
    if not values:
        return None
    summary = summarise(values)
    digits = 4 if abs(summary.mean) < 10 else 2
    text = f"{summary.mean:.{digits}f}"
    return f"{text} ± {summary.sd:.{digits}f}" if summary.trials > 1 else text


def _collapse(row: dict[str, float]) -> Any:
    return row[""] if set(row) == {""} else row
