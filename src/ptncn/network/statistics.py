"""What a network knows of its own activity: how large returned errors usually are, and the mean observation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from ptncn.distributions import Distribution

OPENING = 10_000
"""Observations after which the mean is taken as known; the bias goes on learning by its own rule."""
PRIOR = 1.0
"""Observations that the mean of an even guess counts for."""


class UsualFeedback(nn.Module):
    """A moving mean of the square of E e over rows, units and learning steps, one for each layer."""

    square: Tensor

    def __init__(self, layers: int, decay: float) -> None:
        super().__init__()
        self.decay = decay
        self.updates = 0
        self.register_buffer("square", torch.zeros(layers), persistent=False)

    def observe(self, back: list[Tensor], rows: Tensor | None, layers: slice = slice(None)) -> None:
        """Take in E e of a learning step, (B, n) for each of `layers`, as far as `rows` (B,) teach; None: all."""
        now = [(own if rows is None else own[rows]).square().mean() for own in back]
        self.square[layers].mul_(self.decay).add_(torch.stack(now), alpha=1 - self.decay)
        self.updates += 1

    @property
    def mean(self) -> Tensor:
        """(L,) the weighted mean over all learning steps so far; 1 before the first."""
        return self.square / self.weight(self.updates) if self.updates else torch.ones_like(self.square)

    def weight(self, updates: int) -> float:
        """The sum of the weights of this many steps."""
        return 1 - self.decay**updates

    def snapshot(self) -> dict[str, Any]:
        return {"square": self.square.clone(), "updates": self.updates}

    def restore(self, tree: Mapping[str, Any]) -> None:
        self.square.copy_(tree["square"])
        self.updates = tree["updates"]


class MeanObservation(nn.Module):
    """The mean of the first observations, and what it asks of the bias of the prediction as it gets known."""

    total: Tensor

    def __init__(self, input_size: int, output: Distribution) -> None:
        super().__init__()
        self.output = output
        self.count = 0
        self.register_buffer("total", torch.zeros(input_size), persistent=False)

    @property
    def known(self) -> bool:
        return self.count >= OPENING

    def observe(self, x: Tensor, mask: Tensor | None) -> Tensor:
        """(n,) what to add to the bias, now that the rows of `x` (B, n) in `mask` (B,) were seen as well."""
        before = self._logits()
        x = x if mask is None else x[mask]
        self.total += x.sum(0)
        self.count += len(x)
        return self._logits() - before

    def _logits(self) -> Tensor:
        even = self.output.mean(torch.zeros_like(self.total))
        mean = (self.total + PRIOR * even) / (self.count + PRIOR)
        return self.output.to_logits(mean, 0.0)

    def snapshot(self) -> dict[str, Any]:
        return {"total": self.total.clone(), "count": self.count}

    def restore(self, tree: Mapping[str, Any]) -> None:
        self.total.copy_(tree["total"])
        self.count = tree["count"]
