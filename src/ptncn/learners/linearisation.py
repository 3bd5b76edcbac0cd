"""Derivatives of a cell's next state by its state and weights, without storing Jacobians that are mostly zero.

Every cell is one or more *micro-steps*: linear maps, then functions of single units,

    a[g] = W[g] v + U[g] h                 pre-activations g = 1 … G of each unit
    s'[r] = f_r(a[1] … a[G], s)            parts r = 1 … R of the state, unit by unit, h first

so three small arrays describe a micro-step: the derivatives of a unit's parts by its own pre-activations (`slopes`)
and by its own last state (`carry`), and U. Weights that multiply the same vector v, usually [x, h, 1], form a *group*:
∂s'/∂(weights) of a group is exactly the Kronecker product of ∂s'/∂a and v.

Letters: B rows, H units, R state parts, G pre-activations per unit, Q = G·H of a group, m numbers in its vector.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import linear, pad

from ptncn.learners.cells import GRU, LSTM, RHN, RNN, Cell, Hidden


@dataclass(frozen=True)
class MicroStep:
    """Derivatives of s' = f(a, s) at one point."""

    slopes: Tensor
    """(B, R, G, H) of s'[r] to a[g], unit by unit."""
    carry: Tensor
    """(B, R, R, H) of s'[r] to s[q] with the pre-activations held fixed, unit by unit."""
    recurrent: Tensor
    """(G', H, H) the weights U of the first G' ≤ G pre-activations; the others do not see h."""

    def push(self, tangent: Tensor) -> Tensor:
        """(B, R, H) the tangent of s' for a tangent (B, R, H) of s."""
        gates, H, _ = self.recurrent.shape
        da = (tangent[:, 0] @ self.recurrent.view(-1, H).T).view(-1, 1, gates, H)  # (B, 1, G', H)
        return (self.slopes[:, :, :gates] * da).sum(2) + (self.carry * tangent[:, None]).sum(2)  # (B, R, H)

    def pull(self, adjoint: Tensor) -> tuple[Tensor, Tensor]:
        """(B, G, H) and (B, R, H) the adjoints of a and of s for an adjoint (B, R, H) of s'."""
        gates, H, _ = self.recurrent.shape
        grad_a = (self.slopes * adjoint[:, :, None]).sum(1)  # (B, G, H)
        grad_s = (self.carry * adjoint[:, :, None]).sum(1)  # (B, R, H)
        grad_s[:, 0] += grad_a[:, :gates].flatten(1) @ self.recurrent.view(-1, H)  # (B, H) = (B, G'H) @ (G'H, H)
        return grad_a, grad_s

    def dense(self) -> Tensor:
        """(B, R, H, H) of s'[r] to h: the part of the transition that is not diagonal."""
        gates = len(self.recurrent)
        jacobian = torch.einsum("brgi,gij->brij", self.slopes[:, :, :gates], self.recurrent).contiguous()
        jacobian.diagonal(dim1=2, dim2=3).add_(self.carry[:, :, 0])
        return jacobian


@dataclass(frozen=True)
class WeightGroup:
    """Weights that multiply the same vector."""

    vector: Tensor
    """(B, m) that vector; its last number is 1, for the bias."""
    gates: slice
    """The pre-activations of the micro-step that they compute."""
    micro: int = 0
    """The micro-step they belong to."""


@dataclass(frozen=True)
class Linearisation:
    """The derivatives of one step of a cell, its micro-steps in order."""

    micros: tuple[MicroStep, ...]
    groups: tuple[WeightGroup, ...]

    def push(self, tangent: Tensor) -> Tensor:
        """(B, R, H) ∂s'/∂s · tangent (B, R, H)."""
        for micro in self.micros:
            tangent = micro.push(tangent)
        return tangent

    def pull(self, adjoint: Tensor) -> list[Tensor]:
        """(B, Q) per group: adjoint (B, R, H) · ∂s'/∂a."""
        grad_a: dict[int, Tensor] = {}
        for index in reversed(range(len(self.micros))):
            grad_a[index], adjoint = self.micros[index].pull(adjoint)
        return [grad_a[group.micro][:, group.gates].flatten(1) for group in self.groups]

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
        """Whether each pre-activation of the group affects only its own unit."""
        return self.groups[index].micro == len(self.micros) - 1

    def sensitivity(self, index: int) -> Tensor:
        """(B, R, H, Q) ∂s'/∂a of the group, including later micro-steps, as a dense tensor."""
        slopes = self.slopes(index)
        later = None
        for micro in self.micros[self.groups[index].micro + 1 :]:
            later = micro.dense() if later is None else micro.dense() @ later  # (B, R, H, H)
        if later is None:
            return torch.diag_embed(slopes, dim1=2, dim2=4).flatten(3)
        return (later[:, :, :, None] * slopes[:, :, None]).flatten(3)  # (B, R, H, 1, H) * (B, R, 1, G, H)


