"""From local updates to new weights: rescale, step, project onto the ball of maximum norm."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from torch import nn

from ptncn.updates.config import Group, Options
from ptncn.updates.factors import Factors, Synapses, rescaling
from ptncn.updates.optimizers import OPTIMIZERS


class MaxNorm:
    """Keeps the norm of each outgoing weight vector, a row of the stored (from, to) matrix, within `radius`.

    A row's norm cannot have grown by more than the sum of the steps since the last check. While the largest norm at
    that check plus this sum stays within the radius, there is nothing to project: the result is the same as with a
    projection at every step.
    """

    def __init__(self, radius: float) -> None:
        self.radius = radius
        self.bound = math.inf  # upper bound of the row norms
        self.version = -1  # version of the weights that the bound is for

    def project(self, synapses: Synapses, growth: float) -> None:
        """Project the weights after a step that lengthened each row by at most `growth`."""
        self.bound += growth
        if self.bound < self.radius * 0.999:  # a margin for the rounding of the sum and of the norms
            return
        weight, norms = synapses.write(), synapses.row_norms()
        if weight.device.type != "cpu":  # reading the maximum would wait for the device
            weight.mul_(self.radius / norms.clamp_min(self.radius))
            return
        self.bound = norms.max().item()
        if self.bound > self.radius:
            weight.mul_(self.radius / norms.clamp_min(self.radius))
            self.bound = self.radius

    def forget(self) -> None:
        """Drop the bound, because the weights were changed elsewhere."""
        self.bound = math.inf


class LocalLearning(nn.Module):
    """Applies updates to named weights; holds the moments of the optimiser and the bounds of norms.

    `groups` defines how each of the weights learns; weights not in it do not learn.
    """

    def __init__(self, weights: Mapping[str, Synapses], groups: Mapping[str, Group], config: Options) -> None:
        super().__init__()
        self.config = config
        self.groups = dict(groups)
        self.lr = config.lr
        self.optimizer = OPTIMIZERS[config.optimizer]({name: weights[name].weight for name in groups}, config)
        self._rules: tuple[Any, list[Any]] | None = None
        self.balls = {
            name: MaxNorm(config.max_norm)
            for name, group in groups.items()
            if config.max_norm is not None and group.regularized
        }

    def step_size(self, group: Group) -> float:
        lr = self.lr
        if self.config.schedule is not None:
            lr *= self.config.schedule(self.optimizer.updates)  # type: ignore[operator]
        return lr * group.lr_factor

    def decay(self, group: Group, lr: float) -> float:
        return lr * self.config.weight_decay if group.regularized else 0.0

    def apply_updates(self, weights: Mapping[str, Synapses], updates: Mapping[str, Factors], batch_size: int) -> None:
        """Step against each update. `batch_size` is B; updates with a Hebbian part have 2 B rows."""
        share = 1.0 / batch_size if self.config.reduction == "sum_then_mean" else 1.0
        for name, factors in updates.items():
            self._descend(name, weights[name], factors, share)
        self.optimizer.count_update()

    def __getstate__(self) -> dict[str, Any]:
        """Without the kernel's structures, which belong to this process."""
        return {**self.__dict__, "_rules": None}

    def rules(self, groups: Sequence[Group]) -> list[Any]:
        """The kernel's description of the next step of each group."""
        optimizer = self.optimizer
        key = self.step_size(groups[0]), optimizer.updates if optimizer.varies else 0
        if self._rules is None or self._rules[0] != key:
            sizes = [self.step_size(group) for group in groups]
            pairs = [(lr, self.decay(group, lr)) for lr, group in zip(sizes, groups, strict=True)]
            rules = {pair: self.optimizer.rule(*pair) for pair in pairs}
            self._rules = key, [rules[pair] for pair in pairs]
        return self._rules[1]

    def postpones(self, weights: Synapses, name: str, rows: int = 1) -> bool:
        """Whether an update of this many rows would be queued: only plain descent is a sum of outer products."""
        group = self.groups.get(name)
        keep = 1 - self.decay(group, 1.0) if group else 0.0
        return self.optimizer.stays_factored and weights.postpones(rows, keep)

    def note_update(self, weights: Mapping[str, Synapses], queued: Iterable[str], rows: int, projected: bool) -> None:
        """Record an update made by the kernel, which added `rows` rows to the queues `queued`.

        `projected` is whether it also projected onto the maximum norm.
        """
        for name, ball in self.balls.items():
            if projected or weights[name].weight._version != ball.version:
                ball.forget()
        for name in queued:
            weights[name].grow(rows)
        if not projected:
            for name, ball in self.balls.items():
                self._project(ball, weights[name], self.step_size(self.groups[name]))
        self.optimizer.count_update()

    def forget_bounds(self) -> None:
        """Drop the bounds, because the weights were replaced."""
        for ball in self.balls.values():
            ball.forget()

    def _descend(self, name: str, synapses: Synapses, factors: Factors, share: float) -> None:
        config, group = self.config, self.groups[name]
        lr, ball = self.step_size(group), self.balls.get(name)
        if ball is not None and synapses.weight._version != ball.version:
            ball.forget()
        pre = factors.scaled(rescaling(factors, config.rescale, config.radius))
        pre = pre if share == 1.0 else pre * share
        self.optimizer.step(name, synapses, pre, factors.post.value, lr, self.decay(group, lr))
        if ball is not None:
            self._project(ball, synapses, lr, share)

    def _project(self, ball: MaxNorm, synapses: Synapses, lr: float, share: float = 1.0) -> None:
        longest = None if self.config.rescale == "none" else self.config.radius * share
        height, width = synapses.shape
        ball.project(synapses, self.optimizer.growth(longest, lr, width, height))
        ball.version = synapses.weight._version

    def snapshot(self) -> dict[str, Any]:
        moments = {name: value.clone() for name, value in self.optimizer.named_buffers()}
        return {"lr": self.lr, "updates": self.optimizer.updates, "moments": moments}

    def restore(self, tree: Mapping[str, Any]) -> None:
        buffers = dict(self.optimizer.named_buffers())
        expected, got = shapes_of(buffers), shapes_of(tree["moments"])
        if expected != got:
            raise ValueError(f"moments of {self.config.optimizer!r}: expected {expected}, got {got}")
        for name, value in tree["moments"].items():
            buffers[name].copy_(value)
        self.optimizer.updates, self.lr = tree["updates"], tree["lr"]


def shapes_of(tensors: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
    """{name: shape} for error messages and comparisons."""
    return {name: tuple(tensor.shape) for name, tensor in tensors.items()}
