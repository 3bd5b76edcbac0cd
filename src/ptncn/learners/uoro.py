"""Unbiased online recurrent optimisation (Tallec and Ollivier, 2017): the influence as one outer product."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ptncn.learners.base import RecurrentState
from ptncn.learners.forward_mode import ForwardMode, balance, row_norms, rows
from ptncn.learners.linearisation import Linearisation


@dataclass(kw_only=True)
class UOROState(RecurrentState):
    tangent: Tensor | None = None
    """(B, R, H) the factor s̃ in the space of the state; None while the influence is zero."""
    weights: tuple[Tensor, ...] = ()
    """(B, Q, m) per group: the factor θ̃ in the space of the weights."""


class UORO(ForwardMode):
    """Keep s̃ and θ̃ whose outer product has the influence as its mean; each row of a batch has its own.

    With independent random signs ν (one a number of state), J = ∂s'/∂s and any ρ₀, ρ₁ > 0,

        s̃' = ρ₀ J s̃ + ρ₁ ν            θ̃' = θ̃ / ρ₀ + (ν · ∂s'/∂θ) / ρ₁
        ρ₀ = √(‖θ̃‖ / ‖J s̃‖)          ρ₁ = √(‖ν · ∂s'/∂θ‖ / ‖ν‖)

    E[s̃' ⊗ θ̃'] = J E[s̃ ⊗ θ̃] + ∂s'/∂θ, since E[ν νᵀ] = I and E[ν] = 0. The ρ only keep the variance down.
    """

    rule = "uoro"
    state_type = UOROState

    def carries(self, state: UOROState) -> bool:
        return state.tangent is not None

    def contract(self, adjoint: Tensor, state: UOROState) -> list[Tensor]:
        assert state.tangent is not None
        weight = (adjoint * state.tangent[:, 0]).sum(1)  # (B,)
        return [torch.tensordot(weight, traces, 1) for traces in state.weights]  # (Q, m) = (B,) · (B, Q, m)

    def carry(self, linear: Linearisation, state: UOROState, mask: Tensor | None) -> None:
        B, H = state.hidden[0].shape
        nu = self.signs(B, self.cell.parts, H)
        vectors = [group.vector for group in linear.groups]  # (B, m) each
        pulled = linear.pull(nu)  # (B, Q) each; with its vector, the outer product is ν · ∂s'/∂θ
        rho_1 = balance(_outer_norm(pulled, vectors), row_norms(nu))  # (B,)
        if state.tangent is None:
            state.tangent = torch.zeros_like(nu)
            state.weights = tuple(v.new_zeros(B, p.shape[1], v.shape[1]) for p, v in zip(pulled, vectors, strict=True))
        pushed = linear.push(state.tangent)  # (B, R, H)
        rho_0 = balance(_norm(state.weights), row_norms(pushed))  # (B,)
        tangent = rho_0[:, None, None] * pushed + rho_1[:, None, None] * nu
        state.tangent = rows(mask, tangent, state.tangent)
        shrink = rows(mask, 1 / rho_0, 1.0)
        for traces, p, v in zip(state.weights, pulled, vectors, strict=True):
            added = rows(mask, p / rho_1[:, None], 0.0)
            traces.mul_(shrink[:, None, None]).baddbmm_(added[:, :, None], v[:, None])  # (B, Q, m)


def _norm(tensors: tuple[Tensor, ...]) -> Tensor:
    """(B,) the norm of all of a row's numbers together."""
    return row_norms(torch.stack([row_norms(tensor) for tensor in tensors], dim=1))


def _outer_norm(left: list[Tensor], right: list[Tensor]) -> Tensor:
    """(B,) the norm of the outer products of (B, Q) and (B, m), without making them."""
    return row_norms(torch.stack([row_norms(a) * row_norms(b) for a, b in zip(left, right, strict=True)], dim=1))
