"""Running statistics of a network: the usual size of fed-back errors, and the mean observation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from ptncn.distributions import Distribution

OPENING = 10_000
"""Observations after which the mean is fixed; the bias continues to learn by its rule."""
PRIOR = 1.0
"""Weight of a uniform prior, in observations."""


class UsualFeedback(nn.Module):
    """The moving mean square of E e over rows, units and learning steps, for each layer."""

    square: Tensor

    def __init__(self, layers: int, decay: float) -> None:
        super().__init__()
        self.decay = decay
        self.updates = 0
        self.register_buffer("square", torch.zeros(layers), persistent=False)

    def observe(self, back: list[Tensor], rows: Tensor | None, layers: slice = slice(None)) -> None:
        """Update with E e of a learning step, (B, n) for each of `layers`; only `rows` (B,) count, or all if None."""
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
    """The mean of the first observations, and the change of the output bias that follows from it."""

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
        """Include the rows of `x` (B, n) in `mask` (B,), and return the change (n,) of the bias."""
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
