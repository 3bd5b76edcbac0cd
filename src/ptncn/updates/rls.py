"""Recursive least squares: after each step, the weights solve a weighted ridge regression.

With features φ and targets x, the weights W minimise Σ μ^age ‖φ W − x‖² + ridge ‖W‖². The state is P, the inverse of
A = ridge·I + Σ μ^age φᵀφ, and a step changes W by its gain k times its error. The gain does not depend on the target,
so forecasts for several horizons share it.

With forgetting, the prior ridge·I would fade too, and P would grow without bound for features that stay 0. So each step
restores the prior of one feature in turn, with an artificial row that is 0 except for that feature, and has target 0
(Gay: Dynamically regularized fast RLS with application to echo cancellation, ICASSP 1996).
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

SYMMETRISE_EVERY = 16
"""Updates between symmetrisations of P, which stop forgetting from amplifying asymmetric rounding errors."""


def absorb(P: Tensor, features: Tensor, forgetting: float, updates: int) -> Tensor:
    """Update P (F, F) with rows of features (B, F) of one step (Woodbury), and return their gains (F, B).

    `updates` is the number of steps before this one.
    """
    identity = torch.eye(len(features), dtype=P.dtype, device=P.device)
    across = (features @ P).div_(forgetting)  # (B, F)
    root = torch.linalg.cholesky(identity + across @ features.T)  # (B, B)
    half = torch.linalg.solve_triangular(root, across, upper=False)  # (B, F)
    gain: Tensor = torch.linalg.solve_triangular(root.T, half, upper=True).T
    P.addmm_(half.T, half, beta=1 / forgetting, alpha=-1)
    if updates % SYMMETRISE_EVERY == 0:
        P.add_(P.T.clone()).mul_(0.5)
    return gain


def reminder(P: Tensor, ridge: float, forgetting: float, updates: int) -> Tensor:
    """(1, F) the artificial row of this step; its target is 0."""
    row = P.new_zeros(1, len(P))
    row[0, updates % len(P)] = math.sqrt(ridge * (1 - forgetting) * len(P))
    return row
