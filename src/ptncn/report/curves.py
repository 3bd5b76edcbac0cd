"""Figures with time along the bottom: learning, prequential errors, surprise; and cost against size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike, NDArray

from ptncn.report.drawing import HEIGHT, INK, PALETTE, SOFT, canvas, finish, legend_below, rules
from ptncn.report.looks import label, line
from ptncn.report.parts import Picture

POINTS = 160
"""Of a line at most: more than a screen shows would only make the file larger."""


@dataclass(frozen=True)
class Curve:
    """An error in the course of learning."""

    model: str
    """By its registry name, which decides colour and dashes."""
    steps: Sequence[float]
    values: Sequence[float]
    name: str = ""
    """In the legend; by default that of the model."""


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
    """Learning curves; with `changes`, prequential ones: (step, name) where the world became another.

    The vertical axis ends where the better part of the curves ends: a first guess is far worse than all that follows.
    """
    if not curves:
        raise ValueError("no curve to draw")
    with rules():
        figure, axes = canvas()
        for curve in curves:
            x, y = thin(curve.steps, curve.values)
            axes.plot(x, y, label=curve.name or label(curve.model), **line(curve.model))
        axes.set_title(title)
        axes.set(xlabel=steps, ylabel=error)
        if logarithmic:
            axes.set_yscale("log")
        else:
            axes.set_ylim(*_window([curve.values for curve in curves]))
        axes.margins(x=0.01)
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        _mark(axes, changes)
        legend_below(figure, axes)
        return finish(figure, name)


def _mark(axes: Axes, changes: Sequence[tuple[float, str]]) -> None:
    """A line where the world changes, and above it what comes."""
    if len(changes) < 2:
        return
    axes.set_title(axes.get_title(loc="left"), pad=20)
    for number, (step, what) in enumerate(changes):
        if number:
            axes.axvline(step, color=INK, linewidth=1, zorder=2)
        axes.text(
            step,
            1.015,
            f"{'↓ ' if number else ''}{label(what)}",
            transform=axes.get_xaxis_transform(),
            color=INK,
            size=9,
        )


def surprise_over_time(
    name: str,
    surprise: ArrayLike,
    *,
    title: str,
    steps: str = "frame",
    times: Sequence[float] | None = None,
    changes: Sequence[tuple[float, str]] = (),
) -> Picture:
    """(T, layers) how large the errors of each layer are at each time, each layer's as a share of its mean.

    The times are 1 … T unless they are given; `changes` are as in `error_curves`.
    """
    values = np.asarray(surprise, float)
    if values.ndim != 2 or len(values) < 2:
        raise ValueError(f"surprise of shape {values.shape}; (times, layers) with two times or more would be right")
    with rules():
        figure, axes = canvas(height=HEIGHT - 0.3)
        for layer, course in enumerate(values.T):
            style = ("-", "--", "-.", ":")[layer % 4]
            mean = float(course.mean())
            axes.plot(
                np.arange(1, len(course) + 1) if times is None else times,
                course / mean if mean else course,
                linestyle=style,
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
        _mark(axes, changes)
        legend_below(figure, axes, columns=4)
        return finish(figure, name)


def cost_growth(
    name: str,
    costs: Mapping[str, Mapping[int, float]],
    exponents: Mapping[str, float],
    *,
    title: str,
    size: str,
    cost: str,
) -> Picture:
    """By model, a cost at each size, both axes logarithmic; lines are the power laws whose exponents the legend has."""
    if not any(costs.values()):
        raise ValueError("no cost to draw")
    with rules():
        figure, axes = canvas(height=HEIGHT + 0.8)
        for place, (model, points) in enumerate(costs.items()):
            sizes = np.array(sorted(points), float)
            values = np.array([points[int(each)] for each in sizes])
            colour = (*PALETTE, INK, SOFT)[place % (len(PALETTE) + 2)]
            told = f"{label(model)}: {round(exponents[model], 2) + 0:.2f}" if model in exponents else label(model)
            axes.loglog(sizes, values, "osD^vP*X"[place % 8], color=colour, markersize=6, label=told)
            if model in exponents:
                axes.loglog(sizes, _power_law(sizes, values, exponents[model]), color=colour, linewidth=1.2)
        axes.set_title(title)
        axes.set(xlabel=size, ylabel=cost)
        ticks = sorted({each for points in costs.values() for each in points})
        axes.set_xticks(ticks, [f"{each:,}" for each in ticks])
        axes.minorticks_off()
        legend_below(figure, axes, columns=2)
        return finish(figure, name)


def _power_law(sizes: NDArray[Any], values: NDArray[Any], exponent: float) -> NDArray[Any]:
    """Through the middle of the larger half of the sizes, by which the exponent was fitted."""
    half = max(0, min(len(sizes) // 2, len(sizes) - 2))
    x, y = np.log(sizes[half:]).mean(), np.log(np.maximum(values[half:], 1e-12)).mean()
    law: NDArray[Any] = np.exp(y + exponent * (np.log(sizes) - x))
    return law


def thin(steps: Sequence[float], values: Sequence[float]) -> tuple[NDArray[Any], NDArray[Any]]:
    """At most `POINTS` of them, the first and the last among them; what is no number is left out."""
    x, y = np.asarray(steps, float), np.asarray(values, float)
    if x.shape != y.shape or x.ndim != 1 or not len(x):
        raise ValueError(f"a curve of {x.shape} steps and {y.shape} values; two lists of one length would be right")
    known = np.isfinite(y)
    x, y = x[known], y[known]
    chosen = np.unique(np.linspace(0, len(x) - 1, POINTS).round().astype(int)) if len(x) > POINTS else slice(None)
    return x[chosen], y[chosen]


def _window(curves: Sequence[Sequence[float]]) -> tuple[float, float]:
    """From below the lowest value to where nearly all of every curve's later part fits."""
    later = [np.asarray(values, float)[len(values) // 40 :] for values in curves]
    known = [values[np.isfinite(values)] for values in later]
    values = np.concatenate([each for each in known if len(each)] or [np.array([0.0, 1.0])])
    low, high = float(values.min()), float(np.quantile(values, 0.995))
    room = (high - low) * 0.06 or abs(high) * 0.06 or 1.0
    return max(0.0, low - room) if low >= 0 else low - room, high + room
