"""Compare our numbers with the paper's: whether values are reached, and which differences are significant."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy import stats

from ptncn.experiments.experiment import Experiment
from ptncn.records import Comparison, RecordError, Summary, compare, summarise
from ptncn.report.model import data_label, metric_label, row_label
from ptncn.report.sources import RecordSource

SLACK = 0.2
"""Tolerance when a measured exponent is compared with a bound."""
MAX_PAIRS = 8
"""Maximum number of pairs listed in a sentence."""


@dataclass(frozen=True)
class TableCell:
    """One metric of one row and column, over seeds, with the paper's number."""

    row: str
    column: str
    paper: float | None
    sources: Sequence[RecordSource]
    summary: Summary | None
    """None if there is a number in the paper but no run."""
    stands_for: str = ""
    """The row that the paper's number belongs to, if it is not this one."""

    @property
    def ours(self) -> float | None:
        return None if self.summary is None else self.summary.mean

    @property
    def sd(self) -> float | None:
        """Standard deviation over seeds; None for a single one."""
        return self.summary.sd if self.summary is not None and self.summary.trials > 1 else None

    @property
    def ratio(self) -> float | None:
        return None if self.ours is None or not self.paper else self.ours / self.paper

    @property
    def other_data(self) -> bool:
        """Whether our data differs from the paper's."""
        return any(uses_other_data(source) for source in self.sources)


def uses_other_data(source: RecordSource) -> bool:
    """Whether a run used stand-ins for the paper's datasets, or videos of another size."""
    return bool(source.record.stand_ins) or run_config(source).get("canvas", 64) != 64


def run_config(source: RecordSource) -> dict[str, object]:
    """The sizes of a run; empty if the record has none."""
    inner = source.record.config.get("training", source.record.config)
    config = inner.get("run_config", inner) if isinstance(inner, dict) else {}
    return dict(config) if isinstance(config, dict) else {}


def cells_of(experiment: Experiment, sources: Sequence[RecordSource], metric: str) -> list[TableCell]:
    """Column by column, rows in the order of the paper."""
    known = experiment.paper.get(metric, {})
    measured = {column: None for source in sources for column in source.cells.get(metric, {})}
    columns = dict.fromkeys([*(column for row in known.values() for column in row if column in measured), *measured])
    recorded = {source.record.row for source in sources}
    rows = dict.fromkeys([*known, *(row for row in experiment.all_rows() if row in recorded), *sorted(recorded)])
    cells = []
    for column in columns:
        for row in rows:
            runs = [each for each in sources if each.record.row == row and column in each.cells.get(metric, {})]
            values = [value for each in runs if (value := each.cells[metric][column]) is not None]
            paper, stands_for = known.get(row, {}).get(column), ""
            if paper is None and values and row in experiment.variants:
                stands_for = experiment.variants[row].compared_with
                paper = known.get(stands_for, {}).get(column)
            if values or paper is not None:
                cells.append(TableCell(row, column, paper, runs, summarise(values) if values else None, stands_for))
    return cells


def metrics_of(sources: Sequence[RecordSource]) -> list[str]:
    return list(dict.fromkeys(metric for source in sources for metric in source.cells))


def by_column(cells: Sequence[TableCell]) -> dict[str, list[TableCell]]:
    groups: dict[str, list[TableCell]] = {}
    for cell in cells:
        groups.setdefault(cell.column, []).append(cell)
    return groups


def reference_cell(experiment: Experiment, group: Sequence[TableCell]) -> TableCell | None:
    """The cell of a column to compare the others with: the reference row's, or a variant's if that row has no run."""
    measured = [cell for cell in group if cell.ours is not None]
    own = [cell for cell in measured if cell.row == experiment.reference]
    return next(iter([*own, *(cell for cell in measured if cell.stands_for == experiment.reference)]), None)


def differ(experiment: Experiment, metric: str, first: TableCell, second: TableCell) -> Comparison | None:
    """A paired comparison over test sequences, using each sequence's mean error over the seeds that both rows have."""
    key = experiment.page.errors(metric, first.column)
    if key is None:
        return None
    try:
        pairs = [
            (a.record.sequence_errors(*key), b.record.sequence_errors(*key))
            for a in first.sources
            for b in second.sources
            if (a.record.data, a.record.seed) == (b.record.data, b.record.seed)
        ]
        if not pairs:
            return None
        return compare(*(np.mean([pair[side] for pair in pairs], axis=0) for side in (0, 1)))
    except (RecordError, ValueError, TypeError, AttributeError):
        return None


