"""Optimisers: from an update to a step of the weights.

Plain descent works on the factors. The others keep moments of the size of the weights and pass over both once, in
compiled code if available. The definitions are those of `torch.optim`. Each one bounds how much a step can lengthen a
row of the weights, which `MaxNorm` needs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from ptncn import kernels
from ptncn.registry import Registry
from ptncn.updates.config import Options
from ptncn.updates.factors import Synapses

FLOOR = 1e-30
"""Added to moments, which would otherwise decay to denormal numbers and become very slow."""


class Optimizer(nn.Module):
    """Holds moments for named weights as buffers, so that they follow the network to its device and dtype."""

    moments: tuple[str, ...] = ()
    kernel_code: int | None = None
    """The optimiser's code in `kernels/step.h`; None: its steps run in PyTorch."""
    stays_factored = False
    """Whether a step is a sum of outer products, which can be queued."""
    varies = False
    """Whether the kernel's description of a step changes from step to step at the same step size."""

    def __init__(self, weights: Mapping[str, Tensor], config: Options) -> None:
        super().__init__()
        self.config = config
        self.updates = 0
        for name, weight in weights.items():
            for moment in self.moments:
                self.register_buffer(f"{name}_{moment}", torch.zeros_like(weight), persistent=False)

    def count_update(self) -> None:
        """Count a step of all weights."""
        self.__dict__["updates"] += 1  # much faster than `nn.Module.__setattr__`, which matters for small networks

    def held(self, name: str) -> list[Tensor]:
        """The moments of the weights of that name; none if they do not learn."""
        held = (self._buffers.get(f"{name}_{moment}") for moment in self.moments)
        return [moment for moment in held if moment is not None]

    def step(self, name: str, synapses: Synapses, pre: Tensor, post: Tensor, lr: float, decay: float) -> None:
        """Shrink the weights (from, to) by `decay`, then step against preᵀ post."""
        weight, moments, post = synapses.weight, self.held(name), synapses.own(post)
        usable = weight.is_cpu and len(pre) <= kernels.MOST_ROWS
        if self.kernel_code is not None and usable and kernels.load() is not None:
            first, second = self.places(*moments)
            kernels.update(self.rule(lr, decay), weight, first, second, pre, post)
            return
        if decay:
            weight.mul_(1 - decay)
        self.move(weight, moments, pre, post, lr)

    def move(self, weight: Tensor, moments: list[Tensor], pre: Tensor, post: Tensor, lr: float) -> None:
        """The step in PyTorch, used if there is no compiled one."""
        raise NotImplementedError

    def places(self, *moments: Tensor) -> tuple[Tensor | None, Tensor | None]:
        """The running mean and the running mean of squares, if any."""
        raise NotImplementedError

    def rule(self, lr: float, decay: float) -> Any:
        """The kernel's description of a step."""
        return kernels.structure("Rule")(
            optimizer=self.kernel_code,
            keep=1 - decay,
            rate=lr,
            momentum=self.config.momentum,
            eps=self.config.eps,
        )

    def growth(self, longest: float | None, lr: float, width: int, height: int = 1) -> float:
        """An upper bound on how much a step lengthens one of `height` rows of `width`, for updates up to `longest`.

        Without a bound, norms are checked after every step.
        """
        return math.inf


class SGD(Optimizer):
    kernel_code = 0
    stays_factored = True

    def step(self, name: str, synapses: Synapses, pre: Tensor, post: Tensor, lr: float, decay: float) -> None:
        synapses.add(pre, post, scale=-lr, keep=1 - decay)

    def growth(self, longest: float | None, lr: float, width: int, height: int = 1) -> float:
        return math.inf if longest is None else lr * longest


