"""How a cell's next state answers to its state and to its weights, without a Jacobian full of zeros.

Every cell is one or more *micro-steps*: linear maps, then functions of single units,

    a[g] = W[g] v + U[g] h                 pre-activations g = 1 … G of each unit
    s'[r] = f_r(a[1] … a[G], s)            parts r = 1 … R of the state, unit by unit, h first

so that three small arrays say everything about one: how a unit's parts answer to its own pre-activations
(`slopes`), how they answer to the unit's own last state (`carry`), and U. The weights fall into *groups* that
multiply one and the same vector v, [x, h, 1] for most: ∂s'/∂(weights) of a group is the Kronecker product of
∂s'/∂a and v, exactly.

Letters: B rows, H units, R state parts, G pre-activations a unit, Q = G·H of a group, m numbers in its vector.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class MicroStep:
    """Derivatives of s' = f(a, s) at one point."""

    slopes: Tensor
    """(B, R, G, H) of s'[r] to a[g], unit by unit."""
    carry: Tensor
    """(B, R, R, H) of s'[r] to s[q] with the pre-activations held, unit by unit."""
    recurrent: Tensor
    """(G', H, H) the weights U of the first G' ≤ G pre-activations; the others do not see h."""

    def push(self, tangent: Tensor) -> Tensor:
        """(B, R, H) the tangent of s' that a tangent (B, R, H) of s makes."""
        seeing, H, _ = self.recurrent.shape
        da = (tangent[:, 0] @ self.recurrent.view(-1, H).T).view(-1, 1, seeing, H)  # (B, 1, G', H)
        return (self.slopes[:, :, :seeing] * da).sum(2) + (self.carry * tangent[:, None]).sum(2)  # (B, R, H)

    def pull(self, adjoint: Tensor) -> tuple[Tensor, Tensor]:
        """(B, G, H) and (B, R, H) the adjoints of a and of s that an adjoint (B, R, H) of s' makes."""
        seeing, H, _ = self.recurrent.shape
        of_a = (self.slopes * adjoint[:, :, None]).sum(1)  # (B, G, H)
        of_s = (self.carry * adjoint[:, :, None]).sum(1)  # (B, R, H)
        of_s[:, 0] += of_a[:, :seeing].flatten(1) @ self.recurrent.view(-1, H)  # (B, H) = (B, G'H) @ (G'H, H)
        return of_a, of_s

    def dense(self) -> Tensor:
        """(B, R, H, H) of s'[r] to h: all of the transition that is not diagonal."""
        seeing = len(self.recurrent)
        jacobian = torch.einsum("brgi,gij->brij", self.slopes[:, :, :seeing], self.recurrent).contiguous()
        jacobian.diagonal(dim1=2, dim2=3).add_(self.carry[:, :, 0])
        return jacobian


@dataclass(frozen=True)
class Group:
    """Linear maps that share the vector they multiply."""

    vector: Tensor
    """(B, m) that vector; its last number is 1, for the bias."""
    gates: slice
    """Which pre-activations of the micro-step they make."""
    micro: int = 0
    """The micro-step they belong to."""


@dataclass(frozen=True)
class Linearisation:
    """The derivatives of one step of a cell, its micro-steps in order."""

    micros: tuple[MicroStep, ...]
    groups: tuple[Group, ...]

    def push(self, tangent: Tensor) -> Tensor:
        """(B, R, H) ∂s'/∂s · tangent (B, R, H)."""
        for micro in self.micros:
            tangent = micro.push(tangent)
        return tangent

    def pull(self, adjoint: Tensor) -> list[Tensor]:
        """(B, Q) per group: adjoint (B, R, H) · ∂s'/∂a."""
        of_a: dict[int, Tensor] = {}
        for index in reversed(range(len(self.micros))):
            of_a[index], adjoint = self.micros[index].pull(adjoint)
        return [of_a[group.micro][:, group.gates].flatten(1) for group in self.groups]

    def transition(self) -> tuple[Tensor, Tensor | None]:
        """(B, R, H, H) ∂s'/∂h, dense, and (B, R, H) ∂s'/∂c, diagonal; None for a cell without c."""
        jacobian = self.micros[0].dense()
        for micro in self.micros[1:]:
            jacobian = micro.dense() @ jacobian
        carry = self.micros[0].carry
        return jacobian, carry[:, :, 1] if carry.shape[2] > 1 else None

    def slopes(self, index: int) -> Tensor:
        """(B, R, G, H) of the group's micro-step: ∂s'/∂a, unit by unit, where no micro-step follows."""
        group = self.groups[index]
        return self.micros[group.micro].slopes[:, :, group.gates]

    def is_diagonal(self, index: int) -> bool:
        """Whether each pre-activation of the group reaches the unit it belongs to and no other."""
        return self.groups[index].micro == len(self.micros) - 1

    def sensitivity(self, index: int) -> Tensor:
        """(B, R, H, Q) ∂s'/∂a of the group, later micro-steps included, written out."""
        slopes = self.slopes(index)
        later = None
        for micro in self.micros[self.groups[index].micro + 1 :]:
            later = micro.dense() if later is None else micro.dense() @ later  # (B, R, H, H)
        if later is None:
            return torch.diag_embed(slopes, dim1=2, dim2=4).flatten(3)
        return (later[:, :, :, None] * slopes[:, :, None]).flatten(3)  # (B, R, H, 1, H) * (B, R, 1, G, H)
