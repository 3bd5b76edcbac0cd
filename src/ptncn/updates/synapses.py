"""A matrix of weights, and what was learnt but not yet written into it."""

from __future__ import annotations

import torch
from torch import Tensor

POSTPONED_ROWS = 32
"""How many outer products are held before they are written as one product of that rank."""
LARGE = 1 << 19
"""Weights of a matrix that does not fit the caches next to the processor, from which on postponing pays."""


class Synapses:
    """Weights (from, to) with a queue of outer products that are part of them.

    At batch 1 a step is bound by memory traffic: reading a matrix is one pass over it, changing it by an outer product
    two more. So a large matrix is changed once in a while, by a product of rank `POSTPONED_ROWS`, and in between what
    is queued is added to what is sent: x W + (x Pᵀ) Q. The numbers are the same up to rounding.
    """

    def __init__(self, weight: Tensor) -> None:
        self.weight = weight
        self.queued = 0
        self._pre = weight.new_empty(0, weight.shape[0])  # P, (POSTPONED_ROWS, from) once it is used
        self._post = weight.new_empty(0, weight.shape[1])  # Q, (POSTPONED_ROWS, to)

    def send(self, x: Tensor, onto: Tensor | None = None, scale: float = 1.0) -> Tensor:
        """onto + scale · x W, (B, to) from (B, from)."""
        out = x @ self.weight if onto is None else torch.addmm(onto, x, self.weight, alpha=scale)
        if self.queued:
            pre, post = self.queue()
            out.addmm_(x @ pre.T, post, alpha=scale)
        return out

    def add(self, pre: Tensor, post: Tensor, scale: float, keep: float = 1.0) -> None:
        """weight = keep · weight + scale · preᵀ post."""
        if keep != 1.0 or len(pre) * 8 > POSTPONED_ROWS or self.weight.numel() < LARGE:
            self.write().addmm_(pre.T, post, beta=keep, alpha=scale)
            return
        self._enqueue(pre * scale, post)
        if self.queued + len(pre) > POSTPONED_ROWS:
            self.write()

    def write(self) -> Tensor:
        """The weights, with all that was queued written into them."""
        if self.queued:
            pre, post = self.queue()
            self.weight.addmm_(pre.T, post)
            self.queued = 0
        return self.weight

    def queue(self) -> tuple[Tensor, Tensor]:
        """P and Q: what is to be added to the weights is Pᵀ Q."""
        return self._pre[: self.queued], self._post[: self.queued]

    def restore_queue(self, pre: Tensor, post: Tensor) -> None:
        self.queued = 0
        if len(pre):
            self._enqueue(pre, post)

    def _enqueue(self, pre: Tensor, post: Tensor) -> None:
        if not len(self._pre):
            self._pre = pre.new_empty(POSTPONED_ROWS, pre.shape[1])
            self._post = post.new_empty(POSTPONED_ROWS, post.shape[1])
        end = self.queued + len(pre)
        self._pre[self.queued : end] = pre
        self._post[self.queued : end] = post
        self.queued = end
