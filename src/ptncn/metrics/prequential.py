"""Prequential error: each observation tests the learner before it teaches it; no task boundary is needed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ptncn.learner import Step
from ptncn.metrics.base import FrameMean


class Point(NamedTuple):
    """One point of a prequential curve."""

    step: int
    """Steps taken, counted from 1."""
    mean: float
    """The mean error of all scored frames so far."""
    faded: float
    """The mean error of late, older frames fading away."""


class Prequential:
    """The test-then-train error of an endless stream, in bounded memory [^1].

    `error` says what is measured: an `SE()`, for example. The cumulative mean never forgets the beginning;
    the faded mean weighs a frame that lies k scored steps back by fading^k, so that it remembers about
    1/(1 − fading) of them. `curve()` holds up to `points` evenly spaced points: when it is full, every other
    one is dropped.

    >>> from ptncn.learner import Step
    >>> from ptncn.metrics.errors import SE
    >>> meter = Prequential(SE(), fading=0.5)
    >>> for error in (4.0, 0.0):
    ...     guess = torch.tensor([[error**0.5]])
    ...     meter.update(Step(guess, guess, (), torch.tensor([True])), torch.zeros(1, 1))
    >>> meter.compute()  # (4 + 0) / 2, and (0.5·4 + 0) / (0.5 + 1)
    {'mean': 2.0, 'faded': 1.3333333333333333}

    [^1]: Gama, Sebastião, Rodrigues: On evaluating stream learning algorithms. Machine Learning 90, 2013.
    """

    _sum: float | Tensor
    _count: int | Tensor
    _faded_sum: float | Tensor
    _faded_count: float | Tensor
    _steps: int
    _every: int
    _curve: list[Point]

    def __init__(self, error: FrameMean, *, fading: float = 0.999, points: int = 1000) -> None:
        if not 0 < fading <= 1:
            raise ValueError(f"fading: expected a number above 0 and at most 1, got {fading!r}")
        if points < 2:
            raise ValueError(f"points: expected at least 2, got {points!r}")
        self.error, self.fading, self.points = error, fading, points
        self.name = f"prequential_{error.name}"
        self.reset()

    def update(self, step: Step, x: Tensor) -> None:
        total = torch.where(step.scored, self.error.per_frame(step, x), 0.0).sum()
        count = step.scored.sum()
        decay = self.fading ** (count > 0).double()  # time stands still where nothing is scored
        self._sum = self._sum + total
        self._count = self._count + count
        self._faded_sum = self._faded_sum * decay + total
        self._faded_count = self._faded_count * decay + count
        self._steps += 1
        if self._steps % self._every == 0 and self._count:
            self._add_point()

    def compute(self) -> dict[str, Any]:
        return {
            "mean": _ratio(self._sum, self._count),
            "faded": _ratio(self._faded_sum, self._faded_count),
        }

    def curve(self) -> list[Point]:
        """The course of both means, the oldest first."""
        return list(self._curve)

    def reset(self) -> None:
        self._sum, self._count = 0.0, 0
        self._faded_sum, self._faded_count = 0.0, 0.0
        self._steps, self._every = 0, 1
        self._curve = []

    def tree(self) -> dict[str, Any]:
        return {
            "sum": float(self._sum),
            "count": int(self._count),
            "faded_sum": float(self._faded_sum),
            "faded_count": float(self._faded_count),
            "steps": self._steps,
            "every": self._every,
            "curve": [list(point) for point in self._curve],
        }

    def load_tree(self, tree: Mapping[str, Any]) -> None:
        self._sum, self._count = float(tree["sum"]), int(tree["count"])
        self._faded_sum, self._faded_count = float(tree["faded_sum"]), float(tree["faded_count"])
        self._steps, self._every = int(tree["steps"]), int(tree["every"])
        self._curve = [Point(*point) for point in tree["curve"]]

    def _add_point(self) -> None:
        if len(self._curve) == self.points:
            self._every *= 2
            self._curve = [point for point in self._curve if point.step % self._every == 0]
            if self._steps % self._every:
                return
        self._curve.append(Point(self._steps, **self.compute()))


def _ratio(total: float | Tensor, count: float | Tensor) -> float:
    return float(total) / float(count) if count else math.nan
