"""Recurrent cells: LSTM, GRU and Elman's RNN from `torch.nn`, and the recurrent highway network.

A cell takes one differentiable step, `cell(x, hidden) -> hidden`, or many, `cell.unroll(xs, hidden)`, with
the fused kernel where there is one. `hidden` is a tuple whose first entry is the input of the readout: `(h,)`, or
`(h, c)` for the LSTM.
"""

from __future__ import annotations

import math
from typing import ClassVar

import torch
from torch import Tensor, nn

from ptncn.registry import unknown

Hidden = tuple[Tensor, ...]
"""(B, H) each, the visible one first."""


class Cell(nn.Module):
    """Base of all cells; `weight_ih_l0` (gates·H, n) and `weight_hh_l0` (gates·H, H) are their weights."""

    parts: ClassVar[int] = 1
    """Tensors in `hidden`."""
    gate_bias: ClassVar[float | None] = None
    """Initial bias of the gate that decides how much of the past is kept, which is always stacked second; None for a
    cell without such a gate."""

    input_size: int
    hidden_size: int
    weight_ih_l0: Tensor
    weight_hh_l0: Tensor

    def begin(self, batch_size: int) -> Hidden:
        """Zeros, (B, H) each."""
        return tuple(self.weight_hh_l0.new_zeros(batch_size, self.hidden_size) for _ in range(self.parts))

    def forward(self, x: Tensor, hidden: Hidden) -> Hidden:
        """One step: x (B, n)."""
        raise NotImplementedError

    def unroll(self, xs: Tensor, hidden: Hidden) -> tuple[Tensor, Hidden]:
        """xs (T, B, n) → the visible state after each step (T, B, H), and the last hidden."""
        visible = []
        for x in xs:
            hidden = self(x, hidden)
            visible.append(hidden[0])
        return torch.stack(visible), hidden

    def reset_parameters(self) -> None:
        """Do nothing: `make_cell` draws the weights from a generator, and `torch.nn` would use the global one."""

    def _weights(self) -> list[Tensor]:
        return list(self.parameters())


class LSTM(Cell, nn.LSTM):
    """`torch.nn.LSTM`, one layer; gates are stacked as input, forget, cell, output."""

    parts = 2
    gate_bias = 1.0  # a forget gate that starts open is what makes an LSTM remember early in training

    def forward(self, x: Tensor, hidden: Hidden) -> Hidden:  # type: ignore[override]  # one step
        return torch.lstm_cell(x, list(hidden), *self._weights())

    def unroll(self, xs: Tensor, hidden: Hidden) -> tuple[Tensor, Hidden]:
        h, c = hidden
        visible, (h, c) = nn.LSTM.forward(self, xs, (h[None], c[None]))
        return visible, (h[0], c[0])


class GRU(Cell, nn.GRU):
    """`torch.nn.GRU`, one layer; gates are stacked as reset, update, new."""

    gate_bias = 0.0

    def forward(self, x: Tensor, hidden: Hidden) -> Hidden:  # type: ignore[override]  # one step
        return (torch.gru_cell(x, hidden[0], *self._weights()),)

    def unroll(self, xs: Tensor, hidden: Hidden) -> tuple[Tensor, Hidden]:
        visible, h = nn.GRU.forward(self, xs, hidden[0][None])
        return visible, (h[0],)


class RNN(Cell, nn.RNN):
    """`torch.nn.RNN`, one layer: Elman's network with tanh, and with a leak where `leak_rate` is below 1::

    h' = (1 − leak_rate) h + leak_rate tanh(W [x, h, 1])
    """

    leak_rate: float = 1.0

    def forward(self, x: Tensor, hidden: Hidden) -> Hidden:  # type: ignore[override]  # one step
        new = torch.rnn_tanh_cell(x, hidden[0], *self._weights())
        return (new if self.leak_rate == 1 else torch.lerp(hidden[0], new, self.leak_rate),)

    def unroll(self, xs: Tensor, hidden: Hidden) -> tuple[Tensor, Hidden]:
        if self.leak_rate != 1:
            return Cell.unroll(self, xs, hidden)
        visible, h = nn.RNN.forward(self, xs, hidden[0][None])
        return visible, (h[0],)


