"""SnAp-1, e-prop and RFLO: each weight has a trace of the past of its own unit only.

Of RTRL's influence ds/dθ, only the part of each weight on its own unit is kept. With A the unit's own part of the
transition, which differs between the learners, and v the vector that the weights multiply,

    T[i] ← A[i] T[i] + slope[i] ⊗ v            ∇W[i] = Σ over rows of δ[i] T[i]

so a step costs B·R·P operations, for P weights and B rows. With thousands of units and inputs the traces take
gigabytes, all of which each step reads and writes; `immediate` has no traces.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ptncn.learners.base import RecurrentState, check_choice, check_share
from ptncn.learners.cells import RNN, Cell, make_readout
from ptncn.learners.forward_mode import WORKSPACE, ForwardMode, rows
from ptncn.learners.linearisation import Linearisation, MicroStep

FEEDBACKS = ("symmetric", "random")


@dataclass(kw_only=True)
class TraceState(RecurrentState):
    traces: tuple[Tensor, ...] = ()
    """(B, R, G, H, m) per group of weights: d s[r] of a unit / d its own weights; () while they are zero."""


class TraceLearner(ForwardMode):
    """Carries one trace for each weight; a subclass decides how much of it a step keeps."""

    state_type = TraceState

    def keep(self, micro: MicroStep) -> Tensor:
        """(B, R, R, H) A: the derivative of each part of a unit's state by its previous parts."""
        raise NotImplementedError

    def carries(self, state: TraceState) -> bool:
        return bool(state.traces)

    def contract(self, adjoint: Tensor, state: TraceState) -> list[Tensor]:
        return [contract_rows(adjoint.repeat(1, trace.shape[2]), trace[:, 0].flatten(1, 2)) for trace in state.traces]

    def carry(self, linear: Linearisation, state: TraceState, mask: Tensor | None) -> None:
        if not state.traces:
            state.traces = tuple(
                group.vector.new_zeros(*linear.slopes(k).shape, group.vector.shape[1])
                for k, group in enumerate(linear.groups)
            )
        whole = torch.eye(self.cell.parts, dtype=self.readout.weight.dtype, device=self.readout.weight.device)
        for index, micro in enumerate(linear.micros):
            kept = rows(mask, self.keep(micro), whole[None, :, :, None])
            for k, (trace, group) in enumerate(zip(state.traces, linear.groups, strict=True)):
                if group.micro == index:
                    advance(trace, kept, rows(mask, linear.slopes(k), 0.0), group.vector)
                else:
                    advance(trace, kept)


class EligibilityLearner(TraceLearner):
    """Traces that ignore the weights between units and decay only by what a unit keeps of itself.

    The prediction error reaches the units through the weights of the readout (`feedback="symmetric"`) or through fixed
    random weights (`feedback="random"`).
    """

    default_feedback: str

    def __init__(self, input_size: int, hidden_size: int, *, feedback: str | None = None, **common: Any) -> None:
        """
        Arguments:
            feedback: "symmetric" or "random"; None for the choice of the authors of the rule.
            common: see `RecurrentLearner`.
        """
        feedback = self.default_feedback if feedback is None else feedback
        check_choice("feedback", feedback, FEEDBACKS)
        self.feedback_kind = feedback
        super().__init__(input_size, hidden_size, **common)

    def build(self) -> None:
        if self.feedback_kind == "random":
            self.broadcast = make_readout(self.hidden_size, self.input_size, self.generator, self.readout.weight.dtype)
            self.broadcast.requires_grad_(False)

    def feedback(self, error: Tensor) -> Tensor:
        return error @ self.broadcast.weight if self.feedback_kind == "random" else super().feedback(error)

    def options(self) -> dict[str, Any]:
        return {**super().options(), "feedback": self.feedback_kind}

    def keep(self, micro: MicroStep) -> Tensor:
        return micro.carry


def contract_rows(adjoint: Tensor, traces: Tensor) -> Tensor:
    """(Q, m) the sum over rows of adjoint (B, Q) times traces (B, Q, m), without a copy of either."""
    return torch.bmm(adjoint.T[:, None], traces.transpose(0, 1))[:, 0]  # (Q, 1, B) @ (Q, B, m)


