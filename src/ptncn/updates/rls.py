"""Recursive least squares: linear weights that are, after each step, the solution of a weighted ridge regression.

With features φ and targets x, the weights W minimise Σ μ^age ‖φ W − x‖² + ridge ‖W‖². What is kept is P, the inverse
of A = ridge·I + Σ μ^age φᵀφ, and what a step does to W is its gain k times its error. The gain does not depend on the
target: forecasts for several horizons share it.

With forgetting, the prior ridge·I would be forgotten too, and P grow without bound where features are silent. So each
step puts back what a step forgets of it, for one feature in turn: a made-up row that is 0 but for that feature, whose
target is 0 (Gay: Dynamically regularized fast RLS with application to echo cancellation, ICASSP 1996).
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

SYMMETRISE_EVERY = 16
"""Updates after which rounding errors that are not symmetric are removed, before forgetting blows them up."""


def absorb(P: Tensor, features: Tensor, forgetting: float, updates: int) -> Tensor:
    """(F, B) the gains of rows of features (B, F), all of one step (Woodbury); P (F, F) takes them in.

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
    """(1, F) the made-up row of this step; its target is 0."""
    row = P.new_zeros(1, len(P))
    row[0, updates % len(P)] = math.sqrt(ridge * (1 - forgetting) * len(P))
    return row
