"""Errors of predictions by name: squared error, cross-entropy, bits a character, accuracy.

Tables, figures and records find the label, unit and digits of an error in `METRICS`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from ptncn.learner import Step
from ptncn.metrics.base import FrameMean
from ptncn.registry import Registry


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

    Made from the logits, so that a confident mistake costs its logit and not infinity. `x` lies in [0, 1].
    """

    name = "ce"

    def per_frame(self, step: Step, x: Tensor) -> Tensor:
        logits = step.logits.double()
        return binary_cross_entropy_with_logits(logits, x.to(logits), reduction="none").sum(-1)


class BPC(FrameMean):
    """Bits a character: −log₂ of the probability that a categorical output gave to the one-hot `x`."""

    name = "bpc"

    def per_frame(self, step: Step, x: Tensor) -> Tensor:
        return -(torch.log_softmax(step.logits.double(), dim=-1) * x).sum(-1) / math.log(2)


class Accuracy(FrameMean):
    """The share of frames whose likeliest class was the one of the one-hot `x`."""

    name = "accuracy"

    def per_frame(self, step: Step, x: Tensor) -> Tensor:
        return (step.prediction.argmax(-1) == x.argmax(-1)).double()


@dataclass(frozen=True)
class Metric:
    """One error of predictions."""

    make: type[FrameMean]
    """The meter's class; its `name` is the name in the registry."""
    label: str
    """What tables and figures call it."""
    unit: str = ""
    digits: int = 2
    """Digits after the point in tables."""
    lower_is_better: bool = True


METRICS: Registry[Metric] = Registry(
    "metric",
    "ptncn.metrics",
    {
        "se": Metric(SE, "SE"),
        "ce": Metric(CE, "CE", "nats"),
        "bpc": Metric(BPC, "BPC", "bits", digits=3),
        "accuracy": Metric(Accuracy, "accuracy", digits=3, lower_is_better=False),
    },
)
"""Every metric that experiments and the training loop know by name."""


def make_metric(name: str) -> FrameMean:
    """A fresh meter by its registry name.

    >>> make_metric("se").name
    'se'
    """
    return METRICS.find(name).make()
