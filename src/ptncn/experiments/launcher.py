"""Carry out runs, one after the other or in parallel, and write their records."""

from __future__ import annotations

import json
import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

import torch

from ptncn.experiments import EXPERIMENTS
from ptncn.experiments.phases import stable, training_run
from ptncn.experiments.run import Interrupted, Reporter, RunContext, RunSpec, Stop
from ptncn.experiments.runner import Result, train
from ptncn.records import Record, RecordError, read_record
from ptncn.system import one_line, usable_cores


@dataclass(frozen=True)
class LaunchOptions:
    """How to carry out runs, as plain values that any process can take."""

    out: Path
    """Folder of records."""
    runs: Path
    """Folder of checkpoints and trained learners."""
    resume: bool = False
    fresh: bool = False
    """Repeat trainings that have a result."""
    every: float = 60.0
    """Seconds between checkpoints."""
    processes: int = 1


def launch(specs: Sequence[RunSpec], options: LaunchOptions, report: Callable[[str], None], stop: Stop) -> None:
    """Carry out all runs, shared trainings first. Each run writes its result to its record."""
    trainings: dict[str, RunSpec] = {}
    for spec in specs:
        for training in EXPERIMENTS.find(spec.experiment).trains(spec):
            trainings.setdefault(training_run(training).folder, training)
    for stage, only_train in ((list(trainings.values()), True), (list(specs), False)):
        if options.processes == 1:
            for spec in stage:
                report(_name(spec, only_train))
                _carry_out(spec, only_train, options, stop)
        else:
            _in_parallel(stage, only_train, options, report, stop)


def _name(spec: RunSpec, only_train: bool) -> str:
    return f"training {spec.row} on {spec.data} seed {spec.seed}" if only_train else str(spec)


def _carry_out(spec: RunSpec, only_train: bool, options: LaunchOptions, stop: Stop, *, quiet: bool = False) -> None:
    fresh = options.fresh and only_train  # the training has just been done: a run must not repeat it
    context = RunContext(options.runs, options.resume, fresh, options.every, Reporter(quiet=quiet), stop)
    with threads(_threads(spec, only_train, options)):
        if not only_train:
            experiment = EXPERIMENTS.find(spec.experiment)
            perform(spec, experiment.run, experiment.values(spec), context, options.out)
            return
        try:
            train(spec, context)
        except (Interrupted, KeyboardInterrupt):
            raise
        except Exception as error:  # the run that needs it fails too, and its record says why
            context.reporter.say(f"{_name(spec, only_train)}: {_reason(error)}")


def _reason(error: Exception) -> str:
    """The message of an expected error; of any other also its type."""
    return one_line(error) if isinstance(error, ValueError | OSError) else f"{type(error).__name__}: {one_line(error)}"


def _threads(spec: RunSpec, only_train: bool, options: LaunchOptions) -> int | None:
    """One thread for small networks, an equal share of the cores for processes, otherwise torch's default."""
    small = spec.config.units < 100 if only_train else EXPERIMENTS.find(spec.experiment).single_thread
    if small or spec.scale == "smoke":
        return 1
    return None if options.processes == 1 else max(1, usable_cores() // options.processes)


@contextmanager
def threads(count: int | None) -> Iterator[None]:
    """Set the number of torch threads; None keeps the current one."""
    before = torch.get_num_threads()
    try:
        if count is not None:
            torch.set_num_threads(count)
        yield
    finally:
        torch.set_num_threads(before)


def _in_process(spec: RunSpec, only_train: bool, options: LaunchOptions) -> None:
    stop = Stop()
    with stop.listen():
        try:
            _carry_out(spec, only_train, options, stop, quiet=True)
        except (Interrupted, KeyboardInterrupt):
            raise SystemExit(130) from None


def _in_parallel(
    stage: Sequence[RunSpec], only_train: bool, options: LaunchOptions, report: Callable[[str], None], stop: Stop
) -> None:
    context = multiprocessing.get_context("spawn")
    waiting = list(reversed(stage))
    running: dict[Any, tuple[Any, RunSpec]] = {}
    while running or (waiting and not stop.requested):
        while waiting and len(running) < options.processes and not stop.requested:
            spec = waiting.pop()
            report(_name(spec, only_train))
            fresh_copy = replace(spec)  # without the datasets that it has opened
            process = context.Process(target=_in_process, args=(fresh_copy, only_train, options))
            process.start()
            running[process.sentinel] = (process, spec)
        for sentinel in wait(list(running), timeout=0.2):
            process, spec = running.pop(sentinel)
            process.join()
            if process.exitcode not in (0, 130):
                report(f"{_name(spec, only_train)}: ended with exit code {process.exitcode}")
        if stop.requested:
            for process, _ in running.values():
                process.terminate()
    if stop.requested:
        raise Interrupted("parallel runs")


def perform(
    spec: RunSpec,
    run: Callable[[RunSpec, RunContext], Result],
    values: dict[str, Any],
    context: RunContext,
    out: Path,
    *,
    command: str = "",
) -> Record:
    """Carry out a run and write its record, with these values as its config; with `resume`, skip a finished run.

    `command` repeats the run; empty: `ptncn reproduce` does.
    """
    config = json.loads(json.dumps(values, default=str))
    if context.resume:
        known = read_result(spec, out)
        if isinstance(known, Record) and stable(known.config) == stable(config):
            return known
    record = Record(
        experiment=spec.experiment,
        row=spec.row,
        data=spec.data,
        scale=spec.scale,
        seed=spec.seed,
        config=config,
        command=command or spec.command(),
        started=_now(),
    )
    record.write(spec.path(out))
    try:
        for name, value in run(spec, context).fields().items():
            setattr(record, name, value)
        record.status = "finished"
    except (Interrupted, KeyboardInterrupt):
        raise
    except Exception as error:
        record.status = "failed"
        record.notes.append(_reason(error))
    record.finished = _now()
    record.write(spec.path(out))
    return record


def read_result(spec: RunSpec, out: Path) -> Record | str:
    """The record of a finished run, or why there is none."""
    try:
        record = read_record(spec.path(out))
    except RecordError as error:
        return str(error)
    if record.status == "finished":
        return record
    return f"{spec}: {record.status}: {'; '.join(record.notes) or 'it did not finish'}"


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