def advance(trace: Tensor, kept: Tensor, slopes: Tensor | None = None, vector: Tensor | None = None) -> None:
    """trace ← kept · trace + slopes ⊗ vector, in place, in blocks that fit into a cache.

    trace (B, R, G, H, m), kept (B, R, R, H), slopes (B, R, G, H), vector (B, m).
    """
    B, R, G, H, m = trace.shape
    units = max(1, WORKSPACE // (R * G * m * trace.element_size()))
    batch = max(1, units // H)
    for b in range(0, B, batch):
        batch_rows = slice(b, b + batch)
        for i in range(0, H, units):
            unit_range = slice(i, i + units)
            part = trace[batch_rows, :, :, unit_range]  # (b, R, G, i, m)
            factor = kept[batch_rows, :, :, None, unit_range, None]  # (b, R, R, 1, i, 1)
            if R == 1:
                part.mul_(factor[:, 0])
            else:
                part.copy_((factor * part[:, None]).sum(2))
            if slopes is not None and vector is not None:
                part.addcmul_(slopes[batch_rows, :, :, unit_range, None], vector[batch_rows, None, None, None])


class SnAp1(TraceLearner):
    """Keeps only the influence of each weight on its own unit: A is the unit's own entry of the transition.

    It is exact where the transition is diagonal. For an LSTM the unit is the pair h, c, and A is two by two. Each
    micro-step of a deep RHN counts as a step.

    >>> from ptncn.learners import make
    >>> make("gru-snap1", input_size=3, hidden_size=4).registry_name
    'gru-snap1'
    """

    rule = "snap1"

    def keep(self, micro: MicroStep) -> Tensor:
        own = micro.recurrent.diagonal(dim1=1, dim2=2)  # (G', H)
        kept = micro.carry.clone()  # (B, R, R, H)
        kept[:, :, 0] += (micro.slopes[:, :, : len(own)] * own).sum(2)
        return kept


CELLS = ("lstm", "gru", "rhn")


class EProp(EligibilityLearner):
    """Traces decay by the gate that keeps the unit's past: the forget gate of an LSTM, as in the authors' appendix, the
    update gate of a GRU and the carry gate of an RHN. Connections between units, and from a unit's output to its own
    gates, are left out.

    >>> from ptncn.learners import make
    >>> make("lstm-e-prop", input_size=3, hidden_size=4, feedback="random").registry_name
    'lstm-e-prop'
    """

    rule = "e-prop"
    default_feedback = "symmetric"

    def __init__(self, input_size: int, hidden_size: int, *, cell: str = "lstm", **common: Any) -> None:
        """
        Arguments:
            cell: "lstm", "gru" or "rhn"; `rnn-rflo` is the same for a plain cell.
            common: see `EligibilityLearner` and `RecurrentLearner`.
        """
        check_choice("cell for e-prop", cell, CELLS)
        super().__init__(input_size, hidden_size, cell=cell, **common)


class RFLO(EligibilityLearner):
    """Traces decay by the leak of the network, the same for all units::

        h' = (1 − α) h + α tanh(W [x, h, 1])          T ← (1 − α) T + α tanh′ ⊗ [x, h, 1]

    The traces ignore the recurrent weights, and the error reaches the units through random weights. With α = 1 nothing
    of the past is kept.

    >>> from ptncn.learners import make
    >>> make("rnn-rflo", input_size=3, hidden_size=4, leak_rate=0.2).registry_name
    'rnn-rflo'
    """

    rule = "rflo"
    default_feedback = "random"

    def __init__(
        self, input_size: int, hidden_size: int, *, cell: str = "rnn", leak_rate: float = 0.5, **common: Any
    ) -> None:
        """
        Arguments:
            leak_rate: share of a unit that is new at each step, α.
            common: see `EligibilityLearner` and `RecurrentLearner`.
        """
        check_choice("cell for rflo", cell, ["rnn"])
        check_share("leak_rate", leak_rate)
        self.leak_rate = leak_rate
        super().__init__(input_size, hidden_size, cell=cell, **common)

    def build_cell(self, name: str, *, depth: int, gate_bias: float | None, dtype: torch.dtype) -> Cell:
        cell = super().build_cell(name, depth=depth, gate_bias=gate_bias, dtype=dtype)
        assert isinstance(cell, RNN)
        cell.leak_rate = self.leak_rate
        return cell

    def options(self) -> dict[str, Any]:
        return {**super().options(), "leak_rate": self.leak_rate}
