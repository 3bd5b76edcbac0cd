"""Exact RTRL of the element-wise LSTM (Irie, Gopalakrishnan and Schmidhuber, 2024), at a thousand units and more."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import linear, pad

from ptncn.learners.base import RecurrentState, check_choice, keep_masked
from ptncn.learners.cells import Cell, Hidden, draw_uniform
from ptncn.learners.forward_mode import ForwardMode, rows
from ptncn.learners.traces import advance, contract_rows


class ELSTM(Cell):
    """An LSTM whose cells are connected only to themselves, and whose output gate sees all of them::

        f = σ(F x + w_f c + b_f)        z = tanh(Z x + w_z c + b_z)        c' = f c + (1 − f) z
        o = σ(O x + W_o c' + b_o)       h' = o c'

    `weight_ih_l0` (3H, n) stacks F, Z, O; `weight_cc_l0` (2, H) holds w_f, w_z; `weight_hh_l0` (H, H) is W_o.
    """

    parts = 2
    gate_bias = 1.0  # a forget gate that starts open

    def __init__(self, input_size: int, hidden_size: int, dtype: torch.dtype | None = None) -> None:
        super().__init__()
        self.input_size, self.hidden_size = input_size, hidden_size
        self.weight_ih_l0 = nn.Parameter(torch.empty(3 * hidden_size, input_size, dtype=dtype))
        self.weight_cc_l0 = nn.Parameter(torch.empty(2, hidden_size, dtype=dtype))
        self.weight_hh_l0 = nn.Parameter(torch.empty(hidden_size, hidden_size, dtype=dtype))
        self.bias_l0 = nn.Parameter(torch.empty(3 * hidden_size, dtype=dtype))

    def forward(self, x: Tensor, hidden: Hidden) -> Hidden:
        new_c, _, _, a_o = self.move(x, hidden[1])
        return self.gate(a_o, new_c) * new_c, new_c

    def move(self, x: Tensor, c: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """(B, H) each: c', f, z, and what the input adds to the output gate."""
        a_f, a_z, a_o = linear(x, self.weight_ih_l0, self.bias_l0).chunk(3, dim=1)
        w_f, w_z = self.weight_cc_l0
        f, z = torch.sigmoid(a_f + w_f * c), torch.tanh(a_z + w_z * c)
        return torch.lerp(z, c, f), f, z, a_o

    def gate(self, a_o: Tensor, c: Tensor) -> Tensor:
        """(B, H) the output gate."""
        return torch.sigmoid(a_o + c @ self.weight_hh_l0.T)


@dataclass(kw_only=True)
class ELSTMState(RecurrentState):
    traces: Tensor | None = None
    """(B, 1, 2, H, n + 1) dc/dF and dc/dZ, biases last; None while they are zero."""
    own_traces: Tensor | None = None
    """(B, 2, H) dc/dw_f and dc/dw_z."""
    vector: Tensor | None = None
    """(B, n + 1) the last observation, and a 1."""
    output_gate: Tensor | None = None
    """(B, H) o of the last step."""


class ELSTMRTRL(ForwardMode):
    """Exact real-time recurrent learning: the recurrence is diagonal, so each weight has one trace.

    With f̂ = (c − z) f (1 − f), ẑ = (1 − f)(1 − z²) and J = f + w_f f̂ + w_z ẑ,

        dc/dF ← J dc/dF + f̂ ⊗ x          dc/dw_f ← J dc/dw_f + f̂ c          and likewise for Z with ẑ

    The output gate is not part of the recurrence: O and W_o have the gradient of the present step, which is
    exact. The state holds 2·B·H·(n + 1) numbers: 10 MB for 50 rows of 1,000 units on 49 symbols, 660 MB for 20 rows of
    1,000 units on 4,096 pixels.

    >>> from ptncn.learners import make
    >>> make("elstm-rtrl", input_size=3, hidden_size=4).registry_name
    'elstm-rtrl'
    """

    rule = "rtrl"
    state_type = ELSTMState
    cell: ELSTM

    def __init__(self, input_size: int, hidden_size: int, *, cell: str = "elstm", **common: Any) -> None:
        """
        Arguments:
            common: see `RecurrentLearner`.
        """
        check_choice("cell", cell, ["elstm"])
        super().__init__(input_size, hidden_size, cell=cell, **common)

    def build_cell(self, name: str, *, depth: int, gate_bias: float | None, dtype: torch.dtype) -> ELSTM:
        if depth != 1:
            raise ValueError(f"depth: expected 1 for the cell {name!r}, got {depth}")
        cell = ELSTM(self.input_size, self.hidden_size, dtype)
        draw_uniform(cell, 1 / math.sqrt(self.hidden_size), self.generator)
        with torch.no_grad():
            cell.bias_l0[: self.hidden_size] = ELSTM.gate_bias if gate_bias is None else gate_bias
        return cell

    def carries(self, state: ELSTMState) -> bool:
        return state.traces is not None

    def observe(self, x: Tensor, state: ELSTMState, mask: Tensor | None) -> None:
        _, c = state.hidden
        new_c, f, z, a_o = self.cell.move(x, c)
        o = self.cell.gate(a_o, new_c)
        slopes = torch.stack([(c - z) * f * (1 - f), (1 - f) * (1 - z.square())], dim=1)  # (B, 2, H): f̂, ẑ
        jacobian = f + (self.cell.weight_cc_l0 * slopes).sum(1)  # (B, H)
        vector = pad(x, (0, 1), value=1.0)
        if state.traces is None or state.own_traces is None:
            state.traces = slopes.new_zeros(len(x), 1, 2, self.hidden_size, vector.shape[1])
            state.own_traces = torch.zeros_like(slopes)
            state.vector, state.output_gate = torch.zeros_like(vector), torch.zeros_like(o)
        assert state.vector is not None
        assert state.output_gate is not None
        slopes, jacobian = rows(mask, slopes, 0.0), rows(mask, jacobian, 1.0)
        advance(state.traces, jacobian[:, None, None], slopes[:, None], vector)
        state.own_traces = jacobian[:, None] * state.own_traces + slopes * c[:, None]
        state.vector, state.output_gate = rows(mask, vector, state.vector), rows(mask, o, state.output_gate)
        state.hidden = keep_masked(mask, (o * new_c, new_c), state.hidden)

    def recurrent_gradient(self, adjoint: Tensor, state: ELSTMState) -> dict[str, Tensor]:
        assert state.traces is not None
        assert state.own_traces is not None
        assert state.vector is not None
        assert state.output_gate is not None
        c, o = state.hidden[1], state.output_gate
        grad_gate = adjoint * c * o * (1 - o)  # (B, H) of the output gate's pre-activation
        grad_c = adjoint * o + grad_gate @ self.cell.weight_hh_l0  # (B, H)
        inner = contract_rows(grad_c.repeat(1, 2), state.traces[:, 0].flatten(1, 2))  # (2H, n + 1)
        outer = grad_gate.T @ state.vector  # (H, n + 1)
        stacked = torch.cat([inner, outer])
        return {
            "weight_ih_l0": stacked[:, :-1],
            "weight_cc_l0": (grad_c[:, None] * state.own_traces).sum(0),
            "weight_hh_l0": grad_gate.T @ c,
            "bias_l0": stacked[:, -1],
        }
