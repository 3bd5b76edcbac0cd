"""What SnAp-1, e-prop and RFLO share: each weight has a trace of its own unit's past, and of no other unit's.

The influence ds/dθ of RTRL is kept only where a weight meets the unit that it belongs to. With A the unit's own part
of the transition, which the learners choose, and v the numbers that the weights multiply,

    T[i] ← A[i] T[i] + slope[i] ⊗ v            ∇W[i] = Σ over rows of δ[i] T[i]

so that a step costs as much as there are weights, times the rows: B·R·P numbers. With thousands of units and inputs
that is gigabytes, gone through at each step; `immediate` needs none of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ptncn.learners.base import RecurrentState, check_choice
from ptncn.learners.cells import make_readout
from ptncn.learners.forward_mode import ForwardMode, rows
from ptncn.learners.linearisation import Linearisation, MicroStep

WORKSPACE = 2 * 2**20
"""Bytes of a trace taken through a step at once: about what a cache holds."""
FEEDBACKS = {"symmetric": None, "random": None}


@dataclass(kw_only=True)
class TraceState(RecurrentState):
    traces: tuple[Tensor, ...] = ()
    """(B, R, G, H, m) per group of weights: d s[r] of a unit / d its own weights; () while they are zero."""


class TraceLearner(ForwardMode):
    """Carry one trace for each weight; a subclass says how much of it a step keeps."""

    state_type = TraceState

    def keep(self, micro: MicroStep) -> Tensor:
        """(B, R, R, H) how each part of a unit's state answers to the parts before: A."""
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
    """Traces that the weights between units have no part in: what a unit keeps of itself is all that fades them.

    The error of the prediction reaches the units through the readout's own weights, `feedback="symmetric"`, or
    through fixed random ones, `feedback="random"`.
    """

    default_feedback: str

    def __init__(self, input_size: int, hidden_size: int, *, feedback: str | None = None, **common: Any) -> None:
        """
        :param feedback: "symmetric" or "random"; None for what the rule's authors have.
        :param common: see `RecurrentLearner`.
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
    """trace ← kept · trace + slopes ⊗ vector, in place and a cache's worth at a time.

    trace (B, R, G, H, m), kept (B, R, R, H), slopes (B, R, G, H), vector (B, m).
    """
    B, R, G, H, m = trace.shape
    units = max(1, WORKSPACE // (R * G * m * trace.element_size()))
    batch = max(1, units // H)
    for b in range(0, B, batch):
        some = slice(b, b + batch)
        for i in range(0, H, units):
            these = slice(i, i + units)
            part = trace[some, :, :, these]  # (b, R, G, i, m)
            factor = kept[some, :, :, None, these, None]  # (b, R, R, 1, i, 1)
            if R == 1:
                part.mul_(factor[:, 0])
            else:
                part.copy_((factor * part[:, None]).sum(2))
            if slopes is not None and vector is not None:
                part.addcmul_(slopes[some, :, :, these, None], vector[some, None, None, None])
