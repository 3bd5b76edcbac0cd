"""The immediate derivative alone: what the weights did at the last step, and nothing before."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from ptncn.learners.base import RecurrentState
from ptncn.learners.forward_mode import ForwardMode, rows
from ptncn.learners.jacobians import layout
from ptncn.learners.linearisation import Group, Linearisation, MicroStep


@dataclass(kw_only=True)
class ImmediateState(RecurrentState):
    slopes: tuple[Tensor, ...] = ()
    """(B, R, G, H) per micro-step of the last step; () before the first that was learnt from."""
    carries: tuple[Tensor, ...] = ()
    """(B, R, R, H) per micro-step."""
    vectors: tuple[Tensor, ...] = ()
    """(B, m) per group of weights: what they multiplied."""


class Immediate(ForwardMode):
    """Leave out the past: ds_t/dθ ≈ ∂s_t/∂θ, so that ∇W = (δ ⊙ slope) ⊗ [x, h, 1].

    There is no trace. The state holds the last step's slopes and inputs, the gradient is a product of two thin
    matrices, and both cost no more than the cell itself. A deep RHN's gradient goes back through the micro-steps of
    the last step. It is TBPTT with a window of two: the step that is scored, and the one before.

    >>> from ptncn.learners import make
    >>> make("lstm-immediate", input_size=3, hidden_size=4).kind
    'lstm-immediate'
    """

    rule = "immediate"
    state_type = ImmediateState

    def carries(self, state: ImmediateState) -> bool:
        return bool(state.slopes)

    def contract(self, adjoint: Tensor, state: ImmediateState) -> list[Tensor]:
        recurrent, places = layout(self.cell)
        micros = map(MicroStep, state.slopes, state.carries, recurrent)
        groups = (Group(vector, *place) for vector, place in zip(state.vectors, places, strict=True))
        linear = Linearisation(tuple(micros), tuple(groups))
        of_s = adjoint.new_zeros(len(adjoint), self.cell.parts, adjoint.shape[1])
        of_s[:, 0] = adjoint
        return [of_a.T @ group.vector for of_a, group in zip(linear.pull(of_s), linear.groups, strict=True)]

    def carry(self, linear: Linearisation, state: ImmediateState, mask: Tensor | None) -> None:
        slopes = tuple(micro.slopes for micro in linear.micros)
        carries = tuple(micro.carry for micro in linear.micros)
        vectors = tuple(group.vector for group in linear.groups)
        if not state.slopes:  # a masked row has nothing yet
            state.slopes, state.carries, state.vectors = (
                tuple(rows(mask, part, 0.0) for part in parts) for parts in (slopes, carries, vectors)
            )
            return
        state.slopes = _keep(mask, slopes, state.slopes)
        state.carries = _keep(mask, carries, state.carries)
        state.vectors = _keep(mask, vectors, state.vectors)


def _keep(mask: Tensor | None, new: tuple[Tensor, ...], old: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    return tuple(rows(mask, after, before) for after, before in zip(new, old, strict=True))
