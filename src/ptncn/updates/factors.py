"""Updates as pairs of thin matrices, and weight matrices with a queue of such pairs.

Every local rule is a sum of outer products over the batch, `pre.T @ post` with B rows each. Kept as a pair, it can be
measured and applied without another matrix of the size of the weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import torch
from torch import Tensor

from ptncn import kernels


class Activity:
    """(B, n) activities of a layer; their Gram matrix is computed once and shared by all rules."""

    def __init__(self, value: Tensor) -> None:
        self.value = value

    @cached_property
    def gram(self) -> Tensor:
        return self.value @ self.value.T  # (B, B)


class Factors:
    """The update preᵀ post, (n_pre, n_post), from (B, n_pre) and (B, n_post).

    The presynaptic side may have several blocks, for weights that are stored as one matrix but rescaled separately.

    >>> pair = Factors([Activity(torch.ones(2, 3)), Activity(torch.ones(2, 1))], Activity(torch.ones(2, 5)))
    >>> pair.dense().shape, pair.norms().shape
    (torch.Size([4, 5]), torch.Size([2]))
    """

    def __init__(self, pre: Sequence[Activity], post: Activity) -> None:
        self.pre = pre
        self.post = post

    def norms(self) -> Tensor:
        """(blocks,) the Frobenius norm of each block, on the device."""
        return torch.stack([_norm(block, self.post) for block in self.pre])

    def dense(self) -> Tensor:
        return self.scaled(None).T @ self.post.value

    def scaled(self, scales: Tensor | None) -> Tensor:
        """(B, n_pre) the presynaptic side, each block times its scale."""
        if scales is None:
            return self.pre[0].value if len(self.pre) == 1 else torch.cat([block.value for block in self.pre], dim=1)
        parts = [block.value * scale for block, scale in zip(self.pre, scales.unbind(), strict=True)]
        return parts[0] if len(parts) == 1 else torch.cat(parts, dim=1)

    def plus(self, post: Activity, scales: Tensor) -> Factors:
        """This update plus, for each block, its scale times preᵀ of the other `post`: the pairs are stacked."""
        pre = [
            Activity(torch.cat([block.value, block.value * scale]))
            for block, scale in zip(self.pre, scales.unbind(), strict=True)
        ]
        return Factors(pre, Activity(torch.cat([self.post.value, post.value])))


def inverse(norms: Tensor) -> Tensor:
    """1 / norm, or 0 where the norm is 0."""
    return torch.where(norms > 0, norms.reciprocal(), 0.0)


def _norm(pre: Activity, post: Activity) -> Tensor:
    """‖preᵀ post‖_F = √tr(pre preᵀ post postᵀ), from two B × B matrices.

    If the update is hardly larger than its factors, it is computed directly, which avoids cancellation.
    """
    batch, n_pre, n_post = *pre.value.shape, post.value.shape[1]
    if batch > 1 and n_pre * n_post <= 4 * batch * (n_pre + n_post):
        squared: Tensor = (pre.value.T @ post.value).square().sum()
    else:
        squared = (pre.gram.double() * post.gram).sum().clamp_min(0.0)  # in single precision ∞ · 0 would be possible
    return squared.sqrt().to(post.value.dtype)


def rescaling(factors: Factors, rule: str, radius: float) -> Tensor | None:
    """(blocks,) the factor on each block of an update: `rule` is "unit", "clip" or "none".

    The factors stay on the device, so that no step waits for them.
    """
    if rule == "none":
        return None
    if rule == "unit":
        norms = factors.norms()
        return torch.where(norms > 0, radius / norms.clamp_min(1e-30), 0.0)  # 0, not ∞ · 0, for an update that is 0
    return radius / factors.norms().clamp_min(radius)


POSTPONED_ROWS = 32
"""Outer products in a full queue, which are then applied as one product of that rank."""
LARGE = 1 << 19
"""Smallest matrix, in weights, for which a queue pays off: it no longer fits in the caches of a core."""


FEW = 64
"""Rows up to which products are the kernel's: BLAS, made for matrices that are large both ways, is slower there."""


def multiply(x: Tensor, weight: Tensor, rows: int) -> Tensor:
    """x W, where x contains some of `rows` rows. The bits of an element do not depend on the other rows."""
    few = rows <= FEW and x.dtype == weight.dtype and 0 not in (*x.shape, *weight.shape)
    if few and x.is_cpu and weight.is_cpu and weight.is_contiguous():
        return kernels.multiply(x, weight)
    return x @ weight