def mark(cell: TableCell, experiment: Experiment) -> str:
    """Whether the paper's number is reached, as a symbol and words. On other data it never counts as reached."""
    if cell.ours is None:
        return "– no record"
    if cell.ratio is None or cell.paper is None:
        return ""
    if cell.row in experiment.page.references:
        return "– for reference"
    if experiment.page.bounds:
        return "● within the bound" if cell.ours <= cell.paper + SLACK else "▲ grows faster"
    if cell.ratio > 1:
        return "▲ not reached; other data" if cell.other_data else "▲ not reached"
    return "◇ lower; other data" if cell.other_data else "● reached"


def unreached_values(experiment: Experiment, metric: str, cells: Sequence[TableCell]) -> list[str]:
    """A sentence per column about the paper's values that were not reached."""
    page, sentences = experiment.page, []
    for column, group in by_column(cells).items():
        known = [cell for cell in group if cell.ratio is not None and cell.row not in page.references]
        missed = [cell for cell in known if mark(cell, experiment).startswith("▲")]
        if not known:
            continue
        where = place(experiment, metric, column)
        if not missed:
            data = ", on other data" if any(cell.other_data for cell in known) else ""
            rows = "the only row" if len(known) == 1 else f"all {len(known)} rows"
            reached = f"{'is' if len(known) == 1 else 'are'} within the bound" if page.bounds else _reach(len(known))
            sentences.append(f"{where}: {rows} with a record {reached}{data}.")
            continue
        labels = [row_label(experiment, cell.row) for cell in missed]
        pairs = [f"{number(cell.ours)} vs {cell.paper:g}" for cell in missed]
        listed = ", ".join(map(" ".join, zip(labels, pairs, strict=True)))
        reference = next((cell for cell in known if cell.row == experiment.reference), None)
        own = ""
        if reference is not None and reference not in missed and reference.ratio is not None and not page.bounds:
            name = row_label(experiment, reference.row)
            own = f" {name}: {number(reference.ours)} vs {reference.paper:g}, {reference.ratio:.2f}×."
        misses = _misses(len(missed), bounds=page.bounds)
        sentences.append(f"{where}: **{len(missed)} of {_rows(len(known))} {misses}**: {listed}.{own}")
    return sentences


def changed_order(experiment: Experiment, metric: str, cells: Sequence[TableCell]) -> list[str]:
    """A sentence per column about pairs of rows that the paper orders differently."""
    sentences = []
    for column, group in by_column(cells).items():
        known = [cell for cell in group if cell.paper is not None and cell.ours is not None and not cell.stands_for]
        pairs = [(a, b) for a, b in combinations(known, 2) if a.paper != b.paper]
        if not pairs:
            continue
        ordered = [(a, b) if (a.paper or 0) < (b.paper or 0) else (b, a) for a, b in pairs]
        swapped = [(worse, better) for better, worse in ordered if (better.ours or 0) > (worse.ours or 0)]
        where = place(experiment, metric, column)
        if not swapped:
            every = "the only pair is" if len(pairs) == 1 else f"all {len(pairs)} pairs are"
            sentences.append(f"{where}: {every} ordered as in the paper.")
            continue
        tau = stats.kendalltau([cell.paper for cell in known], [cell.ours for cell in known]).statistic
        some = f"{len(swapped)} of {len(pairs)} pair{'s' * (len(pairs) > 1)} {'is' if len(swapped) == 1 else 'are'}"
        head = f"{where}: {some} ordered differently (Kendall’s τ {tau:.2f})."
        sentences.append(f"{head} {' '.join(_swapped_pairs(experiment, metric, swapped))}")
    return sentences


def _swapped_pairs(experiment: Experiment, metric: str, swapped: Sequence[tuple[TableCell, TableCell]]) -> list[str]:
    titles = ("**Significant**", "Not significant", "Not tested, no errors per sequence")
    groups: dict[str, list[str]] = {title: [] for title in titles}
    significant, insignificant, untested = groups.values()
    for ahead, behind in swapped:
        comparison = differ(experiment, metric, ahead, behind)
        group = untested if comparison is None else significant if comparison.significant else insignificant
        group.append(f"{row_label(experiment, ahead.row)} before {row_label(experiment, behind.row)}")
    return [
        f"{title}: {'; '.join(pairs[:MAX_PAIRS])}"
        f"{f'; and {len(pairs) - MAX_PAIRS} more' if len(pairs) > MAX_PAIRS else ''}."
        for title, pairs in groups.items()
        if pairs
    ]


