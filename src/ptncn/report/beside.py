"""Our numbers beside the paper's, model by model, at a glance."""

from __future__ import annotations

from collections.abc import Sequence

from ptncn.report.drawing import BLUE, INK, SOFT, VERMILLION, WIDTH, canvas, finish, legend_below, rules
from ptncn.report.looks import label
from ptncn.report.parts import Picture

Row = tuple[str, float | None, float | None, float | None]
"""A model, the paper's number, ours, and the standard deviation of ours over trials, where there are several."""


def beside_the_paper(name: str, rows: Sequence[Row], *, title: str, measure: str) -> Picture:
    """A line a model: a ring is the paper's number, a dot is ours, a bar its standard deviation over trials."""
    if not rows:
        raise ValueError("no model to draw")
    with rules():
        figure, axes = canvas(WIDTH, 1.35 + 0.27 * len(rows))
        for place, (_, paper, ours, sd) in enumerate(rows):
            if paper is not None and ours is not None:
                axes.plot([paper, ours], [place, place], color=SOFT, linewidth=1, zorder=2)
            if sd is not None and ours is not None:
                axes.plot([ours - sd, ours + sd], [place, place], color=VERMILLION, linewidth=4, alpha=0.4, zorder=3)
        for values, marker, fill, colour, told in (
            ([paper for _, paper, _, _ in rows], "o", "none", BLUE, "the paper"),
            ([ours for _, _, ours, _ in rows], "D", VERMILLION, VERMILLION, "ours"),
        ):
            known = [(value, place) for place, value in enumerate(values) if value is not None]
            axes.plot(
                [value for value, _ in known],
                [place for _, place in known],
                marker,
                markersize=7,
                markerfacecolor=fill,
                markeredgecolor=colour,
                markeredgewidth=1.6,
                label=told,
                zorder=4,
            )
        axes.set_yticks(range(len(rows)), [label(model) for model, *_ in rows], color=INK)
        axes.set_ylim(len(rows) - 0.4, -0.6)
        axes.set_title(title)
        axes.set_xlabel(measure)
        legend_below(figure, axes)
        return finish(figure, name)
