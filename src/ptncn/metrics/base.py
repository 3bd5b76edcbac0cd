"""Meters summarise the steps of a learner: the protocol, and errors of predictions.

Meters score only the rows of `step.scored`: observed, and not the first observation of their sequence.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from ptncn.learner import Learner, Step
from ptncn.registry import Registry


@runtime_checkable
class Meter(Protocol):
    """A running summary of steps, which can be saved with a run and continued bit for bit."""

    name: str
    """The key of its value in reports."""

    def update(self, step: Step, x: Tensor) -> None:
        """Add a step of a learner and its observation `x` (B, n)."""

    def compute(self) -> float | dict[str, Any]:
        """The summary since the last reset; NaN if nothing was scored."""

    def reset(self) -> None:
        """Forget everything."""

    def tree(self) -> dict[str, Any]:
        """The state of the meter as numbers, lists and dicts that JSON represents exactly."""

    def load_tree(self, tree: Mapping[str, Any]) -> None:
        """Restore the `tree` of a meter with the same settings."""


class FrameMean(ABC):
    """The mean of one number per frame over all scored frames of all sequences.

    The sums are float64 and stay on the device of the learner until `compute` is called.
    """

    name: str
    _sum: float | Tensor
    _count: int | Tensor

    def __init__(self) -> None:
        self.reset()

    @abstractmethod
    def per_frame(self, step: Step, x: Tensor) -> Tensor:
        """(B,) float64: the number of each row; rows that are not scored are ignored."""

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
    """Base of meters that wrap a learner and measure its calls."""

    def __init__(self, learner: Learner) -> None:
        self.learner = learner
        self.registry_name, self.input_size = learner.registry_name, learner.input_size

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
        """Do nothing: the step was measured when it was taken."""


class SE(FrameMean):
    """Squared error: summed over the n features of a frame, mean over frames and sequences.

    >>> from ptncn.learner import Step
    >>> guess, scored = torch.tensor([[0.5, 0.0]]), torch.tensor([True])
    >>> step = Step(prediction=guess, logits=guess, errors=(), scored=scored)
    >>> meter = SE()
    >>> meter.update(step, torch.tensor([[1.0, 1.0]]))
    >>> meter.compute()
    1.25
    """

    name = "se"

    def per_frame(self, step: Step, x: Tensor) -> Tensor:
        return (step.prediction.double() - x).square().sum(-1)


class CE(FrameMean):
    """Cross-entropy of a Bernoulli output in nats: summed over the n pixels of a frame, mean over frames.

    Computed from the logits, so that a confident mistake has a finite cost. `x` is in [0, 1].
    """

    name = "ce"

    def per_frame(self, step: Step, x: Tensor) -> Tensor:
        logits = step.logits.double()
        return binary_cross_entropy_with_logits(logits, x.to(logits), reduction="none").sum(-1)


class BPC(FrameMean):
    """Bits per character: −log₂ of the probability of the one-hot `x` under a categorical output."""

    name = "bpc"

    def per_frame(self, step: Step, x: Tensor) -> Tensor:
        return -(torch.log_softmax(step.logits.double(), dim=-1) * x).sum(-1) / math.log(2)


class Accuracy(FrameMean):
    """The share of frames whose most probable class is that of the one-hot `x`."""

    name = "accuracy"

    def per_frame(self, step: Step, x: Tensor) -> Tensor:
        return (step.prediction.argmax(-1) == x.argmax(-1)).double()


@dataclass(frozen=True)
class Metric:
    """One error of predictions."""

    make: type[FrameMean]
    """The meter's class; its `name` is the name in the registry."""
    label: str
    """The label in tables and figures."""


METRICS: Registry[Metric] = Registry(
    "metric",
    "ptncn.metrics",
    {
        "se": Metric(SE, "SE"),
        "ce": Metric(CE, "CE"),
        "bpc": Metric(BPC, "BPC"),
        "accuracy": Metric(Accuracy, "accuracy"),
    },
)
"""Every metric that experiments and the training loop find by name."""


def make_metric(name: str) -> FrameMean:
    """Make a meter by its registry name.

    >>> make_metric("se").name
    'se'
    """
    return METRICS.find(name).make()
