"""Updates as pairs of thin matrices.

Every local rule is a sum of outer products over the batch, `pre.T @ post` with B rows each. Kept as that pair, its
norm and its effect on the weights cost no matrix of the size of the weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import torch
from torch import Tensor


class Activity:
    """(B, n) activities of a layer; their Gram matrix is made once, however many rules use them."""

    def __init__(self, value: Tensor) -> None:
        self.value = value

    @cached_property
    def gram(self) -> Tensor:
        return self.value @ self.value.T  # (B, B)


class Factors:
    """The update preᵀ post, (n_pre, n_post), from (B, n_pre) and (B, n_post).

    The presynaptic side may come in several blocks, for weights that are stored as one matrix and rescaled apart.

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
    """1 / norm, and 0 for an update that is 0."""
    return torch.where(norms > 0, norms.reciprocal(), 0.0)


def _norm(pre: Activity, post: Activity) -> Tensor:
    """‖preᵀ post‖_F = √tr(pre preᵀ post postᵀ), from two B × B matrices.

    Where the update is hardly larger than its factors it is made after all: no cancellation, and no slower.
    """
    batch, n_pre, n_post = *pre.value.shape, post.value.shape[1]
    if batch > 1 and n_pre * n_post <= 4 * batch * (n_pre + n_post):
        squared: Tensor = (pre.value.T @ post.value).square().sum()
    else:
        squared = (pre.gram * post.gram).sum().clamp_min(0.0)
    return squared.sqrt()


def rescaling(factors: Factors, rule: str, radius: float) -> Tensor | None:
    """(blocks,) what to multiply each block of an update with: `rule` is "unit", "clip" or "none".

    The numbers stay on the device, so that no step waits for them.
    """
    if rule == "none":
        return None
    if rule == "unit":
        return radius / factors.norms().clamp_min(1e-30)  # an update that is 0 stays 0
    return radius / factors.norms().clamp_min(radius)
