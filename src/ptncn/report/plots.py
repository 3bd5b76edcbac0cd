"""Plots: learning curves, surprise, cost against size, our numbers next to the paper's, task matrices.

This module does not depend on experiments or learners: labels and line styles are arguments.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike, NDArray

from ptncn.report.model import (
    BLUE,
    HEIGHT,
    INK,
    PALETTE,
    SOFT,
    VERMILLION,
    WIDTH,
    Picture,
    canvas,
    legend_below,
    save,
    theme,
)

MAX_POINTS = 160
"""Maximum number of points per line, to keep files small."""


@dataclass(frozen=True)
class Curve:
    """An error over the steps of learning."""

    label: str
    steps: Sequence[float]
    values: Sequence[float]
    style: Mapping[str, Any] = field(default_factory=dict)
    """Line options of matplotlib."""


def error_curves(
    name: str,
    curves: Sequence[Curve],
    *,
    title: str,
    error: str,
    steps: str = "steps",
    changes: Sequence[tuple[float, str]] = (),
    logarithmic: bool = False,
) -> Picture:
    """Learning curves; `changes` marks the steps where the data changed, with a label each.

    A linear axis is scaled to the later part of the curves, since the first predictions are far worse.
    """
    if not curves:
        raise ValueError("curves: expected at least one, got none")
    with theme():
        figure, axes = canvas()
        for curve in curves:
            x, y = thin(curve.steps, curve.values)
            axes.plot(x, y, label=curve.label, **curve.style)
        axes.set_title(title)
        axes.set(xlabel=steps, ylabel=error)
        if logarithmic:
            axes.set_yscale("log")
        else:
            axes.set_ylim(*_limits([curve.values for curve in curves]))
        axes.margins(x=0.01)
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        _mark_changes(axes, changes)
        legend_below(figure, axes)
        return save(figure, name)


def surprise_over_time(
    name: str,
    surprise: ArrayLike,
    *,
    title: str,
    steps: str = "frame",
    times: Sequence[float] | None = None,
    changes: Sequence[tuple[float, str]] = (),
) -> Picture:
    """Surprise (T, layers) over time, each layer divided by its mean; `times` defaults to 1 … T."""
    values = np.asarray(surprise, float)
    if values.ndim != 2 or len(values) < 2:
        raise ValueError(f"surprise: expected shape (times, layers) with at least two times, got {values.shape}")
    with theme():
        figure, axes = canvas(height=HEIGHT - 0.3)
        for layer, course in enumerate(values.T):
            mean = float(course.mean())
            axes.plot(
                np.arange(1, len(course) + 1) if times is None else times,
                course / mean if mean else course,
                linestyle=("-", "--", "-.", ":")[layer % 4],
                marker="os^Dv"[layer % 5],
                markersize=4,
                markevery=max(1, len(course) // 20),
                color=PALETTE[layer % len(PALETTE)],
                label=f"layer {layer + 1}",
            )
        axes.axhline(1, color=SOFT, linewidth=0.8)
        axes.set_title(title)
        axes.set(xlabel=steps, ylabel="surprise / its mean")
        axes.set_ylim(bottom=0)
        axes.xaxis.get_major_locator().set_params(integer=True)
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        _mark_changes(axes, changes)
        legend_below(figure, axes, columns=4)
        return save(figure, name)


def cost_growth(
    name: str,
    costs: Mapping[str, Mapping[int, float]],
    exponents: Mapping[str, float],
    *,
    title: str,
    size: str,
    cost: str,
) -> Picture:
    """Cost against size by label, on logarithmic axes; lines are power laws with their exponents in the legend."""
    if not any(costs.values()):
        raise ValueError("costs: expected at least one, got none")
    with theme():
        figure, axes = canvas(height=HEIGHT + 0.8)
        for place, (label, points) in enumerate(costs.items()):
            sizes = np.array(sorted(points), float)
            values = np.array([points[int(each)] for each in sizes])
            colour = (*PALETTE, INK, SOFT)[place % (len(PALETTE) + 2)]
            entry = f"{label}: {round(exponents[label], 2) + 0:.2f}" if label in exponents else label
            axes.loglog(sizes, values, "osD^vP*X"[place % 8], color=colour, markersize=6, label=entry)
            if label in exponents:
                axes.loglog(sizes, _power_law(sizes, values, exponents[label]), color=colour, linewidth=1.2)
        axes.set_title(title)
        axes.set(xlabel=size, ylabel=cost)
        ticks = sorted({each for points in costs.values() for each in points})
        axes.set_xticks(ticks, [f"{each:,}" for each in ticks])
        axes.minorticks_off()
        legend_below(figure, axes, columns=2)
        return save(figure, name)


ComparisonRow = tuple[str, float | None, float | None, float | None]
"""A label, the paper's number, ours, and our standard deviation over seeds, if there are several."""


def comparison(name: str, rows: Sequence[ComparisonRow], *, title: str, measure: str) -> Picture:
    """One line per row: a circle for the paper's number, a diamond for ours with a bar for its standard deviation."""
    if not rows:
        raise ValueError("rows: expected at least one, got none")
    with theme():
        figure, axes = canvas(WIDTH, 1.35 + 0.27 * len(rows))
        for place, (_, paper, ours, sd) in enumerate(rows):
            if paper is not None and ours is not None:
                axes.plot([paper, ours], [place, place], color=SOFT, linewidth=1, zorder=2)
            if sd is not None and ours is not None:
                axes.plot([ours - sd, ours + sd], [place, place], color=VERMILLION, linewidth=4, alpha=0.4, zorder=3)
        for values, marker, fill, colour, label in (
            ([paper for _, paper, _, _ in rows], "o", "none", BLUE, "paper"),
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
                label=label,
                zorder=4,
            )
        axes.set_yticks(range(len(rows)), [label for label, *_ in rows], color=INK)
        axes.set_ylim(len(rows) - 0.4, -0.6)
        axes.set_title(title)
        axes.set_xlabel(measure)
        legend_below(figure, axes)
        return save(figure, name)