class Momentum(Optimizer):
    """velocity = momentum · velocity + gradient"""

    moments = ("velocity",)
    kernel_code = 1

    def move(self, weight: Tensor, moments: list[Tensor], pre: Tensor, post: Tensor, lr: float) -> None:
        velocity = self.accelerate(moments, pre, post)
        weight.add_(velocity, alpha=-lr)

    def accelerate(self, moments: list[Tensor], pre: Tensor, post: Tensor) -> Tensor:
        return moments[0].addmm_(*with_floor(pre, post), beta=self.config.momentum)

    def places(self, *moments: Tensor) -> tuple[Tensor | None, Tensor | None]:
        return moments[0], None

    def growth(self, longest: float | None, lr: float, width: int, height: int = 1) -> float:
        if longest is None or self.config.momentum == 1:
            return math.inf
        return lr * longest / (1 - self.config.momentum)  # the velocity is bounded by the geometric sum


class Nesterov(Momentum):
    """Momentum that looks one step ahead."""

    kernel_code = 2

    def move(self, weight: Tensor, moments: list[Tensor], pre: Tensor, post: Tensor, lr: float) -> None:
        velocity = self.accelerate(moments, pre, post)
        weight.addmm_(pre.T, post, alpha=-lr)
        weight.add_(velocity, alpha=-lr * self.config.momentum)


class RMSprop(Optimizer):
    """gradient / √(running mean of squared gradients)"""

    moments = ("square",)
    kernel_code = 3

    def move(self, weight: Tensor, moments: list[Tensor], pre: Tensor, post: Tensor, lr: float) -> None:
        (square,) = moments
        gradient = torch.mm(*with_floor(pre, post))
        square.lerp_(gradient.square().add_(FLOOR), 1 - self.config.alpha)
        weight.addcdiv_(gradient, square.sqrt().add_(self.config.eps), value=-lr)

    def places(self, *moments: Tensor) -> tuple[Tensor | None, Tensor | None]:
        return None, moments[0]

    def rule(self, lr: float, decay: float) -> Any:
        rule = super().rule(lr, decay)
        rule.beta2 = self.config.alpha
        return rule

    def growth(self, longest: float | None, lr: float, width: int, height: int = 1) -> float:
        return lr * math.sqrt(width / (1 - self.config.alpha)) if self.config.alpha < 1 else math.inf


class Adam(Optimizer):
    """Running mean of gradients / √(running mean of their squares), both corrected for their start at 0."""

    moments = ("mean", "square")
    kernel_code = 4
    varies = True

    def corrections(self) -> tuple[float, float]:
        """Factors on the mean and on the root of the squares, for the next update."""
        count = self.updates + 1
        return 1 / (1 - self.config.beta1**count), 1 / math.sqrt(1 - self.config.beta2**count)

    def move(self, weight: Tensor, moments: list[Tensor], pre: Tensor, post: Tensor, lr: float) -> None:
        mean, square = moments
        for_mean, for_root = self.corrections()
        gradient = torch.mm(*with_floor(pre, post))
        mean.lerp_(gradient, 1 - self.config.beta1)
        square.lerp_(gradient.square().add_(FLOOR), 1 - self.config.beta2)
        weight.addcdiv_(mean, square.sqrt().mul_(for_root).add_(self.config.eps), value=-lr * for_mean)

    def places(self, *moments: Tensor) -> tuple[Tensor | None, Tensor | None]:
        return moments[0], moments[1]

    def rule(self, lr: float, decay: float) -> Any:
        rule = super().rule(lr, decay)
        for_mean, rule.root = self.corrections()
        rule.rate = lr * for_mean
        rule.beta1, rule.beta2 = self.config.beta1, self.config.beta2
        return rule

    def growth(self, longest: float | None, lr: float, width: int, height: int = 1) -> float:
        """By Cauchy and Schwarz on the two running means: |mean| ≤ √square · √Σ (1−β₁)² β₁²ⁱ / ((1−β₂) β₂ⁱ)."""
        beta1, beta2 = self.config.beta1, self.config.beta2
        ratio = beta1 * beta1 / beta2 if beta2 else math.inf
        if ratio >= 1 or beta2 == 1:
            return math.inf
        for_mean, for_root = self.corrections()
        return lr * math.sqrt(width) * for_mean / for_root * (1 - beta1) / math.sqrt((1 - beta2) * (1 - ratio))


