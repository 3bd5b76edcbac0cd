"""Activation functions φ. Learning needs no derivatives, so any callable on tensors works.

The correction only needs φ to be non-decreasing (if it is stochastic, its outputs stochastically so).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor
from torch.nn import functional as F

from ptncn.registry import unknown

Activation = Callable[[Tensor], Tensor]
Reach = Callable[[Tensor, float], Tensor]


def identity(a: Tensor) -> Tensor:
    return a


def step(a: Tensor) -> Tensor:
    """1 where the drive is at least 0, else 0."""
    return (a >= 0).to(a.dtype)


def winners_take_all(a: Tensor, share: float) -> Tensor:
    """1 for the fraction `share` of units with the largest drives (at least one), 0 for the others."""
    count = max(1, round(share * a.shape[-1]))
    return torch.zeros_like(a).scatter_(-1, a.topk(count, dim=-1).indices, 1.0)


def bernoulli(a: Tensor, generator: torch.Generator) -> Tensor:
    """1 with probability sigmoid(a), else 0."""
    draw = torch.rand(a.shape, generator=generator, dtype=a.dtype, device=generator.device)
    return (draw.to(a.device) < torch.sigmoid(a)).to(a.dtype)


ACTIVATIONS: dict[str, Activation] = {
    "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
    "relu": torch.relu,
    "relu6": F.relu6,
    "leaky_relu": F.leaky_relu,
    "gelu": F.gelu,
    "identity": identity,
    "sign": torch.sign,
    "step": step,
}
NAMES = (*ACTIVATIONS, "kwta", "bernoulli")


def get_activation(choice: str | Activation, winners: float, generator: torch.Generator) -> Activation:
    """The activation of that name; callables are returned unchanged.

    `winners` is the fraction of active units under "kwta", `generator` the random generator under "bernoulli".
    """
    if callable(choice):
        return choice
    if choice == "kwta":
        return partial(winners_take_all, share=winners)
    if choice == "bernoulli":
        return partial(bernoulli, generator=generator)
    if choice not in ACTIVATIONS:
        raise ValueError(f"{unknown('activation', choice, NAMES)}; or give a callable")
    return ACTIVATIONS[choice]


def get_reach(phi: Activation) -> Reach | None:
    """The displacement of drives that changes φ; None if φ has a slope, so that any displacement does.

    The distance to a threshold scales with the drives. A draw from sigmoid(a) has the scale of the sigmoid: 1.
    """
    function = phi.func if isinstance(phi, partial) else phi
    if function is bernoulli:
        return _absolute
    return _usual_drive if function in (torch.sign, step, winners_take_all) else None


def _absolute(a: Tensor, share: float) -> Tensor:
    return torch.full_like(a[:, :1], share)


def _usual_drive(a: Tensor, share: float) -> Tensor:
    """(B, 1) the root mean square of a row's drives, times `share`."""
    return share * a.square().mean(-1, keepdim=True).sqrt().clamp_min(1e-6)
