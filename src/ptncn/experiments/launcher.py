"""Carry out runs, one after the other or in parallel processes; shared trainings come first."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

import torch

from ptncn.experiments import find_experiment
from ptncn.experiments.context import Interrupted, Reporter, RunContext, Stop
from ptncn.experiments.experiment import perform, read_result
from ptncn.experiments.phases import training_run
from ptncn.experiments.runner import train
from ptncn.experiments.spec import RunSpec
from ptncn.records import Record
from ptncn.system import usable_cores


@dataclass(frozen=True)
class LaunchOptions:
    """How runs are carried out; by plain values, for any process."""

    out: Path
    """Folder of records."""
    runs: Path
    """Folder of checkpoints and trained learners."""
    resume: bool = False
    fresh: bool = False
    """Train again what was trained before."""
    every: float = 60.0
    """Seconds between checkpoints."""
    processes: int = 1


def launch(specs: Sequence[RunSpec], options: LaunchOptions, report: Callable[[str], None], stop: Stop) -> None:
    """Carry out all runs. The result of each is in its record."""
    trainings: dict[str, RunSpec] = {}
    for spec in specs:
        for training in find_experiment(spec.experiment).trains(spec):
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
    fresh = options.fresh and only_train  # a run must not repeat the training that was just made for it
    context = RunContext(options.runs, options.resume, fresh, options.every, Reporter(quiet=quiet), stop)
    with threads(_threads(spec, only_train, options)):
        if not only_train:
            perform(find_experiment(spec.experiment), spec, context, options.out)
            return
        try:
            train(spec, context)
        except (Interrupted, KeyboardInterrupt):
            raise
        except Exception as error:  # the run that needs it fails for the same reason, and its record says so
            context.reporter.say(f"{_name(spec, only_train)}: {type(error).__name__}: {error}")


def _threads(spec: RunSpec, only_train: bool, options: LaunchOptions) -> int | None:
    """One thread where several would wait for each other, an equal share for processes, else torch's own choice."""
    small = spec.config.units < 100 if only_train else find_experiment(spec.experiment).single_thread
    if small or spec.scale == "smoke":
        return 1
    return None if options.processes == 1 else max(1, usable_cores() // options.processes)


@contextmanager
def threads(count: int | None) -> Iterator[None]:
    """Let torch use this many threads; None leaves it alone."""
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


def read_results(specs: Sequence[RunSpec], out: Path) -> tuple[list[Record], list[str]]:
    """The records of finished runs, and a line for each other run."""
    found = [read_result(spec, out) for spec in specs]
    return [each for each in found if isinstance(each, Record)], [each for each in found if isinstance(each, str)]
