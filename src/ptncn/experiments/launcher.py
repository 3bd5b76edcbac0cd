"""Carry out runs, one after the other or in parallel, and print tables of their results."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from multiprocessing.connection import wait
from pathlib import Path
from statistics import fmean
from typing import Any

import torch
from rich.table import Table

from ptncn.experiments import find_experiment
from ptncn.experiments.experiment import Experiment, perform, read_result
from ptncn.experiments.phases import training_run
from ptncn.experiments.run import Interrupted, Reporter, RunContext, RunSpec, Stop
from ptncn.experiments.runner import train
from ptncn.records import Comparison, Record, RecordError, compare, summarise
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


Means = dict[str, dict[str, Any]]
"""{metric: {row: {column: value}}}; without columns {metric: {row: value}}."""


def mean_cells(experiment: Experiment, records: Sequence[Record]) -> Means:
    """The mean of every cell over trials."""
    values: dict[str, dict[str, dict[str, list[float]]]] = {}
    for record in records:
        for metric, row in experiment.cells(record).items():
            for column, value in row.items():
                if value is not None:
                    cells = values.setdefault(metric, {}).setdefault(record.model, {})
                    cells.setdefault(column, []).append(value)
    return {
        metric: {row: _collapse({column: fmean(each) for column, each in cells.items()}) for row, cells in rows.items()}
        for metric, rows in values.items()
    }


def _collapse(row: dict[str, float]) -> Any:
    return row[""] if set(row) == {""} else row


def draw_tables(experiment: Experiment, records: Sequence[Record]) -> dict[str, Table]:
    """A table for each metric, with our numbers and the paper's in brackets."""
    metrics: dict[str, dict[str, None]] = {}
    for record in records:
        for metric, row in experiment.cells(record).items():
            metrics.setdefault(metric, {}).update(dict.fromkeys(row))
    return {metric: _draw(experiment, records, metric, list(columns)) for metric, columns in metrics.items()}


def _draw(experiment: Experiment, records: Sequence[Record], metric: str, columns: list[str]) -> Table:
    table = Table("learner", *(column or metric for column in columns), box=None)
    known = experiment.paper.get(metric, {})
    for row in dict.fromkeys([*known, *(record.model for record in records)]):
        cells = []
        for column in columns:
            ours = spread(experiment, records, metric, row, column)
            theirs = known.get(row, {}).get(column)
            cells.append(f"{ours or '–'}{f' ({theirs:g})' if theirs is not None else ''}")
        if any(not cell.startswith("–") for cell in cells):
            table.add_row(row, *cells)
    return table


def spread(experiment: Experiment, records: Sequence[Record], metric: str, row: str, column: str) -> str | None:
    """Mean and standard deviation over trials, or None if there are none."""
    values = [
        value
        for record in records
        if record.model == row and (value := experiment.cells(record).get(metric, {}).get(column)) is not None
    ]
    if not values:
        return None
    summary = summarise(values)
    digits = 4 if abs(summary.mean) < 10 else 2
    text = f"{summary.mean:.{digits}f}"
    return f"{text} ± {summary.sd:.{digits}f}" if summary.trials > 1 else text


def comparison_lines(experiment: Experiment, records: Sequence[Record]) -> list[str]:
    """A line for each comparison of the reference row with another, sequence by sequence in the same trial."""
    if experiment.compared_by is None:
        return []
    lines, ours = [], experiment.reference
    references = {(record.data, record.seed): record for record in records if record.model == ours}
    for record in records:
        reference = references.get((record.data, record.seed))
        if record.model == ours or reference is None:
            continue
        found = compare_records(reference, record, *experiment.compared_by)
        if found is not None:
            verdict = "beyond chance" if found.beyond_chance else "may be chance"
            lines.append(
                f"{ours} − {record.model} on {record.data}, seed {record.seed}, {' '.join(experiment.compared_by)}: "
                f"{found.difference:+.3f} [{found.low:+.3f}, {found.high:+.3f}] over {found.pairs} sequences, {verdict}"
            )
    return lines


def compare_records(ours: Record, theirs: Record, phase: str, metric: str) -> Comparison | None:
    """Paired over sequences; None if either has no such errors. Text has a metric of its own."""
    metric = "bpc" if "bpc" in ours.errors.get(phase, {}) else metric
    try:
        return compare(ours.sequence_errors(phase, metric), theirs.sequence_errors(phase, metric))
    except (RecordError, ValueError):
        return None
