"""The step of each cell together with its local derivatives.

`linearise(cell, x, hidden)` takes the step that `cell(x, hidden)` takes and returns its derivatives beside it;
`unpack` turns gradients of the groups into gradients of the cell's parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from torch.nn.functional import linear, pad

from ptncn.learners.cells import GRU, LSTM, RHN, RNN, Cell, Hidden
from ptncn.learners.linearisation import Group, Linearisation, MicroStep


def group_shapes(cell: str, input_size: int, hidden_size: int, depth: int = 1) -> list[tuple[int, int]]:
    """(Q, m) of each group: how many pre-activations it makes, and from how many numbers.

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
    of_x, of_h, of_1 = first[:, :n], first[:, n:-1], first[:, -1]
    if isinstance(cell, RHN):
        named = {"weight_ih_l0": of_x, "weight_hh_l0": of_h, "bias_hh_l0": of_1}
        for k, gradient in enumerate(gradients[1:], start=1):
            named |= {f"weight_hh_l{k}": gradient[:, :-1], f"bias_hh_l{k}": gradient[:, -1]}
        return named
    if not isinstance(cell, GRU):
        return {"weight_ih_l0": of_x, "weight_hh_l0": of_h, "bias_ih_l0": of_1, "bias_hh_l0": of_1}
    _, from_h, from_x = gradients
    return {
        "weight_ih_l0": torch.cat([of_x, from_x[:, :-1]]),
        "weight_hh_l0": torch.cat([of_h, from_h[:, :-1]]),
        "bias_ih_l0": torch.cat([of_1, from_x[:, -1]]),
        "bias_hh_l0": torch.cat([of_1, from_h[:, -1]]),
    }


def layout(cell: Cell) -> tuple[list[Tensor], list[tuple[slice, int]]]:
    """What does not change from step to step: the recurrent weights of each micro-step, (G', H, H), and for each
    group of weights its gates and its micro-step."""
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
    """(B, G·H) what the input adds to the pre-activations of a cell from `torch.nn`."""
    return linear(x, cell.weight_ih_l0, cell.get_parameter("bias_ih_l0"))


def _from_h(cell: Cell, h: Tensor) -> Tensor:
    """(B, G·H) what the state adds to them."""
    return linear(h, cell.weight_hh_l0, cell.get_parameter("bias_hh_l0"))


def _rnn(cell: RNN, x: Tensor, hidden: Hidden) -> tuple[Hidden, Linearisation]:
    (h,) = hidden
    a = _from_x(cell, x) + _from_h(cell, h)  # (B, H)
    new = torch.tanh(a)  # (B, H)
    slopes = (cell.leak_rate * (1 - new.square()))[:, None, None]  # (B, 1, 1, H)
    micro = MicroStep(slopes, torch.full_like(slopes, 1 - cell.leak_rate), _recurrent(cell.weight_hh_l0))
    new = new if cell.leak_rate == 1 else torch.lerp(h, new, cell.leak_rate)
    return (new,), Linearisation((micro,), (Group(_with_one(x, h), slice(0, 1)),))


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
    return (new_h, new_c), Linearisation((micro,), (Group(_with_one(x, h), slice(0, 4)),))


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
        Group(_with_one(x, h), slice(0, 2)),
        Group(_with_one(h), slice(2, 3)),
        Group(_with_one(x), slice(3, 4)),
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
        groups.append(Group(_with_one(x, s) if k == 0 else _with_one(s), slice(0, 2), micro=k))
        s = torch.lerp(s, candidate, transform)
    return (s,), Linearisation(tuple(micros), tuple(groups))


_STEPS: dict[type[Cell], Callable[..., tuple[Hidden, Linearisation]]] = {
    RNN: _rnn,
    LSTM: _lstm,
    GRU: _gru,
    RHN: _rhn,
}
