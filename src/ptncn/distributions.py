"""Output distributions: the prediction that logits stand for, and the likelihood of an observation.

In each of them the error unit is prediction − observation, which is also the gradient of the negative
log-likelihood with respect to the logits. A distribution is added with one call, here or elsewhere::

    DISTRIBUTIONS.add("poisson", Distribution("poisson", torch.exp, nll=…, to_logits=…))
    DISTRIBUTIONS.add_lazy("poisson", "ptncn.poisson:POISSON")  # from another file, when it is first used
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from ptncn.registry import Registry


@dataclass(frozen=True)
class Distribution:
    """A distribution over observations of n numbers, parametrised by n logits."""

    name: str
    mean: Callable[[Tensor], Tensor]
    """(…, n) logits → (…, n) expected observation."""
    nll: Callable[[Tensor, Tensor], Tensor]
    """(…, n) logits, (…, n) observation → (…) nats; a Gaussian's constant is left out."""
    to_logits: Callable[[Tensor, Tensor | float], Tensor]
    """(…, n) mean, smallest probability → (…, n) logits. The bound keeps logits finite; a Gaussian ignores it."""
    sample: Callable[[Tensor, torch.Generator], Tensor] | None = None
    """(B, n) mean, generator → (B, n) observation; None if the mean does not determine the distribution."""
    kernel_code: int | None = None
    """The compiled kernel's number for `mean`; None: the step runs in PyTorch."""
    metrics: tuple[str, ...] = ("se",)
    """Default metrics, as names in `ptncn.metrics.METRICS`; the lowest value of the first selects the best epoch."""


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


def _gaussian_logits(mean: Tensor, least: Tensor | float) -> Tensor:
    return mean


def _bernoulli_logits(mean: Tensor, least: Tensor | float) -> Tensor:
    bound = torch.as_tensor(least, dtype=mean.dtype, device=mean.device)
    return torch.logit(torch.clamp(mean, bound, 1 - bound))


def _categorical_logits(mean: Tensor, least: Tensor | float) -> Tensor:
    mean = torch.maximum(mean, torch.as_tensor(least, dtype=mean.dtype, device=mean.device))
    return torch.log(mean / mean.sum(-1, keepdim=True))


def _uniform(like: Tensor, generator: torch.Generator) -> Tensor:
    return torch.rand(like.shape, generator=generator, dtype=like.dtype).to(like.device)


def _bernoulli_sample(mean: Tensor, generator: torch.Generator) -> Tensor:
    return (_uniform(mean, generator) < mean).to(mean.dtype)


def _categorical_sample(mean: Tensor, generator: torch.Generator) -> Tensor:
    classes = mean.shape[-1]
    symbol = (_uniform(mean, generator)[:, :1] > mean.cumsum(-1)).sum(-1).clamp_max(classes - 1)
    return F.one_hot(symbol, classes).to(mean.dtype)


GAUSSIAN = Distribution("gaussian", _identity, _gaussian_nll, _gaussian_logits, kernel_code=0)
BERNOULLI = Distribution(
    "bernoulli",
    torch.sigmoid,
    _bernoulli_nll,
    _bernoulli_logits,
    _bernoulli_sample,
    kernel_code=2,
    metrics=("ce", "se"),
)
CATEGORICAL = Distribution(
    "categorical",
    _softmax,
    _categorical_nll,
    _categorical_logits,
    _categorical_sample,
    kernel_code=9,
    metrics=("bpc",),
)

DISTRIBUTIONS: Registry[Distribution] = Registry(
    "distribution",
    "ptncn.distributions",
    {
        "gaussian": GAUSSIAN,
        "bernoulli": BERNOULLI,
        "categorical": CATEGORICAL,
    },
)
"""Every distribution that `output=` accepts."""
