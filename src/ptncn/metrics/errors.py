"""Errors of predictions: squared error, cross-entropy, bits a character, accuracy."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from ptncn.learner import Step
from ptncn.metrics.base import FrameMean


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
