"""Everything at a glance: where the network of the paper stands in each table, beside where the paper has it."""

from __future__ import annotations

from collections.abc import Sequence

from ptncn.experiments.experiment import Experiment
from ptncn.report.cells import cells_of, metrics_of, number
from ptncn.report.labels import label
from ptncn.report.sources import Source
from ptncn.report.subjects import Subject
from ptncn.report.verdicts import HEROES, by_column, mark

HEADINGS = ("table", "measure", "on", "scale", "paper", "ours", "ratio", "reached?", "place, paper", "place, ours")


def standings(experiment: Experiment, subject: Subject, sources: Sequence[Source]) -> list[list[str]]:
    """A row for each number of the network that the paper has; the first cell is left to the page."""
    rows = []
    for metric in metrics_of(sources):
        for column, group in by_column(cells_of(experiment, sources, metric)).items():
            hero = next((cell for cell in group if cell.model in HEROES and cell.ratio is not None), None)
            if hero is None:
                continue
            rivals = [cell for cell in group if cell.ratio is not None and cell.model not in subject.references]
            ranked = len(rivals) > 1 and not subject.bounds
            rows.append(
                [
                    subject.names.get(metric, metric),
                    label(column) if column else "",
                    hero.sources[0].record.scale,
                    f"{hero.paper:g}",
                    number(hero.ours),
                    f"{hero.ratio:.2f}×",
                    mark(hero, subject),
                    _place(hero.paper, [cell.paper for cell in rivals]) if ranked else "",
                    _place(hero.ours, [cell.ours for cell in rivals]) if ranked else "",
                ]
            )
    return rows


def _place(value: float | None, values: Sequence[float | None]) -> str:
    """
    >>> _place(2.0, [1.0, 2.0, 3.0])
    '2 of 3'
    """
    return f"{1 + sum(each is not None and value is not None and each < value for each in values)} of {len(values)}"
