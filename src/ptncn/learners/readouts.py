"""Linear readouts of a reservoir: ridge regression, recursive least squares, gradient descent.

They map features (B, F) to one number for each of the n observed values. Least squares fits the *mean* of the
observation, as the deviation from the mean at zero logits; `link` converts it to logits. Gradient descent fits the
logits by their likelihood.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from copy import deepcopy
from typing import Any

import torch
from torch import Tensor, nn

from ptncn.distributions import Distribution
from ptncn.learners.base import (
    GRADIENT_OPTIMIZERS,
    check_choice,
    check_positive,
    check_share,
    check_size,
    diverged,
    restore_optimizer,
)
from ptncn.updates.rls import absorb, reminder


class Readout(nn.Module):
    """Base of the three: `weight` (F, n), initially zero, and the methods that the network calls."""

    weight: Tensor

    def __init__(self, features: int, input_size: int, output: Distribution, dtype: torch.dtype) -> None:
        super().__init__()
        self.output = output
        self.weight = nn.Parameter(torch.zeros(features, input_size, dtype=dtype), requires_grad=False)

    def forward(self, features: Tensor) -> Tensor:
        """(B, n) the linear map of features (B, F)."""
        return features @ self.weight

    def link(self, fitted: Tensor) -> Tensor:
        """(B, n) the logits for the result of `forward`."""
        return fitted

    def learn(self, features: Tensor, fitted: Tensor, x: Tensor, rows: Tensor) -> None:
        """Learn from `rows` (B,) of the features, of the result of `forward`, and of the observation `x` (B, n)."""
        raise NotImplementedError

    def settle(self) -> None:
        """Learn what is still pending at the end of a sequence."""

    def progress(self) -> dict[str, Any]:
        """What learning changes besides the tensors in `state_dict`."""
        return {}

    def load_progress(self, tree: Mapping[str, Any]) -> None:
        """Restore the `progress` of an equal readout."""


class LeastSquares(Readout):
    """A mean fitted by least squares, clipped so that no outcome has an infinite loss.

    Every outcome has at least `floor` times its probability under zero logits, which is ½ for Bernoulli and 1/n for
    categorical outputs; categorical means are then normalised. Gaussian means are not clipped.
    """

    guess: Tensor

    def __init__(self, *args: Any, ridge: float = 1e-2, floor: float = 0.02) -> None:
        super().__init__(*args)
        check_positive("ridge", ridge)
        if not 0 < floor < 1:
            raise ValueError(f"floor: expected a number between 0 and 1, got {floor!r}")
        self.ridge, self.floor = ridge, floor
        self.register_buffer("guess", self.output.mean(self.weight.new_zeros(self.weight.shape[1])))

    def link(self, fitted: Tensor) -> Tensor:
        return self.output.to_logits(fitted + self.guess, self.floor * self.guess)


class Ridge(LeastSquares):
    """Ridge regression: W minimises Σ ‖φ W − (x − guess)‖² + ridge ‖W‖² over all frames ever learnt from.

    Only ΦᵀΦ (F, F) and Φᵀ(X − guess) (F, n) are kept, in float64. The weights are solved for when a sequence
    ends and, for streams without an end, every `solve_every` learning steps.
    """

    gram: Tensor
    moment: Tensor

    def __init__(self, *args: Any, solve_every: int | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if solve_every is not None:
            check_size("solve_every", solve_every)
        self.solve_every = solve_every
        self.pending = 0
        features, outputs = self.weight.shape
        self.register_buffer("gram", torch.zeros(features, features, dtype=torch.float64))
        self.register_buffer("moment", torch.zeros(features, outputs, dtype=torch.float64))

    def learn(self, features: Tensor, fitted: Tensor, x: Tensor, rows: Tensor) -> None:
        taught = (features * rows[:, None]).double()
        self.gram.addmm_(taught.T, taught)  # (F, F) += (F, B) @ (B, F)
        self.moment.addmm_(taught.T, (x - self.guess).double())  # (F, n) += (F, B) @ (B, n)
        self.pending += 1
        if self.pending == self.solve_every:
            self.settle()

    def settle(self) -> None:
        if not self.pending:
            return
        regular = self.gram.clone()
        regular.diagonal().add_(self.ridge)
        self.weight.copy_(torch.cholesky_solve(self.moment, torch.linalg.cholesky(regular)))
        self.pending = 0

    def progress(self) -> dict[str, Any]:
        return {"pending": self.pending}

    def load_progress(self, tree: Mapping[str, Any]) -> None:
        self.pending = int(tree["pending"])


class RLS(LeastSquares):
    """Recursive least squares: after each step, the ridge solution with frames k steps back weighted by λ^k.

    `covariance` P (F, F) is the inverse of A = ridge·I + Σ λ^k φᵀφ, kept in float64. All rows of a step are one
    block (Woodbury), forgotten together; λ is `forgetting`.

    With λ < 1 the prior ridge·I would be forgotten too, and P would grow without bound where the reservoir is silent.
    Each step therefore restores the prior of one feature in turn [^1], by an artificial frame that is zero except for
    feature k, which is √(ridge (1 − λ) F), with the guess as its observation.

    [^1]: Gay: Dynamically regularized fast RLS with application to echo cancellation. ICASSP 1996.
    """

    covariance: Tensor

    def __init__(self, *args: Any, forgetting: float = 1.0, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        check_share("forgetting", forgetting)
        self.forgetting = forgetting
        self.updates = 0
        self.register_buffer("covariance", torch.eye(len(self.weight), dtype=torch.float64) / self.ridge)

    def learn(self, features: Tensor, fitted: Tensor, x: Tensor, rows: Tensor) -> None:
        taught = (features * rows[:, None]).double()
        residual = (x - self.guess - fitted).double()
        if self.forgetting < 1:
            taught, residual = self._with_prior(taught, residual)
        gain = absorb(self.covariance, taught, self.forgetting, self.updates)
        self.weight.addmm_(gain.to(self.weight), residual.to(self.weight))  # (F, n) += (F, B) @ (B, n)
        self.updates += 1

    def _with_prior(self, taught: Tensor, residual: Tensor) -> tuple[Tensor, Tensor]:
        """Both with one more row, the artificial frame of this step."""
        frame = reminder(self.covariance, self.ridge, self.forgetting, self.updates)
        shrink = -frame @ self.weight.double()
        return torch.cat([taught, frame]), torch.cat([residual, shrink])

    def progress(self) -> dict[str, Any]:
        return {"updates": self.updates}

    def load_progress(self, tree: Mapping[str, Any]) -> None:
        self.updates = int(tree["updates"])


class GradientReadout(Readout):
    """Logits fitted by gradient descent on the negative log-likelihood, one step of the optimiser per frame."""

    def __init__(self, *args: Any, optimizer: str = "rmsprop", lr: float = 1e-3, clip: float | None = None) -> None:
        super().__init__(*args)
        check_choice("optimizer", optimizer, GRADIENT_OPTIMIZERS)
        check_positive("lr", lr)
        if clip is not None:
            check_positive("clip", clip)
        self.clip = clip
        self.optimizer = GRADIENT_OPTIMIZERS[optimizer]([self.weight], lr=lr)

    def learn(self, features: Tensor, fitted: Tensor, x: Tensor, rows: Tensor) -> None:
        error = (self.output.mean(fitted) - x) * rows[:, None]  # the gradient with respect to the logits
        self.weight.grad = features.T @ error / len(rows)  # (F, n) = (F, B) @ (B, n), mean over the batch
        norm = nn.utils.clip_grad_norm_([self.weight], math.inf if self.clip is None else self.clip)
        if torch.isfinite(norm):
            self.optimizer.step()
        self.weight.grad = None
        if not torch.isfinite(norm):
            raise diverged(norm, self.optimizer.param_groups[0]["lr"])

    def progress(self) -> dict[str, Any]:
        return {"optimizer": deepcopy(self.optimizer.state_dict())}

    def load_progress(self, tree: Mapping[str, Any]) -> None:
        restore_optimizer(self.optimizer, tree["optimizer"])


READOUTS: dict[str, type[Readout]] = {"ridge": Ridge, "rls": RLS, "sgd": GradientReadout}
