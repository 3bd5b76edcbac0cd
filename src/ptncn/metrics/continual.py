"""Meters for continual learning: the prequential error, and the task matrix."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ptncn.learner import Step
from ptncn.metrics.base import FrameMean
from ptncn.registry import unknown


class Point(NamedTuple):
    """One point of a prequential curve."""

    step: int
    """Steps taken, counted from 1."""
    mean: float
    """The mean error of all scored frames so far."""
    faded: float
    """The recent mean error, with exponential forgetting."""


class Prequential:
    """The test-then-train error of an endless stream, in bounded memory [^1].

    `error` is the measure, such as `SE()`. The cumulative mean weights all frames equally; the faded mean weights a
    frame k scored steps back by fading^k, so that it covers about 1/(1 − fading) of them. `curve()` holds up to
    `points` evenly spaced points: when it is full, every other one is dropped.

    >>> from ptncn.learner import Step
    >>> from ptncn.metrics.base import SE
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
        decay = self.fading ** (count > 0).double()  # no decay in steps where nothing is scored
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
        """Both means over time, oldest first."""
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


class TaskMatrix:
    """Losses on every task, before any training and after each task, in the order of learning.

    `R[i][j]` is the loss on task j after i tasks; row 0 is the untrained learner. The names follow Avalanche, the signs
    are those for losses: positive forgetting is bad, positive transfer is good.

    >>> matrix = TaskMatrix(["mnist", "fashion"])
    >>> for learnt, losses in enumerate([(9.0, 8.0), (2.0, 7.0), (3.0, 1.0)]):
    ...     for task, loss in zip(matrix.tasks, losses):
    ...         matrix.record(learnt, task, loss)
    >>> matrix.average()  # (3 + 1) / 2
    2.0
    >>> matrix.forgetting()  # mnist rose from 2 to 3
    1.0
    >>> matrix.forward_transfer()  # mnist alone took fashion from 8 to 7
    1.0
    """

    name = "tasks"

    def __init__(self, tasks: Sequence[str]) -> None:
        if not tasks or len(set(tasks)) != len(tasks):
            raise ValueError(f"tasks: expected different names, at least one, got {list(tasks)!r}")
        self.tasks = tuple(tasks)
        self.reset()

    def record(self, learnt: int, task: str, loss: float) -> None:
        """Record the loss on `task` after the first `learnt` tasks; 0 is before any training."""
        if task not in self.tasks:
            raise ValueError(unknown("task", task, self.tasks))
        if not 0 <= learnt <= len(self.tasks):
            raise ValueError(f"learnt: expected 0 to {len(self.tasks)} tasks, got {learnt!r}")
        self.losses[learnt][self.tasks.index(task)] = float(loss)

    def average(self) -> float:
        """The mean final loss over all tasks: row T."""
        last = len(self.tasks)
        return fmean(self._loss(last, task) for task in range(last))

    def forgetting(self) -> float:
        """The increase of the loss on a task since it was learnt, as a mean over all but the last task."""
        last = len(self.tasks)
        return _mean(self._loss(last, task) - self._loss(task + 1, task) for task in range(last - 1))

    def backward_transfer(self) -> float:
        """The decrease of the loss on earlier tasks through later ones: −forgetting."""
        return -self.forgetting()

    def forward_transfer(self) -> float:
        """The decrease of the loss on a task through earlier ones, as a mean over all but the first task."""
        return _mean(self._loss(0, task) - self._loss(task, task) for task in range(1, len(self.tasks)))

    def compute(self) -> dict[str, Any]:
        """All four; NaN for those that need more than one task."""
        return {
            "average": self.average(),
            "forgetting": self.forgetting(),
            "backward_transfer": self.backward_transfer(),
            "forward_transfer": self.forward_transfer(),
        }

    def reset(self) -> None:
        width = len(self.tasks)
        self.losses: list[list[float | None]] = [[None] * width for _ in range(width + 1)]

    def tree(self) -> dict[str, Any]:
        return {"tasks": list(self.tasks), "losses": [list(row) for row in self.losses]}

    def load_tree(self, tree: Mapping[str, Any]) -> None:
        if tuple(tree["tasks"]) != self.tasks:
            raise ValueError(f"tasks: expected {list(self.tasks)}, got {list(tree['tasks'])}")
        self.losses = [list(row) for row in tree["losses"]]

    def _loss(self, learnt: int, task: int) -> float:
        loss = self.losses[learnt][task]
        if loss is None:
            when = f"after {self.tasks[learnt - 1]!r}" if learnt else "before any training"
            raise ValueError(f"no loss was recorded on task {self.tasks[task]!r} {when}")
        return loss


def _mean(values: Iterable[float]) -> float:
    numbers = list(values)
    return fmean(numbers) if numbers else math.nan
