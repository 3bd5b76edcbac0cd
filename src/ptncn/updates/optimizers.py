"""What turns an update into a step of the weights.

`sgd` and `momentum` work on the factors; `rmsprop` and `adam` need the dense gradient, made in a buffer that all
weights share. The definitions are those of `torch.optim`. Each tells by how much a step can lengthen a row of
the weights, which `MaxNorm` needs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from ptncn.updates.synapses import Synapses

if TYPE_CHECKING:
    from ptncn.network.config import Config

FLOOR = 1e-30
"""Added to moments, which would otherwise decay into denormal numbers, on which processors are very slow."""


class Optimizer(nn.Module):
    """Holds moments for named weights as buffers, so that they follow the network to its device and dtype."""

    moments: tuple[str, ...] = ()

    def __init__(self, weights: Mapping[str, Tensor], config: Config) -> None:
        super().__init__()
        self.config = config
        self.updates = 0
        for name, weight in weights.items():
            for moment in self.moments:
                self.register_buffer(f"{name}_{moment}", torch.zeros_like(weight), persistent=False)

    def moment(self, name: str, moment: str) -> Tensor:
        return self.get_buffer(f"{name}_{moment}")

    def step(self, name: str, synapses: Synapses, pre: Tensor, post: Tensor, lr: float, decay: float) -> None:
        """Move the weights (from, to) against preᵀ post; before that, shrink them by `decay`."""
        raise NotImplementedError

    def growth(self, longest: float | None, lr: float, width: int) -> float:
        """How much a step can lengthen a row of `width`, updates being at most `longest`."""
        raise NotImplementedError


class SGD(Optimizer):
    def step(self, name: str, synapses: Synapses, pre: Tensor, post: Tensor, lr: float, decay: float) -> None:
        synapses.add(pre, post, scale=-lr, keep=1 - decay)

    def growth(self, longest: float | None, lr: float, width: int) -> float:
        return math.inf if longest is None else lr * longest


class Momentum(Optimizer):
    moments = ("velocity",)

    def step(self, name: str, synapses: Synapses, pre: Tensor, post: Tensor, lr: float, decay: float) -> None:
        weight = synapses.weight
        velocity = self.moment(name, "velocity")
        velocity.addmm_(*with_floor(pre, post), beta=self.config.momentum)
        if self.config.optimizer == "nesterov":
            weight.addmm_(pre.T, post, beta=1 - decay, alpha=-lr)
            weight.add_(velocity, alpha=-lr * self.config.momentum)
        else:
            if decay:
                weight.mul_(1 - decay)
            weight.add_(velocity, alpha=-lr)

    def growth(self, longest: float | None, lr: float, width: int) -> float:
        if longest is None or self.config.momentum == 1:
            return math.inf
        return lr * longest / (1 - self.config.momentum)  # no velocity is longer than the geometric sum


class Adaptive(Optimizer):
    """RMSprop and Adam: the step is divided by the root of a running mean of squared gradients."""

    def __init__(self, weights: Mapping[str, Tensor], config: Config) -> None:
        super().__init__(weights, config)
        largest = max((weight.numel() for weight in weights.values()), default=0)
        some = next(iter(weights.values()))
        self.register_buffer("gradient", some.new_empty(largest), persistent=False)
        self.register_buffer("scratch", some.new_empty(largest), persistent=False)

    def dense(self, weight: Tensor, pre: Tensor, post: Tensor) -> tuple[Tensor, Tensor]:
        """The gradient, and a buffer of its shape."""
        gradient = self.get_buffer("gradient")[: weight.numel()].view(weight.shape)
        return torch.mm(*with_floor(pre, post), out=gradient), self.get_buffer("scratch")[: weight.numel()].view(
            weight.shape
        )

    def descend(
        self,
        weight: Tensor,
        direction: Tensor,
        square: Tensor,
        scratch: Tensor,
        lr: float,
        decay: float,
        root: float,
    ) -> None:
        """weight −= lr · direction / (√square / root + eps)"""
        torch.sqrt(square, out=scratch)
        if root != 1:
            scratch.div_(root)
        scratch.add_(self.config.eps)
        if decay:
            weight.mul_(1 - decay)
        weight.addcdiv_(direction, scratch, value=-lr)

    @staticmethod
    def track(square: Tensor, gradient: Tensor, scratch: Tensor, decay: float) -> None:
        """square = decay · square + (1 − decay) · gradient²"""
        torch.addcmul(square.new_tensor(FLOOR), gradient, gradient, out=scratch)
        square.lerp_(scratch, 1 - decay)


class RMSprop(Adaptive):
    moments = ("square",)

    def step(self, name: str, synapses: Synapses, pre: Tensor, post: Tensor, lr: float, decay: float) -> None:
        weight = synapses.weight
        square = self.moment(name, "square")
        gradient, scratch = self.dense(weight, pre, post)
        self.track(square, gradient, scratch, self.config.alpha)
        self.descend(weight, gradient, square, scratch, lr, decay, root=1)

    def growth(self, longest: float | None, lr: float, width: int) -> float:
        return lr * math.sqrt(width / (1 - self.config.alpha)) if self.config.alpha < 1 else math.inf


class Adam(Adaptive):
    moments = ("mean", "square")

    def step(self, name: str, synapses: Synapses, pre: Tensor, post: Tensor, lr: float, decay: float) -> None:
        weight = synapses.weight
        beta1, beta2 = self.config.beta1, self.config.beta2
        mean, square = self.moment(name, "mean"), self.moment(name, "square")
        gradient, scratch = self.dense(weight, pre, post)
        mean.lerp_(gradient, 1 - beta1)
        self.track(square, gradient, scratch, beta2)
        count = self.updates + 1
        root = math.sqrt(1 - beta2**count)
        self.descend(weight, mean, square, scratch, lr / (1 - beta1**count), decay, root)

    def growth(self, longest: float | None, lr: float, width: int) -> float:
        """By Cauchy and Schwarz on the two running means: |mean| ≤ √square · √Σ (1−β₁)² β₁²ⁱ / ((1−β₂) β₂ⁱ)."""
        beta1, beta2, count = self.config.beta1, self.config.beta2, self.updates + 1
        ratio = beta1 * beta1 / beta2 if beta2 else math.inf
        if ratio >= 1 or beta2 == 1:
            return math.inf
        raw = (1 - beta1) / math.sqrt((1 - beta2) * (1 - ratio))
        return lr * math.sqrt(width * (1 - beta2**count)) * raw / (1 - beta1**count)


def with_floor(pre: Tensor, post: Tensor) -> tuple[Tensor, Tensor]:
    """preᵀ and post with one more row, whose outer product adds FLOOR everywhere."""
    root = math.sqrt(FLOOR)
    pre = torch.cat([pre, pre.new_full((1, pre.shape[1]), root)])
    post = torch.cat([post, post.new_full((1, post.shape[1]), root)])
    return pre.T, post


OPTIMIZERS: dict[str, type[Optimizer]] = {
    "sgd": SGD,
    "momentum": Momentum,
    "nesterov": Momentum,
    "rmsprop": RMSprop,
    "adam": Adam,
}
