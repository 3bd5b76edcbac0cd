"""What learners that unroll time share: they store steps, and an update runs through them again."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch
from torch import Tensor

from ptncn.learner import Step
from ptncn.learners.base import (
    RecurrentLearner,
    RecurrentState,
    keep_masked,
    scored_rows,
)
from ptncn.learners.cells import Hidden


@dataclass(kw_only=True)
class UnrolledState(RecurrentState):
    """A recurrent state and the steps that an update will run through again, oldest first."""

    before: list[Hidden] = field(default_factory=list)
    """The hidden state before the first of those steps; TBPTT keeps it for each."""
    xs: list[Tensor] = field(default_factory=list)
    """(B, n) what was observed."""
    masks: list[Tensor | None] = field(default_factory=list)
    """(B,) which rows were observed, None where all were."""
    scored_at: list[Tensor] = field(default_factory=list)
    """(B,) which rows were scored."""
    fresh: int = 0
    """How many of those steps, the latest, no update has learnt from yet."""
    closed: bool = False
    """Whether frozen steps have followed: what comes next does not join on to these."""

    def forget(self, keep: int = 0) -> None:
        """Drop all but the latest `keep` steps."""
        drop = max(0, len(self.xs) - keep)
        for steps in (self.before, self.xs, self.masks, self.scored_at):
            del steps[:drop]
        self.closed = False


class UnrollingLearner(RecurrentLearner):
    """Base of BPTT, TBPTT and SAB.

    Steps only store what they saw. An update runs through it again with gradients, with the fused kernel of
    `torch.nn` where masks allow it; the weights have not changed meanwhile, so this is the same forward pass.
    The loss is the mean over the steps on which any row was scored. Frozen steps store nothing; when learning
    goes on after them, what came before is learnt first, and no gradient flows across the gap.
    """

    state_type: ClassVar[type[RecurrentState]] = UnrolledState

    @torch.no_grad()
    def step(self, x: Tensor, state: Any, *, learn: bool = True, mask: Tensor | None = None) -> Step:
        """Predict, observe `x` (B, n), advance `state` and, if this is to be learnt from, store it."""
        x, mask = self.check_step(x, state, mask)
        observed = mask is None or bool(mask.any())  # a step with all rows masked is no step of a window
        if learn and observed:
            self.check_room(state)
        logits = self.logits(state)
        scored = scored_rows(state, mask, logits)
        if observed and learn:
            if state.closed:
                self.update(state)
                state.forget()
            self.store(x, mask, scored, state)
        elif observed and state.xs:
            state.closed = True
        if observed:
            self.observe(x, mask, state)
        state.advance(mask)
        return self.outcome(logits, x, mask, scored)

    def check_room(self, state: Any) -> None:
        """Refuse to store more than there is room for."""

    def store(self, x: Tensor, mask: Tensor | None, scored: Tensor, state: Any) -> None:
        """Keep what an update needs to run through this step again."""
        if not state.before:
            state.before.append(state.hidden)
        state.xs.append(x.clone())  # the caller may reuse its buffer
        state.masks.append(None if mask is None else mask.clone())
        state.scored_at.append(scored)
        state.fresh += 1

    def observe(self, x: Tensor, mask: Tensor | None, state: Any) -> None:
        """Advance the hidden state by one observation."""
        state.hidden = keep_masked(mask, self.cell(x, state.hidden), state.hidden)

    def end(self, state: Any) -> None:
        """The sequences ended: learn from them."""
        self.check_state(state)
        self.update(state)
        state.forget()

    def update(self, state: Any) -> None:
        """One step of the optimiser on the steps that were not learnt from yet, if any of them was scored."""
        with torch.enable_grad():
            loss = self.loss(state)
            if loss is not None:
                loss.backward()  # type: ignore[no-untyped-call]
                self.apply_gradient()
        state.fresh = 0

    def loss(self, state: Any) -> Tensor | None:
        """Mean over the fresh steps that were scored, a graph through all stored ones; None if none was."""
        if state.fresh == 0:
            return None
        scored = torch.stack(state.scored_at[-state.fresh :])  # (t, B)
        steps = scored.any(dim=1).sum()
        if steps == 0:
            return None
        logits = self.readout(self.visible(state)[-state.fresh :])  # (t, B, n)
        surprise = self.output.nll(logits, torch.stack(state.xs[-state.fresh :]))  # (t, B)
        loss: Tensor = torch.where(scored, surprise, 0.0).sum() / (steps * state.batch_size)
        return loss

    def visible(self, state: Any) -> Tensor:
        """(T, B, ·) what the readout saw when it predicted each of the T stored steps."""
        hidden = state.before[0]
        states = [hidden[0]]
        xs, masks = state.xs[:-1], state.masks[:-1]  # the last observation predicts nothing that is stored
        if xs and _only_padding(masks):
            later, _ = self.cell.unroll(torch.stack(xs), hidden)
            return torch.cat([states[0][None], later])
        for x, mask in zip(xs, masks, strict=True):
            hidden = keep_masked(mask, self.cell(x, hidden), hidden)
            states.append(hidden[0])
        return torch.stack(states)


def _only_padding(masks: list[Tensor | None]) -> bool:
    """Whether no row is observed again once it was masked: then its later states are never read.

    The fused kernel, which knows no masks, may run on over such rows: unscored, they leave no gradient.
    """
    given = next((mask for mask in masks if mask is not None), None)
    if given is None:
        return True
    observed = torch.stack([torch.ones_like(given) if mask is None else mask for mask in masks])  # (T, B)
    return not bool((observed[1:] & ~observed[:-1]).any())
