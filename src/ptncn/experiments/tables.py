"""A table on the terminal: the paper's number, and ours."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table

from ptncn.experiments.base import Experiment
from ptncn.experiments.reproduce import spread
from ptncn.records import Comparison, Record, RecordError, compare


def draw_tables(experiment: Experiment, records: Sequence[Record]) -> dict[str, Table]:
    """A table for each metric: a row a model, and in each cell ours with the paper's beside it in brackets."""
    metrics: dict[str, dict[str, None]] = {}
    for record in records:
        for metric, row in experiment.cells(record).items():
            metrics.setdefault(metric, {}).update(dict.fromkeys(row))
    return {metric: _draw(experiment, records, metric, list(columns)) for metric, columns in metrics.items()}


def _draw(experiment: Experiment, records: Sequence[Record], metric: str, columns: list[str]) -> Table:
    table = Table("model", *(column or metric for column in columns), box=None)
    known = experiment.paper.get(metric, {})
    for model in dict.fromkeys([*known, *(record.model for record in records)]):
        cells = []
        for column in columns:
            ours = spread(experiment, records, metric, model, column)
            theirs = known.get(model, {}).get(column)
            cells.append(f"{ours or '–'}{f' ({theirs:g})' if theirs is not None else ''}")
        if any(not cell.startswith("–") for cell in cells):
            table.add_row(model, *cells)
    return table


def against_ptncn(experiment: Experiment, records: Sequence[Record]) -> list[str]:
    """A line for each comparison of the P-TNCN with another model, sequence by sequence, over the same trial."""
    if experiment.test is None:
        return []
    lines = []
    ours = {(record.data, record.seed): record for record in records if record.model == "ptncn"}
    for record in records:
        own = ours.get((record.data, record.seed))
        if record.model == "ptncn" or own is None:
            continue
        found = compare_records(own, record, *experiment.test)
        if found is not None:
            verdict = "beyond chance" if found.beyond_chance else "may be chance"
            lines.append(
                f"ptncn − {record.model} on {record.data}, seed {record.seed}, {' '.join(experiment.test)}: "
                f"{found.difference:+.3f} [{found.low:+.3f}, {found.high:+.3f}] over {found.pairs} sequences, {verdict}"
            )
    return lines


def compare_records(ours: Record, theirs: Record, test: str, metric: str) -> Comparison | None:
    """Paired over sequences; None where either has no such errors. Text has its own metric."""
    metric = "bpc" if "bpc" in ours.errors.get(test, {}) else metric
    try:
        return compare(ours.sequence_errors(test, metric), theirs.sequence_errors(test, metric))
    except (RecordError, ValueError):
        return None
