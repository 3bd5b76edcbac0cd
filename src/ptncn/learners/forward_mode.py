"""Base of RTRL and its approximations, which carry the influence of the weights on the state forward in time.

The loss of a step depends on the recurrent weights θ through the state s_{t−1} alone, so its gradient is

    dL_t/dθ = ∂L_t/∂h_{t−1} · ds_{t−1}/dθ,      ds_t/dθ = ∂s_t/∂s_{t−1} · ds_{t−1}/dθ + ∂s_t/∂θ

and is known as soon as x_t is observed. The learners differ in what they keep of ds/dθ: all of it, an unbiased
estimate, or a part.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ptncn.learner import Step
from ptncn.learners.base import RecurrentLearner, RecurrentState, keep_masked, scored_rows
from ptncn.learners.linearisation import Linearisation, MicroStep, WeightGroup, layout, linearise, unpack

WORKSPACE = 2 * 2**20
"""Bytes of a trace or an influence that are advanced at once: about the size of a cache, which avoids a second copy of
the whole."""
EPSILON = 1e-7
"""Keeps the ratio of two norms finite and positive, as in Tallec and Ollivier (2017)."""


class ForwardMode(RecurrentLearner):
    """Updates at every step, from the influence that the state carries; stores no past steps.

    The update comes before the state advances, so x_t is processed with the new weights. A sequence that starts
    frozen (`learn=False`) carries no influence, and costs no more than the cell, until its first learning step; from
    then on its influence is advanced in frozen steps too.
    """

    @torch.no_grad()
    def step(self, x: Tensor, state: Any, *, learn: bool = True, mask: Tensor | None = None) -> Step:
        x, mask = self.check_step(x, state, mask)
        out = self.outcome(self.logits(state), x, mask, scored_rows(state, mask, x))
        if learn and out.scored.any():
            gradient = self._gradient(out, state)
            for name, parameter in self.named_parameters():
                if parameter.requires_grad:
                    parameter.grad = gradient[name].clone()  # the two biases of a gate share theirs
            self.apply_gradient()
        if learn or self.carries(state):
            self.observe(x, state, mask)
        else:
            state.hidden = keep_masked(mask, self.cell(x, state.hidden), state.hidden)
        state.advance(mask)
        return out

    def observe(self, x: Tensor, state: Any, mask: Tensor | None) -> None:
        """Advance the state and its influence by one observation."""
        hidden, linear = linearise(self.cell, x, state.hidden)
        self.carry(linear, state, mask)
        state.hidden = keep_masked(mask, hidden, state.hidden)

    @torch.no_grad()
    def gradient(self, x: Tensor, state: Any, mask: Tensor | None = None) -> dict[str, Tensor]:
        """The gradient that `step(x, state, mask=mask)` would learn from, by parameter name; changes nothing."""
        x, mask = self.check_step(x, state, mask)
        return self._gradient(self.outcome(self.logits(state), x, mask, scored_rows(state, mask, x)), state)

    def carries(self, state: Any) -> bool:
        """Whether the state has an influence yet; without one it is zero."""
        raise NotImplementedError

    def contract(self, adjoint: Tensor, state: Any) -> list[Tensor]:
        """(Q, m) per group of weights: adjoint (B, H) of h · the influence, summed over rows."""
        raise NotImplementedError

    def carry(self, linear: Linearisation, state: Any, mask: Tensor | None) -> None:
        """Advance the influence of the observed rows by one step; masked rows keep theirs."""
        raise NotImplementedError

    def _gradient(self, out: Step, state: Any) -> dict[str, Tensor]:
        # prediction − observation is the gradient of the negative log-likelihood by the logits
        error = torch.where(out.scored[:, None], out.errors[0], 0.0) / state.batch_size  # (B, n)
        gradient = {"readout.weight": error.T @ state.hidden[0], "readout.bias": error.sum(0)}
        if self.carries(state):
            cell_gradient = self.recurrent_gradient(self.feedback(error), state)
        else:
            cell_gradient = {name: torch.zeros_like(weight) for name, weight in self.cell.named_parameters()}
        return gradient | {f"cell.{name}": g for name, g in cell_gradient.items()}

    def feedback(self, error: Tensor) -> Tensor:
        """(B, H) the gradient of the loss by the visible state, from the error (B, n) of the prediction."""
        return error @ self.readout.weight

    def recurrent_gradient(self, adjoint: Tensor, state: Any) -> dict[str, Tensor]:
        """The gradient by the names of the cell's parameters; adjoint (B, H) is that of the visible state."""
        return unpack(self.cell, self.contract(adjoint, state))

    def signs(self, *shape: int) -> Tensor:
        """Independent random signs from the learner's generator."""
        draws = torch.randint(0, 2, shape, generator=self.generator)
        return (2 * draws - 1).to(self.readout.weight)


