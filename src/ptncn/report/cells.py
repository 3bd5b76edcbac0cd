"""What was measured, cell by cell: of one metric on one column by one model, over its trials."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ptncn.experiments.experiment import Experiment
from ptncn.records import Comparison, RecordError, Summary, compare, summarise
from ptncn.report.scale import setting_of
from ptncn.report.sources import Source
from ptncn.report.subjects import Subject


@dataclass(frozen=True)
class Cell:
    """A model's trials, and the paper's number."""

    model: str
    column: str
    paper: float | None
    sources: Sequence[Source]
    summary: Summary | None
    """None where the paper has a number and we have no run."""

    @property
    def ours(self) -> float | None:
        return None if self.summary is None else self.summary.mean

    @property
    def sd(self) -> float | None:
        """Over trials; None for a single one."""
        return self.summary.sd if self.summary is not None and self.summary.trials > 1 else None

    @property
    def ratio(self) -> float | None:
        return None if self.ours is None or not self.paper else self.ours / self.paper

    @property
    def stands_in(self) -> bool:
        """Whether the paper's number belongs to other data than ours."""
        return any(other_data(source) for source in self.sources)


def other_data(source: Source) -> str:
    """Why the numbers of a run cannot be held against the paper's, or nothing."""
    if source.record.stand_ins:
        return "; ".join(f"{used} in place of {asked}" for asked, used in source.record.stand_ins.items())
    canvas = setting_of(source.record).get("canvas", 64)
    return "" if canvas == 64 else f"videos of {canvas} × {canvas} pixels, not 64 × 64"


def cells_of(experiment: Experiment, sources: Sequence[Source], metric: str) -> list[Cell]:
    """Column by column, models in the paper's order."""
    known = experiment.paper.get(metric, {})
    measured = {column: None for source in sources for column in source.cells.get(metric, {})}
    columns = dict.fromkeys([*(column for row in known.values() for column in row if column in measured), *measured])
    roster = [model for models in experiment.rows.values() for model in models]
    recorded = {source.record.model for source in sources}
    models = dict.fromkeys([*known, *(model for model in roster if model in recorded), *sorted(recorded)])
    found = []
    for column in columns:
        for model in models:
            having = [each for each in sources if each.record.model == model and column in each.cells.get(metric, {})]
            values = [value for each in having if (value := each.cells[metric][column]) is not None]
            paper = known.get(model, {}).get(column)
            if values or paper is not None:
                found.append(Cell(model, column, paper, having, summarise(values) if values else None))
    return found


def metrics_of(sources: Sequence[Source]) -> list[str]:
    return list(dict.fromkeys(metric for source in sources for metric in source.cells))


def differ(subject: Subject, metric: str, ours: Cell, theirs: Cell) -> Comparison | None:
    """Over the sequences of the test, each with its mean error over the trials that both have; None without those."""
    key = subject.errors(metric, ours.column)
    if key is None:
        return None
    try:
        pairs = [
            (a.record.sequence_errors(*key), b.record.sequence_errors(*key))
            for a in ours.sources
            for b in theirs.sources
            if (a.record.data, a.record.seed) == (b.record.data, b.record.seed)
        ]
        if not pairs:
            return None
        first, second = (np.mean([pair[side] for pair in pairs], axis=0) for side in (0, 1))
        return compare(first, second)
    except (RecordError, ValueError, TypeError, AttributeError):
        return None


def number(value: float | None, like: float | None = None) -> str:
    """With as many decimals as `like` has, which is the number itself unless another is given.

    >>> [number(value) for value in (123.456, 1.7, 0.01634, -0.5, -1e-17, None)], number(0.25, like=123.456)
    (['123.46', '1.700', '0.01634', '-0.5000', '0.000', '–'], '0.25')
    """
    if value is None or value != value:
        return "–"
    size = abs(value if like is None else like)
    decimals = 2 if size >= 10 else 3 if size >= 1 or size < 1e-9 else 3 - math.floor(math.log10(size))
    return f"{round(value, decimals) + 0:.{decimals}f}"  # adding 0 takes the sign from -0
