"""Kronecker-factored RTRL (Mujika, Meier and Steger, 2018): the influence as a vector times a matrix."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ptncn.learners.base import RecurrentState
from ptncn.learners.forward_mode import ForwardMode, balance, row_norms, rows
from ptncn.learners.linearisation import Linearisation


@dataclass(kw_only=True)
class KFRTRLState(RecurrentState):
    vectors: tuple[Tensor, ...] = ()
    """(B, m) per group: the factor u in the space of what the weights multiply; () while the influence is zero."""
    matrices: tuple[Tensor, ...] = ()
    """(B, R, H, Q) per group: the factor A from pre-activations to the state."""


class KFRTRL(ForwardMode):
    """Keep u and A whose Kronecker product has the influence as its mean; each row of a batch has its own.

    For weights that multiply one vector v (here [x, h, 1]) to make pre-activations a, ∂s'/∂θ = v ⊗ D with
    D = ∂s'/∂a, exactly. With random signs c₁, c₂, J = ∂s'/∂s and any p₁, p₂ > 0,

        u' = c₁ p₁ u + c₂ p₂ v            A' = (c₁ / p₁) J A + (c₂ / p₂) D
        p₁ = √(‖J A‖ / ‖u‖)               p₂ = √(‖D‖ / ‖v‖)

    E[u' ⊗ A'] = J E[u ⊗ A] + v ⊗ D, since E[c₁ c₂] = 0. Weights that multiply different vectors (a GRU's
    candidate, the micro-steps of a deep RHN) have a pair (u, A) and signs of their own: the influence is
    their concatenation, so each may be estimated by itself.
    """

    rule = "kf-rtrl"
    state_type = KFRTRLState

    def carries(self, state: KFRTRLState) -> bool:
        return bool(state.vectors)

    def contract(self, adjoint: Tensor, state: KFRTRLState) -> list[Tensor]:
        gradients = []
        for u, A in zip(state.vectors, state.matrices, strict=True):
            of_a = torch.bmm(adjoint[:, None], A[:, 0])[:, 0]  # (B, Q) = (B, H) · (B, H, Q)
            gradients.append(of_a.T @ u)  # (Q, m) = (Q, B) @ (B, m)
        return gradients

    def carry(self, linear: Linearisation, state: KFRTRLState, mask: Tensor | None) -> None:
        sensitivities = [linear.sensitivity(k) for k in range(len(linear.groups))]  # (B, R, H, Q) each
        if not state.vectors:
            state.vectors = tuple(torch.zeros_like(group.vector) for group in linear.groups)
            state.matrices = tuple(torch.zeros_like(D) for D in sensitivities)
        dense, diagonal = linear.transition()
        vectors, matrices = [], []
        for u, A, D, group in zip(state.vectors, state.matrices, sensitivities, linear.groups, strict=True):
            v = group.vector
            JA = _through(dense, diagonal, A)  # (B, R, H, Q)
            p_1 = balance(row_norms(JA), row_norms(u))  # (B,)
            p_2 = balance(row_norms(D), row_norms(v))
            c_1, c_2 = self.signs(2, len(v))  # (B,) each
            new_u = (c_1 * p_1)[:, None] * u + (c_2 * p_2)[:, None] * v
            new_A = (c_1 / p_1)[:, None, None, None] * JA + (c_2 / p_2)[:, None, None, None] * D
            vectors.append(rows(mask, new_u, u))
            matrices.append(rows(mask, new_A, A))
        state.vectors, state.matrices = tuple(vectors), tuple(matrices)


def _through(dense: Tensor, diagonal: Tensor | None, A: Tensor) -> Tensor:
    """(B, R, H, Q) the transition times A; `dense` (B, R, H, H) acts on h, `diagonal` (B, R, H) on c."""
    B, R, H, _ = dense.shape
    product = torch.bmm(dense.view(B, R * H, H), A[:, 0]).view_as(A)
    if diagonal is not None:
        product.addcmul_(diagonal[..., None], A[:, 1:])  # (B, R, H, Q) += (B, R, H, 1) * (B, 1, H, Q)
    return product