def group_shapes(cell: str, input_size: int, hidden_size: int, depth: int = 1) -> list[tuple[int, int]]:
    """(Q, m) of each group: the number of its pre-activations, and of the inputs they are computed from.

    >>> group_shapes("lstm", 3, 5)
    [(20, 9)]
    """
    n, H = input_size, hidden_size
    if cell == "gru":
        return [(2 * H, n + H + 1), (H, H + 1), (H, n + 1)]
    gates = {"rnn": 1, "lstm": 4, "rhn": 2}[cell]
    return [(gates * H, n + H + 1)] + [(gates * H, H + 1)] * (depth - 1)


def linearise(cell: Cell, x: Tensor, hidden: Hidden) -> tuple[Hidden, Linearisation]:
    """One step, x (B, n), and its derivatives; nothing is kept for autograd."""
    with torch.no_grad():
        return _STEPS[type(cell)](cell, x, hidden)


def unpack(cell: Cell, gradients: Sequence[Tensor]) -> dict[str, Tensor]:
    """Gradients (Q, m) of the groups → gradients by the names of the cell's parameters."""
    n = cell.input_size
    first = gradients[0]
    grad_x, grad_h, grad_1 = first[:, :n], first[:, n:-1], first[:, -1]
    if isinstance(cell, RHN):
        named = {"weight_ih_l0": grad_x, "weight_hh_l0": grad_h, "bias_hh_l0": grad_1}
        for k, gradient in enumerate(gradients[1:], start=1):
            named |= {f"weight_hh_l{k}": gradient[:, :-1], f"bias_hh_l{k}": gradient[:, -1]}
        return named
    if not isinstance(cell, GRU):
        return {"weight_ih_l0": grad_x, "weight_hh_l0": grad_h, "bias_ih_l0": grad_1, "bias_hh_l0": grad_1}
    _, from_h, from_x = gradients
    return {
        "weight_ih_l0": torch.cat([grad_x, from_x[:, :-1]]),
        "weight_hh_l0": torch.cat([grad_h, from_h[:, :-1]]),
        "bias_ih_l0": torch.cat([grad_1, from_x[:, -1]]),
        "bias_hh_l0": torch.cat([grad_1, from_h[:, -1]]),
    }


def layout(cell: Cell) -> tuple[list[Tensor], list[tuple[slice, int]]]:
    """The parts that are constant over steps: the recurrent weights (G', H, H) of each micro-step, and the gates and
    the micro-step of each group of weights."""
    if isinstance(cell, RHN):
        weights = [cell.get_parameter(f"weight_hh_l{k}") for k in range(cell.depth)]
        return [_recurrent(weight) for weight in weights], [(slice(0, 2), k) for k in range(cell.depth)]
    gates = [slice(0, 2), slice(2, 3), slice(3, 4)] if isinstance(cell, GRU) else [slice(0, 4)]
    return [_recurrent(cell.weight_hh_l0)], [(each, 0) for each in gates]


def _with_one(*parts: Tensor) -> Tensor:
    """(B, m) the parts side by side, and a 1."""
    return pad(torch.cat(parts, dim=1), (0, 1), value=1.0)


def _recurrent(weight: Tensor) -> Tensor:
    """(G, H, H) from the stacked (G·H, H)."""
    return weight.view(-1, weight.shape[1], weight.shape[1])


def _from_x(cell: Cell, x: Tensor) -> Tensor:
    """(B, G·H) the contribution of the input to the pre-activations of a cell from `torch.nn`."""
    return linear(x, cell.weight_ih_l0, cell.get_parameter("bias_ih_l0"))


def _from_h(cell: Cell, h: Tensor) -> Tensor:
    """(B, G·H) the contribution of the state."""
    return linear(h, cell.weight_hh_l0, cell.get_parameter("bias_hh_l0"))


