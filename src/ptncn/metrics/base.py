"""What every meter is: it looks at each step of a learner and sums up what it saw.

Meters score only the rows of `step.scored`: observed, and not the first observation of their sequence.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor

from ptncn.learner import Learner, Step


@runtime_checkable
class Meter(Protocol):
    """A running summary of steps, which can be saved with a run and goes on bit for bit."""

    name: str
    """The key of its value in reports."""

    def update(self, step: Step, x: Tensor) -> None:
        """Take in what a learner said about the observation `x` (B, n)."""

    def compute(self) -> float | dict[str, Any]:
        """The summary of everything since the last reset; NaN where nothing was scored."""

    def reset(self) -> None:
        """Forget everything."""

    def tree(self) -> dict[str, Any]:
        """Everything needed to go on: plain numbers, lists and dicts, which JSON holds exactly."""

    def load_tree(self, tree: Mapping[str, Any]) -> None:
        """Take over what `tree` of a meter with the same settings gave."""


class FrameMean(ABC):
    """The mean of one number per frame, over all scored frames of all sequences alike.

    The sums are float64 and stay on the device of the learner until `compute` is called.
    """

    name: str
    _sum: float | Tensor
    _count: int | Tensor

    def __init__(self) -> None:
        self.reset()

    @abstractmethod
    def per_frame(self, step: Step, x: Tensor) -> Tensor:
        """(B,) float64: the number of each row; those of rows that are not scored are ignored."""

    def update(self, step: Step, x: Tensor) -> None:
        self._sum = self._sum + torch.where(step.scored, self.per_frame(step, x), 0.0).sum()
        self._count = self._count + step.scored.sum()

    def compute(self) -> float:
        count = int(self._count)
        return float(self._sum) / count if count else math.nan

    def reset(self) -> None:
        self._sum, self._count = 0.0, 0

    def tree(self) -> dict[str, Any]:
        return {"sum": float(self._sum), "count": int(self._count)}

    def load_tree(self, tree: Mapping[str, Any]) -> None:
        self._sum, self._count = float(tree["sum"]), int(tree["count"])


class Wrapper:
    """Base of meters that take the place of a learner and measure it at work."""

    def __init__(self, learner: Learner) -> None:
        self.learner = learner
        self.kind, self.input_size = learner.kind, learner.input_size

    def begin(self, batch_size: int) -> Any:
        return self.learner.begin(batch_size)

    def predict(self, state: Any) -> Tensor:
        return self.learner.predict(state)

    def options(self) -> dict[str, Any]:
        return self.learner.options()

    def snapshot(self) -> dict[str, Any]:
        return self.learner.snapshot()

    def restore(self, tree: Mapping[str, Any]) -> None:
        self.learner.restore(tree)

    def update(self, step: Step, x: Tensor) -> None:
        """Nothing: the step was measured when it was taken."""