def better_than_reference(experiment: Experiment, metric: str, cells: Sequence[TableCell]) -> list[str]:
    """A sentence per column about rows with a lower error than the reference row."""
    sentences = []
    for column, group in by_column(cells).items():
        reference = reference_cell(experiment, group)
        if reference is None:
            continue
        better = [cell for cell in group if cell.ours is not None and cell.ours < (reference.ours or 0)]
        if better:
            listed = ", ".join(
                f"{row_label(experiment, cell.row)} {number(cell.ours)}{_doubt(experiment, metric, reference, cell)}"
                for cell in better
            )
            where, name = place(experiment, metric, column), row_label(experiment, reference.row)
            sentences.append(f"{where}: better than the {name} with {number(reference.ours)}: {listed}.")
    return sentences


def _doubt(experiment: Experiment, metric: str, reference: TableCell, other: TableCell) -> str:
    comparison = differ(experiment, metric, reference, other)
    return " (not significant)" if comparison is not None and not comparison.significant else ""


RANKS = ("rank, paper", "rank, ours")
STANDING_HEADINGS = ("table", "learner", "metric", "on", "scale", "paper", "ours", "ratio", "reached?", *RANKS)


def standings(experiment: Experiment, sources: Sequence[RecordSource]) -> list[list[str]]:
    """A row for each of the paper's numbers for the reference row or a variant; the overview adds the first cell."""
    return [
        _standing(experiment, metric, cell, group)
        for metric in metrics_of(sources)
        for group in by_column(cells_of(experiment, sources, metric)).values()
        for cell in group
        if experiment.reference in (cell.row, cell.stands_for) and cell.ratio is not None
    ]


def _standing(experiment: Experiment, metric: str, cell: TableCell, group: Sequence[TableCell]) -> list[str]:
    page, ranks = experiment.page, ["", ""]
    others = [each for each in group if each.row not in (experiment.reference, *page.references)]
    ranked = [cell, *(each for each in others if each.ratio is not None and not each.stands_for)]
    if len(ranked) > 1 and not page.bounds:
        ranks = [_rank(cell.paper, [each.paper for each in ranked]), _rank(cell.ours, [each.ours for each in ranked])]
    return [
        row_label(experiment, cell.row),
        metric_label(experiment, metric),
        data_label(cell.column) if cell.column else "",
        cell.sources[0].record.scale,
        f"{cell.paper:g}",
        number(cell.ours),
        f"{cell.ratio:.2f}×",
        mark(cell, experiment),
        *ranks,
    ]


def _rank(value: float | None, values: Sequence[float | None]) -> str:
    """
    >>> _rank(2.0, [1.0, 2.0, 3.0])
    '2 of 3'
    """
    return f"{1 + sum(each is not None and value is not None and each < value for each in values)} of {len(values)}"


def place(experiment: Experiment, metric: str, column: str) -> str:
    """The label of a metric on a column."""
    name = metric_label(experiment, metric)
    return f"{name}, {data_label(column)}" if column else name


def number(value: float | None, like: float | None = None) -> str:
    """Format with as many decimals as `like` needs; by default, as the number itself needs.

    >>> [number(value) for value in (123.456, 1.7, 0.01634, -0.5, -1e-17, None)], number(0.25, like=123.456)
    (['123.46', '1.700', '0.01634', '-0.5000', '0.000', '–'], '0.25')
    """
    if value is None or value != value:
        return "–"
    size = abs(value if like is None else like)
    decimals = 2 if size >= 10 else 3 if size >= 1 or size < 1e-9 else 3 - math.floor(math.log10(size))
    return f"{round(value, decimals) + 0:.{decimals}f}"  # adding 0 turns -0 into 0


def _rows(count: int) -> str:
    return f"{count} rows" if count != 1 else "1 row"


def _reach(count: int) -> str:
    return f"{'reaches' if count == 1 else 'reach'} the paper’s number"


def _misses(count: int, *, bounds: bool) -> str:
    if bounds:
        return "exceeds the bound" if count == 1 else "exceed the bound"
    return f"{'does' if count == 1 else 'do'} not reach the paper’s number"
