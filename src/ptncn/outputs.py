"""Output distributions: how logits become a prediction, and how surprising an observation is under it.

In each of them the error unit is prediction − observation, which is also the gradient of the negative
log-likelihood with respect to the logits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F


def _identity(logits: Tensor) -> Tensor:
    return logits


def _softmax(logits: Tensor) -> Tensor:
    return torch.softmax(logits, dim=-1)


def _gaussian_nll(logits: Tensor, x: Tensor) -> Tensor:
    return 0.5 * (logits - x).square().sum(-1)


def _bernoulli_nll(logits: Tensor, x: Tensor) -> Tensor:
    return F.binary_cross_entropy_with_logits(logits, x, reduction="none").sum(-1)


def _categorical_nll(logits: Tensor, x: Tensor) -> Tensor:
    return -(x * torch.log_softmax(logits, dim=-1)).sum(-1)


@dataclass(frozen=True)
class Output:
    """A distribution over observations of n numbers, parametrised by n logits."""

    name: str
    mean: Callable[[Tensor], Tensor]
    """(…, n) logits → (…, n) expected observation."""
    nll: Callable[[Tensor, Tensor], Tensor]
    """(…, n) logits, (…, n) observation → (…) nats; a Gaussian's constant is left out."""


OUTPUTS = {
    "gaussian": Output("gaussian", _identity, _gaussian_nll),
    "bernoulli": Output("bernoulli", torch.sigmoid, _bernoulli_nll),
    "categorical": Output("categorical", _softmax, _categorical_nll),
}


def get_output(name: str) -> Output:
    """
    >>> get_output("bernoulli").name
    'bernoulli'
    """
    if name not in OUTPUTS:
        raise ValueError(f"unknown output {name!r}; choose one of: {', '.join(OUTPUTS)}")
    return OUTPUTS[name]