class Adafactor(Optimizer):
    """gradient / √(running mean of its squares), the squares as an outer product of their means by row and by column.

    With r_i and c_j the running means of squared gradients over a row and over a column, the square at i, j is
    approximated by r_i c_j / mean(r), which is exact for a single outer product. Dividing by its root scales the two
    factors of the update separately, so it stays factored. Steps with a root mean square above 1 are scaled down to 1
    (Shazeer and Stern, 2018); means are corrected for their start at 0, as in Adam. `alpha` is their decay.
    """

    moments = ("rows", "columns")
    kernel_code = 5
    stays_factored = True
    varies = True

    def __init__(self, weights: Mapping[str, Tensor], config: Options) -> None:
        super().__init__({}, config)
        for name, weight in weights.items():
            for moment, size in zip(self.moments, weight.shape, strict=True):
                self.register_buffer(f"{name}_{moment}", weight.new_zeros(size), persistent=False)

    def step(self, name: str, synapses: Synapses, pre: Tensor, post: Tensor, lr: float, decay: float) -> None:
        rows, columns = self.held(name)
        fresh, correction = 1 - self.config.alpha, self.correction()
        largest = pre.abs().max().clamp_min(FLOOR)  # a tiny update at unit norm is ∞ · 0 in its squares otherwise
        pre, post = pre / largest, post * largest
        rows.lerp_(mean_squares(pre, post).add_(FLOOR), fresh)
        columns.lerp_(mean_squares(post, pre).add_(FLOOR), fresh)
        mean_row = (rows.mean() * correction).sqrt()
        pre = pre * (mean_row / (rows * correction).sqrt().add_(self.config.eps))
        post = post / (columns * correction).sqrt().add_(self.config.eps)
        squared = ((pre @ pre.T) * (post @ post.T)).sum().clamp_min(0.0) / math.prod(synapses.shape)
        synapses.add(pre / squared.sqrt().clamp_min(1.0), post, scale=-lr, keep=1 - decay)

    def correction(self) -> float:
        """The factor on running means, for the next update."""
        weight = 1 - self.config.alpha ** (self.updates + 1)
        return 1 / weight if weight else 1.0

    def places(self, *moments: Tensor) -> tuple[Tensor | None, Tensor | None]:
        return moments[0], moments[1]

    def rule(self, lr: float, decay: float) -> Any:
        rule = super().rule(lr, decay)
        rule.beta2, rule.root = self.config.alpha, self.correction()
        return rule

    def growth(self, longest: float | None, lr: float, width: int, height: int = 1) -> float:
        return lr * math.sqrt(width * height)


def mean_squares(pre: Tensor, post: Tensor) -> Tensor:
    """(n_pre,) the mean over each row of the squares of preᵀ post, without that matrix."""
    return ((post @ post.T @ pre) * pre).sum(0).clamp_min_(0.0).div_(post.shape[1])


def with_floor(pre: Tensor, post: Tensor) -> tuple[Tensor, Tensor]:
    """preᵀ and post with one more row, whose outer product adds FLOOR everywhere."""
    root = math.sqrt(FLOOR)
    pre = torch.cat([pre, pre.new_full((1, pre.shape[1]), root)])
    post = torch.cat([post, post.new_full((1, post.shape[1]), root)])
    return pre.T, post


OPTIMIZERS: Registry[type[Optimizer]] = Registry(
    "optimizer",
    "ptncn.optimizers",
    {
        "sgd": SGD,
        "momentum": Momentum,
        "nesterov": Nesterov,
        "rmsprop": RMSprop,
        "adam": Adam,
        "adafactor": Adafactor,
    },
)
"""Values of `Config.optimizer`."""