class RHN(Cell):
    """Recurrent highway network (Zilly et al., 2017) with the carry gate coupled to the transform gate.

    A time step is `depth` micro-steps, the input entering in the first. Micro-step k, from s_k to s_{k+1}::

        candidate = tanh   (x W_h + s_k R_h,k + b_h,k)        x W only where k = 0
        transform = sigmoid(x W_t + s_k R_t,k + b_t,k)
        s_{k+1}   = candidate · transform + s_k · (1 − transform)

    Stacked as candidate, transform: `weight_ih_l0` (2H, n), and for each k `weight_hh_lk` (2H, H) and
    `bias_hh_lk` (2H,). A bias of the input would be redundant.
    """

    gate_bias = -2.0  # nearly shut, so that the past is carried along; the authors use −2 to −4

    def __init__(self, input_size: int, hidden_size: int, depth: int = 1, dtype: torch.dtype | None = None) -> None:
        super().__init__()
        self.input_size, self.hidden_size, self.depth = input_size, hidden_size, depth
        self.weight_ih_l0 = nn.Parameter(torch.empty(2 * hidden_size, input_size, dtype=dtype))
        for k in range(depth):
            weight = torch.empty(2 * hidden_size, hidden_size, dtype=dtype)
            self.register_parameter(f"weight_hh_l{k}", nn.Parameter(weight))
            self.register_parameter(f"bias_hh_l{k}", nn.Parameter(torch.empty(2 * hidden_size, dtype=dtype)))

    def forward(self, x: Tensor, hidden: Hidden) -> Hidden:
        return self._micro_steps(x @ self.weight_ih_l0.T, hidden)

    def unroll(self, xs: Tensor, hidden: Hidden) -> tuple[Tensor, Hidden]:
        visible = []
        for drive in xs @ self.weight_ih_l0.T:  # one product for all steps
            hidden = self._micro_steps(drive, hidden)
            visible.append(hidden[0])
        return torch.stack(visible), hidden

    def _micro_steps(self, drive: Tensor, hidden: Hidden) -> Hidden:
        (s,) = hidden
        for k in range(self.depth):
            weight, bias = getattr(self, f"weight_hh_l{k}"), getattr(self, f"bias_hh_l{k}")
            stacked = torch.addmm(bias, s, weight.T)  # (B, 2H)
            if k == 0:
                stacked = stacked + drive
            candidate, transform = stacked.chunk(2, dim=-1)
            s = torch.lerp(s, torch.tanh(candidate), torch.sigmoid(transform))
        return (s,)


CELLS: dict[str, type[Cell]] = {"lstm": LSTM, "gru": GRU, "rnn": RNN, "rhn": RHN}


def make_cell(
    name: str,
    input_size: int,
    hidden_size: int,
    generator: torch.Generator,
    *,
    depth: int = 1,
    gate_bias: float | None = None,
    dtype: torch.dtype | None = None,
) -> Cell:
    """A cell with weights drawn uniformly from ±1/√H, as `torch.nn` does, but from `generator`.

    `gate_bias` is the initial bias of the gate that decides what is kept (LSTM: forget, 1 by default; GRU:
    update, 0; RHN: transform, −2). `depth` counts the micro-steps of an RHN.

    >>> cell = make_cell("lstm", 3, 5, torch.Generator().manual_seed(0))
    >>> h, c = cell(torch.zeros(2, 3), cell.begin(2))
    >>> h.shape
    torch.Size([2, 5])
    """
    if name not in CELLS:
        raise ValueError(unknown("cell", name, CELLS))
    kind = CELLS[name]
    if kind is not RHN and depth != 1:
        raise ValueError(f"depth: expected 1, as only the rhn cell has micro-steps, got {depth} for {name!r}")
    if gate_bias is not None and kind.gate_bias is None:
        raise ValueError(f"gate_bias: expected None, as the cell {name!r} has no gates, got {gate_bias}")
    if kind is RHN:
        cell: Cell = RHN(input_size, hidden_size, depth, dtype)
    else:
        cell = kind(input_size, hidden_size, dtype=dtype)
    draw_uniform(cell, 1 / math.sqrt(hidden_size), generator)
    if gate_bias is None:
        gate_bias = kind.gate_bias
    if gate_bias is not None:
        _set_gate_bias(cell, gate_bias)
    return cell


def make_readout(
    hidden_size: int, output_size: int, generator: torch.Generator, dtype: torch.dtype | None = None
) -> nn.Linear:
    """The linear map from the visible state (B, H) to logits (B, n), drawn as `torch.nn.Linear` is."""
    readout: nn.Linear = nn.utils.skip_init(  # type: ignore[no-untyped-call]
        nn.Linear, hidden_size, output_size, dtype=dtype
    )
    draw_uniform(readout, 1 / math.sqrt(hidden_size), generator)
    return readout


@torch.no_grad()
def draw_uniform(module: nn.Module, bound: float, generator: torch.Generator) -> None:
    """Fill every parameter from ±bound, in float64, so that a seed gives the same weights in any precision."""
    for parameter in module.parameters():
        unit = torch.rand(parameter.shape, generator=generator, dtype=torch.float64)
        parameter.copy_((2 * unit - 1) * bound)


@torch.no_grad()
def _set_gate_bias(cell: Cell, value: float) -> None:
    """Set the biases of the second gate so that they sum to `value`, in each micro-step of an RHN."""
    second = slice(cell.hidden_size, 2 * cell.hidden_size)
    for name, parameter in cell.named_parameters():
        if name.startswith("bias_hh"):
            parameter[second] = value
        elif name.startswith("bias_ih"):
            parameter[second] = 0.0
