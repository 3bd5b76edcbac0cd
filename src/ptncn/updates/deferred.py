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
        x = x if scale == 1.0 else x * scale
        out = x @ self.weight
        if self.queued:
            pre, post = self.queue()
            out.addmm_(x @ pre.T, post)
        return out if onto is None else out.add_(onto)  # a product that adds to something is slower in MKL

    def arrive(self) -> None:
        """Wait until all that was sent is there. Here it is; ranks that share the products have to exchange them."""

    def back(self, signal: Tensor) -> Tensor:
        """signal Wᵀ, (B, from) from (B, to)."""
        return signal @ self.write().T

    @property
    def shape(self) -> tuple[int, int]:
        """(from, to), of which `weight` may be some columns."""
        return self.weight.shape[0], self.weight.shape[1]

    def own(self, post: Tensor) -> Tensor:
        """(B, own columns) the part of (B, to) that changes `weight`."""
        return post

    def row_norms(self) -> Tensor:
        """(from, 1) the norms of the rows."""
        norms: Tensor = torch.linalg.vector_norm(self.write(), dim=1, keepdim=True)
        return norms

    def postpones(self, rows: int, keep: float = 1.0) -> bool:
        """Whether an update of so many rows is queued; that of a bias, which is read as it is, never is."""
        large = len(self.weight) > 1 and self.weight.numel() >= LARGE
        return large and keep == 1.0 and rows * 8 <= POSTPONED_ROWS

    def add(self, pre: Tensor, post: Tensor, scale: float, keep: float = 1.0) -> None:
        """weight = keep · weight + scale · preᵀ post."""
        post = self.own(post)
        if not self.postpones(len(pre), keep):
            self.write().addmm_(pre.T, post, beta=keep, alpha=scale)
            return
        self.make_room(len(pre))
        all_pre, all_post = self.room()
        end = self.queued + len(pre)
        torch.mul(pre, scale, out=all_pre[self.queued : end])
        all_post[self.queued : end] = post
        self.grow(len(pre))

    def make_room(self, rows: int) -> None:
        """Write the queue unless it has room for so many more rows: batches may change their size."""
        if self.queued + rows > POSTPONED_ROWS:
            self.write()

    def room(self) -> tuple[Tensor, Tensor]:
        """All of P and Q, `POSTPONED_ROWS` long: what comes next goes in after the first `queued` rows."""
        if not len(self._pre):
            self._pre = self.weight.new_empty(POSTPONED_ROWS, self.weight.shape[0])
            self._post = self.weight.new_empty(POSTPONED_ROWS, self.weight.shape[1])
        return self._pre, self._post

    def grow(self, rows: int) -> None:
        """So many rows were put in; write them all if there is no room for as many again."""
        self.queued += rows
        self.make_room(rows)

    def write(self) -> Tensor:
        """The weights, with all that was queued written into them."""
        if self.queued:
            pre, post = self.queue()
            self.weight.addmm_(pre.T, post)
            self.queued = 0
        return self.weight

    def queue(self) -> tuple[Tensor, Tensor]:
        """P and Q: Pᵀ Q is still to be added to the weights."""
        return self._pre[: self.queued], self._post[: self.queued]

    def restore_queue(self, pre: Tensor, post: Tensor) -> None:
        rows, shape = len(pre), tuple(self.weight.shape)
        if rows > POSTPONED_ROWS or (tuple(pre.shape), tuple(post.shape)) != ((rows, shape[0]), (rows, shape[1])):
            raise ValueError(
                f"queue: expected at most {POSTPONED_ROWS} rows of widths {shape}, "
                f"got {tuple(pre.shape)} and {tuple(post.shape)}"
            )
        self.queued = rows
        if len(pre):
            all_pre, all_post = self.room()
            all_pre[: len(pre)], all_post[: len(post)] = pre, post