def balance(numerator: Tensor, denominator: Tensor) -> Tensor:
    """√(numerator / denominator), kept positive and finite; any such factor is unbiased."""
    return torch.sqrt(numerator / (denominator + EPSILON)) + EPSILON


def rows(mask: Tensor | None, new: Tensor, old: Tensor | float) -> Tensor:
    """`new` (B, …) where a row was observed, `old` where it was masked."""
    if mask is None:
        return new
    return torch.where(mask.view(-1, *[1] * (new.ndim - 1)), new, old)


def row_norms(tensor: Tensor) -> Tensor:
    """(B,) the norm of all numbers of each row (B, …)."""
    norms: Tensor = torch.linalg.vector_norm(tensor.flatten(1), dim=1)
    return norms


@dataclass(kw_only=True)
class ImmediateState(RecurrentState):
    slopes: tuple[Tensor, ...] = ()
    """(B, R, G, H) per micro-step of the last step; () before the first learning step."""
    carries: tuple[Tensor, ...] = ()
    """(B, R, R, H) per micro-step."""
    vectors: tuple[Tensor, ...] = ()
    """(B, m) per group of weights: the vector that they multiplied."""


class Immediate(ForwardMode):
    """Ignores the past: ds_t/dθ ≈ ∂s_t/∂θ, so that ∇W = (δ ⊙ slope) ⊗ [x, h, 1].

    There is no trace: the state holds the slopes and inputs of the last step, the gradient is a product of two thin
    matrices, and both cost no more than the cell. A deep RHN's gradient goes back through the micro-steps of
    the last step. It is TBPTT with a window of two: the step that is scored, and the one before.

    >>> from ptncn.learners import make
    >>> make("lstm-immediate", input_size=3, hidden_size=4).registry_name
    'lstm-immediate'
    """

    rule = "immediate"
    state_type = ImmediateState

    def carries(self, state: ImmediateState) -> bool:
        return bool(state.slopes)

    def contract(self, adjoint: Tensor, state: ImmediateState) -> list[Tensor]:
        recurrent, places = layout(self.cell)
        micros = map(MicroStep, state.slopes, state.carries, recurrent)
        groups = (WeightGroup(vector, *place) for vector, place in zip(state.vectors, places, strict=True))
        linear = Linearisation(tuple(micros), tuple(groups))
        grad_s = adjoint.new_zeros(len(adjoint), self.cell.parts, adjoint.shape[1])
        grad_s[:, 0] = adjoint
        return [grad_a.T @ group.vector for grad_a, group in zip(linear.pull(grad_s), linear.groups, strict=True)]

    def carry(self, linear: Linearisation, state: ImmediateState, mask: Tensor | None) -> None:
        slopes = tuple(micro.slopes for micro in linear.micros)
        carries = tuple(micro.carry for micro in linear.micros)
        vectors = tuple(group.vector for group in linear.groups)
        if not state.slopes:  # masked rows start at zero
            state.slopes, state.carries, state.vectors = (
                tuple(rows(mask, part, 0.0) for part in parts) for parts in (slopes, carries, vectors)
            )
            return
        state.slopes = _keep(mask, slopes, state.slopes)
        state.carries = _keep(mask, carries, state.carries)
        state.vectors = _keep(mask, vectors, state.vectors)


def _keep(mask: Tensor | None, new: tuple[Tensor, ...], old: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    return tuple(rows(mask, after, before) for after, before in zip(new, old, strict=True))
