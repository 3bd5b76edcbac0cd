"""Updates as pairs of thin matrices.

Every local rule is a sum of outer products over the batch, `pre.T @ post` with B rows each. Kept as that pair,
its norm and its effect on the weights cost no matrix of the size of the weights.
"""

from __future__ import annotations

from functools import cached_property

import torch
from torch import Tensor


class Activity:
    """(B, n) activities of a layer; their Gram matrix is computed once, however many rules use them."""

    def __init__(self, value: Tensor) -> None:
        self.value = value

    @cached_property
    def gram(self) -> Tensor:
        return self.value @ self.value.T  # (B, B)


def inverse(norm: Tensor) -> Tensor:
    """1 / norm, and 0 for the update that is 0."""
    return torch.where(norm > 0, norm.reciprocal(), 0.0)


class Factors:
    """The update preᵀ post: (n_pre, n_post) from (B, n_pre) and (B, n_post).

    >>> pair = Factors(Activity(torch.ones(2, 3)), Activity(torch.ones(2, 5)))
    >>> bool(torch.isclose(pair.norm(), pair.dense().norm()))
    True
    """

    def __init__(self, pre: Activity, post: Activity) -> None:
        self.pre = pre
        self.post = post

    def norm(self) -> Tensor:
        """‖preᵀ post‖_F, a scalar on the device: √tr(pre preᵀ post postᵀ), from two B × B matrices.

        Where the update is hardly larger than its factors it is made after all: no cancellation, no slower.
        """
        batch, n_pre, n_post = *self.pre.value.shape, self.post.value.shape[1]
        if n_pre * n_post <= 4 * batch * (n_pre + n_post):
            return torch.linalg.vector_norm(self.dense())
        return (self.pre.gram * self.post.gram).sum().clamp_min_(0.0).sqrt_()

    def dense(self) -> Tensor:
        return self.pre.value.T @ self.post.value

    def plus(self, other: Factors, scale: Tensor | float) -> Factors:
        """This update plus `scale` times the other: the pairs are stacked."""
        pre = torch.cat([self.pre.value, other.pre.value])  # (B + B', n_pre)
        post = torch.cat([self.post.value, other.post.value * scale])  # (B + B', n_post)
        return Factors(Activity(pre), Activity(post))
