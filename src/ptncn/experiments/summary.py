"""Tables of results: means over trials, next to the paper's numbers, and paired comparisons."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import Any

from rich.table import Table

from ptncn.experiments.experiment import Experiment
from ptncn.records import Comparison, Record, RecordError, compare, summarise

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