def _rnn(cell: RNN, x: Tensor, hidden: Hidden) -> tuple[Hidden, Linearisation]:
    (h,) = hidden
    a = _from_x(cell, x) + _from_h(cell, h)  # (B, H)
    new = torch.tanh(a)  # (B, H)
    slopes = (cell.leak_rate * (1 - new.square()))[:, None, None]  # (B, 1, 1, H)
    micro = MicroStep(slopes, torch.full_like(slopes, 1 - cell.leak_rate), _recurrent(cell.weight_hh_l0))
    new = new if cell.leak_rate == 1 else torch.lerp(h, new, cell.leak_rate)
    return (new,), Linearisation((micro,), (WeightGroup(_with_one(x, h), slice(0, 1)),))


def _lstm(cell: LSTM, x: Tensor, hidden: Hidden) -> tuple[Hidden, Linearisation]:
    h, c = hidden
    a = _from_x(cell, x) + _from_h(cell, h)  # (B, 4H)
    a_i, a_f, a_g, a_o = a.chunk(4, dim=1)
    i, f, g, o = a_i.sigmoid(), a_f.sigmoid(), a_g.tanh(), a_o.sigmoid()  # (B, H)
    new_c = f * c + i * g
    squashed = new_c.tanh()
    new_h = o * squashed
    h_to_c = o * (1 - squashed.square())
    c_to_a = torch.stack([g * i * (1 - i), c * f * (1 - f), i * (1 - g.square()), torch.zeros_like(o)], dim=1)
    h_to_a = h_to_c[:, None] * c_to_a  # (B, 4, H)
    h_to_a[:, 3] = squashed * o * (1 - o)
    carry = x.new_zeros(len(x), 2, 2, cell.hidden_size)
    carry[:, 0, 1] = h_to_c * f
    carry[:, 1, 1] = f
    micro = MicroStep(torch.stack([h_to_a, c_to_a], dim=1), carry, _recurrent(cell.weight_hh_l0))
    return (new_h, new_c), Linearisation((micro,), (WeightGroup(_with_one(x, h), slice(0, 4)),))


def _gru(cell: GRU, x: Tensor, hidden: Hidden) -> tuple[Hidden, Linearisation]:
    """Reset and update see [x, h, 1]; of the candidate tanh(p + r q), q sees [h, 1] and p sees [x, 1]."""
    (h,) = hidden
    x_r, x_z, p = _from_x(cell, x).chunk(3, dim=1)
    h_r, h_z, q = _from_h(cell, h).chunk(3, dim=1)
    r, z = (x_r + h_r).sigmoid(), (x_z + h_z).sigmoid()  # (B, H)
    candidate = torch.tanh(p + r * q)
    new = (1 - z) * candidate + z * h
    to_p = (1 - z) * (1 - candidate.square())
    to_r, to_z, to_q = to_p * q * r * (1 - r), (h - candidate) * z * (1 - z), to_p * r
    slopes = torch.stack([to_r, to_z, to_q, to_p], dim=1)[:, None]  # (B, 1, 4, H)
    micro = MicroStep(slopes, z[:, None, None], _recurrent(cell.weight_hh_l0))  # p, the last, does not see h
    groups = (
        WeightGroup(_with_one(x, h), slice(0, 2)),
        WeightGroup(_with_one(h), slice(2, 3)),
        WeightGroup(_with_one(x), slice(3, 4)),
    )
    return (new,), Linearisation((micro,), groups)


def _rhn(cell: RHN, x: Tensor, hidden: Hidden) -> tuple[Hidden, Linearisation]:
    (s,) = hidden
    micros, groups = [], []
    for k in range(cell.depth):
        weight = cell.get_parameter(f"weight_hh_l{k}")
        a = linear(s, weight, cell.get_parameter(f"bias_hh_l{k}"))  # (B, 2H)
        if k == 0:
            a = a + x @ cell.weight_ih_l0.T
        a_c, a_t = a.chunk(2, dim=1)
        candidate, transform = a_c.tanh(), a_t.sigmoid()  # (B, H)
        to_c = transform * (1 - candidate.square())
        to_t = (candidate - s) * transform * (1 - transform)
        slopes = torch.stack([to_c, to_t], dim=1)[:, None]  # (B, 1, 2, H)
        micros.append(MicroStep(slopes, (1 - transform)[:, None, None], _recurrent(weight)))
        groups.append(WeightGroup(_with_one(x, s) if k == 0 else _with_one(s), slice(0, 2), micro=k))
        s = torch.lerp(s, candidate, transform)
    return (s,), Linearisation(tuple(micros), tuple(groups))


_STEPS: dict[type[Cell], Callable[..., tuple[Hidden, Linearisation]]] = {
    RNN: _rnn,
    LSTM: _lstm,
    GRU: _gru,
    RHN: _rhn,
}