def add_outer(weight: Tensor, pre: Tensor, post: Tensor, scale: float, keep: float) -> None:
    """weight = keep · weight + scale · preᵀ post; here too, the bits of an element do not depend on others."""
    same = pre.dtype == post.dtype == weight.dtype and 0 not in (*pre.shape, *post.shape)
    if len(pre) <= 2 * FEW and same and weight.is_cpu and weight.is_contiguous() and kernels.load() is not None:
        rule = kernels.structure("Rule")(optimizer=0, keep=keep, rate=-scale)  # plain descent
        kernels.update(rule, weight, None, None, pre, post)
    else:
        weight.addmm_(pre.T, post, beta=keep, alpha=scale)


class Synapses:
    """Weights (from, to) with a queue of outer products that are part of them.

    With a batch size of 1, memory traffic limits the speed of a step: reading a matrix is one pass over it, and
    changing it by an outer product takes two more. A large matrix is therefore updated only from time to time, by a
    product of rank `POSTPONED_ROWS`. In between, products include the queue: x W + (x Pᵀ) Q. The result is the same up
    to rounding.
    """

    whole = True
    """Whether `weight` is the whole matrix, and products with it need nothing else."""

    def __init__(self, weight: Tensor) -> None:
        self.weight = weight
        self.queues = True
        """Whether updates may be queued; not where each one changes the whole matrix anyway."""
        self.queued = 0
        self._pre = weight.new_empty(0, weight.shape[0])  # P, (POSTPONED_ROWS, from) once it is used
        self._post = weight.new_empty(0, weight.shape[1])  # Q, (POSTPONED_ROWS, to)

    def send(self, x: Tensor, onto: Tensor | None = None, scale: float = 1.0) -> Tensor:
        """onto + scale · x W, (B, to) from (B, from)."""
        x = x if scale == 1.0 else x * scale
        out = multiply(x, self.weight, len(x))
        if self.queued:
            pre, post = self.queue()
            out.addmm_(x @ pre.T, post)
        return out if onto is None else out.add_(onto)  # in MKL, addmm is slower than a product and a sum

    def arrive(self) -> None:
        """Wait for the results of `send`. They are ready here; ranks that share a product exchange their parts."""

    def back(self, signal: Tensor) -> Tensor:
        """signal Wᵀ, (B, from) from (B, to)."""
        return signal @ self.write().T

    @property
    def shape(self) -> tuple[int, int]:
        """(from, to); `weight` may hold only some of the columns."""
        return self.weight.shape[0], self.weight.shape[1]

    def own(self, post: Tensor) -> Tensor:
        """(B, own columns) the part of (B, to) that changes `weight`."""
        return post

    def row_norms(self) -> Tensor:
        """(from, 1) the norms of the rows."""
        norms: Tensor = torch.linalg.vector_norm(self.write(), dim=1, keepdim=True)
        return norms

    def postpones(self, rows: int, keep: float = 1.0) -> bool:
        """Whether an update of this many rows is queued; updates of biases never are."""
        large = len(self.weight) > 1 and self.weight.numel() >= LARGE
        return self.queues and large and keep == 1.0 and rows * 8 <= POSTPONED_ROWS

    def add(self, pre: Tensor, post: Tensor, scale: float, keep: float = 1.0) -> None:
        """weight = keep · weight + scale · preᵀ post."""
        post = self.own(post)
        if not self.postpones(len(pre), keep):
            add_outer(self.write(), pre, post, scale, keep)
            return
        self.make_room(len(pre))
        all_pre, all_post = self.room()
        end = self.queued + len(pre)
        torch.mul(pre, scale, out=all_pre[self.queued : end])
        all_post[self.queued : end] = post
        self.grow(len(pre))

    def make_room(self, rows: int) -> None:
        """Apply the queue unless it has room for this many more rows: the batch size may change."""
        if self.queued + rows > POSTPONED_ROWS:
            self.write()

    def room(self) -> tuple[Tensor, Tensor]:
        """All of P and Q, `POSTPONED_ROWS` long; the first `queued` rows are in use."""
        if not len(self._pre):
            self._pre = self.weight.new_empty(POSTPONED_ROWS, self.weight.shape[0])
            self._post = self.weight.new_empty(POSTPONED_ROWS, self.weight.shape[1])
        return self._pre, self._post

    def grow(self, rows: int) -> None:
        """Count added rows; apply the queue if it has no room for as many again."""
        self.queued += rows
        self.make_room(rows)

    def write(self) -> Tensor:
        """Apply the queue, and return the weights."""
        if self.queued:
            pre, post = self.queue()
            self.weight.addmm_(pre.T, post)
            self.queued = 0
        return self.weight

    def queue(self) -> tuple[Tensor, Tensor]:
        """P and Q; Pᵀ Q is not yet part of `weight`."""
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
        if not self.queues:
            self.write()