def task_matrices(
    name: str,
    tasks: Sequence[str],
    losses: Mapping[str, ArrayLike],
    *,
    title: str,
    learnt: Sequence[str] | None = None,
) -> Picture:
    """One heat map per label: rows are the tasks learnt so far, columns the task tested; light is low.

    All share one colour scale, and each cell shows its number, so the plot does not depend on colour.

    Arguments:
        losses: by label, a matrix of 1 + learnt tasks × tested tasks.
        learnt: the tasks in the order in which they were learnt, if it differs from `tasks`.
    """
    learnt = tasks if learnt is None else learnt
    matrices = {label: np.asarray(matrix, float) for label, matrix in losses.items()}
    expected = (len(learnt) + 1, len(tasks))
    for label, matrix in matrices.items():
        if matrix.shape != expected:
            raise ValueError(f"task matrix of {label}: expected shape {expected}, got {matrix.shape}")
    if not matrices:
        raise ValueError("losses: expected at least one task matrix, got none")
    trained = np.concatenate([matrix[1:].ravel() for matrix in matrices.values()])
    low, high = float(np.nanmin(trained)), float(np.nanmax(trained))
    rows = math.ceil(len(matrices) / 2)
    with theme():
        figure, grid = canvas(WIDTH, 0.5 + 2.15 * rows, nrows=rows, ncols=2, squeeze=False)
        figure.suptitle(title, x=0.01, ha="left", size=11, weight="bold")
        for axes in grid.flat[len(matrices) :]:
            axes.set_axis_off()
        for place, (label, matrix) in enumerate(matrices.items()):
            axes = grid.flat[place]
            axes.set_title(label, size=10, weight="normal", color=INK)
            axes.set_xticks(range(len(tasks)), [task.replace(" ", "\n") for task in tasks], size=8)
            stages = ["untrained", *(f"after {task}" for task in learnt)]
            axes.set_yticks(range(len(stages)), stages if place % 2 == 0 else [""] * len(stages), size=8)
            _heat_map(axes, matrix, low, high)
        return save(figure, name)


def _heat_map(axes: Axes, matrix: NDArray[Any], low: float, high: float) -> None:
    axes.imshow(matrix, cmap="cividis_r", vmin=low, vmax=high, aspect="auto", interpolation="nearest")
    axes.grid(visible=False)
    axes.tick_params(length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)
    for (row, column), value in np.ndenumerate(matrix):
        dark = value - low > 0.55 * (high - low)
        ink = "#fefefe" if dark else "#000001"  # like the cells, these do not change in dark mode
        axes.text(column, row, f"{value:.1f}", ha="center", va="center", size=8.5, color=ink)


def _mark_changes(axes: Axes, changes: Sequence[tuple[float, str]]) -> None:
    """A vertical line at each change of the data, labelled with what follows."""
    if len(changes) < 2:
        return
    axes.set_title(axes.get_title(loc="left"), pad=20)
    for number, (step, label) in enumerate(changes):
        if number:
            axes.axvline(step, color=INK, linewidth=1, zorder=2)
        text = f"↓ {label}" if number else label
        axes.text(step, 1.015, text, transform=axes.get_xaxis_transform(), color=INK, size=9)


def _power_law(sizes: NDArray[Any], values: NDArray[Any], exponent: float) -> NDArray[Any]:
    """The power law through the middle of the larger half of the sizes, to which the exponent was fitted."""
    half = max(0, min(len(sizes) // 2, len(sizes) - 2))
    x, y = np.log(sizes[half:]).mean(), np.log(np.maximum(values[half:], 1e-12)).mean()
    law: NDArray[Any] = np.exp(y + exponent * (np.log(sizes) - x))
    return law


def thin(steps: Sequence[float], values: Sequence[float]) -> tuple[NDArray[Any], NDArray[Any]]:
    """At most `MAX_POINTS` finite points, including the first and the last."""
    x, y = np.asarray(steps, float), np.asarray(values, float)
    if x.shape != y.shape or x.ndim != 1 or not len(x):
        raise ValueError(f"curve: expected two lists of equal length, got shapes {x.shape} and {y.shape}")
    known = np.isfinite(y)
    x, y = x[known], y[known]
    if len(x) <= MAX_POINTS:
        return x, y
    chosen = np.unique(np.linspace(0, len(x) - 1, MAX_POINTS).round().astype(int))
    return x[chosen], y[chosen]


def _limits(curves: Sequence[Sequence[float]]) -> tuple[float, float]:
    """Axis limits that show nearly all of the later part of every curve."""
    later = [np.asarray(values, float)[len(values) // 40 :] for values in curves]
    known = [values[np.isfinite(values)] for values in later]
    values = np.concatenate([each for each in known if len(each)] or [np.array([0.0, 1.0])])
    low, high = float(values.min()), float(np.quantile(values, 0.995))
    room = (high - low) * 0.06 or abs(high) * 0.06 or 1.0
    return max(0.0, low - room) if low >= 0 else low - room, high + room
