"""Back-propagation through time over whole sequences or a window, and the base of learners that unroll time."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch
from torch import Tensor

from ptncn.learner import Step
from ptncn.learners.base import (
    RecurrentLearner,
    RecurrentState,
    check_size,
    keep_masked,
    scored_rows,
)
from ptncn.learners.cells import Hidden


@dataclass(kw_only=True)
class UnrolledState(RecurrentState):
    """A recurrent state, and the stored steps that the next update goes back through, oldest first."""

    before: list[Hidden] = field(default_factory=list)
    """The hidden state before the first of those steps; TBPTT keeps it for each."""
    xs: list[Tensor] = field(default_factory=list)
    """(B, n) observations."""
    masks: list[Tensor | None] = field(default_factory=list)
    """(B,) rows that were observed; None for all."""
    scored_at: list[Tensor] = field(default_factory=list)
    """(B,) rows that were scored."""
    fresh: int = 0
    """Number of the latest steps that no update has used yet."""
    closed: bool = False
    """Whether frozen steps have followed, so that later steps do not continue these."""

    def forget(self, keep: int = 0) -> None:
        """Drop all but the latest `keep` steps."""
        drop = max(0, len(self.xs) - keep)
        for steps in (self.before, self.xs, self.masks, self.scored_at):
            del steps[:drop]
        self.closed = False


class UnrollingLearner(RecurrentLearner):
    """Base of BPTT, TBPTT and SAB.

    A step only stores its observation. An update repeats the forward pass with gradients, with the fused kernel of
    `torch.nn` where masks allow it; the weights have not changed since. The loss is the mean over the steps on which
    any row was scored. Frozen steps store nothing; when learning resumes after them, the steps before them are learnt
    first, and no gradient flows across the gap.
    """

    state_type: ClassVar[type[RecurrentState]] = UnrolledState

    @torch.no_grad()
    def step(self, x: Tensor, state: Any, *, learn: bool = True, mask: Tensor | None = None) -> Step:
        """Predict, observe `x` (B, n), advance `state` and, with `learn`, store the step."""
        x, mask = self.check_step(x, state, mask)
        observed = mask is None or bool(mask.any())  # a step with all rows masked is not part of a window
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
        """Raise ValueError if no further step may be stored."""

    def store(self, x: Tensor, mask: Tensor | None, scored: Tensor, state: Any) -> None:
        """Store what an update needs of this step."""
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
        """The sequences ended: learn from what is stored."""
        self.check_state(state)
        self.update(state)
        state.forget()

    def update(self, state: Any) -> None:
        """Take one step of the optimiser on the steps not used yet, if any of them was scored."""
        with torch.enable_grad():
            loss = self.loss(state)
            if loss is not None:
                loss.backward()  # type: ignore[no-untyped-call]
                self.apply_gradient()
        state.fresh = 0

    def loss(self, state: Any) -> Tensor | None:
        """The mean over the scored fresh steps, with a graph through all stored ones; None if none was scored."""
        if state.fresh == 0:
            return None
        scored = torch.stack(state.scored_at[-state.fresh :])  # (t, B)
        steps = scored.any(dim=1).sum()
        if steps == 0:
            return None
        logits = self.readout(self.visible(state)[-state.fresh :])  # (t, B, n)
        nll = self.output.nll(logits, torch.stack(state.xs[-state.fresh :]))  # (t, B)
        loss: Tensor = torch.where(scored, nll, 0.0).sum() / (steps * state.batch_size)
        return loss

    def visible(self, state: Any) -> Tensor:
        """(T, B, ·) the inputs of the readout when it predicted each of the T stored steps."""
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
    """Whether no row is observed again after it was masked, so that its later states are never read.

    The fused kernel has no masks. It may process such rows, because unscored rows have no gradient.
    """
    example = next((mask for mask in masks if mask is not None), None)
    if example is None:
        return True
    observed = torch.stack([torch.ones_like(example) if mask is None else mask for mask in masks])  # (T, B)
    return not bool((observed[1:] & ~observed[:-1]).any())


class BPTT(UnrollingLearner):
    """Back-propagation through the whole sequence (Werbos, 1990); one update, in `end`.

    >>> import torch
    >>> learner = BPTT(3, 8, cell="gru")
    >>> state = learner.begin(batch_size=1)
    >>> for t in range(5):
    ...     out = learner.step(torch.eye(3)[[t % 3]], state)
    >>> learner.end(state)
    """

    rule = "bptt"

    def __init__(self, input_size: int, hidden_size: int, *, max_length: int = 10_000, **common: Any) -> None:
        """
        Arguments:
            max_length: steps that may be stored before a missing `end` is an error.
            common: see `RecurrentLearner`.
        """
        check_size("max_length", max_length)
        self.max_length = max_length
        super().__init__(input_size, hidden_size, **common)

    def options(self) -> dict[str, Any]:
        return {**super().options(), "max_length": self.max_length}

    def check_room(self, state: Any) -> None:
        """Raise ValueError for a stream without an end."""
        if len(state.xs) >= self.max_length and not state.closed:
            windowed = self.registry_name.replace("bptt", "tbptt")
            raise ValueError(
                f"{self.registry_name!r} has stored {len(state.xs)} steps, its max_length, without an end(): an "
                f"unrolled learner on an endless stream needs a window. Use {windowed!r}, call end(), or "
                f"raise max_length"
            )


class TBPTT(UnrollingLearner):
    """Every `stride` steps, back-propagation through the last `window` steps (Williams and Peng, 1990).

    Each step is learnt from once: the loss is over the steps since the last update, and its gradient flows back
    through up to `window` steps, to the hidden state stored then. An update does not recompute the current state.
    `end` learns from the remainder. Memory is bounded, so a stream need not end.

    >>> import torch
    >>> learner = TBPTT(3, 8, cell="gru", window=4, stride=2)
    >>> state = learner.begin(batch_size=1)
    >>> for t in range(100):
    ...     out = learner.step(torch.eye(3)[[t % 3]], state)
    >>> len(state.xs)
    2
    """

    rule = "tbptt"

    def __init__(self, input_size: int, hidden_size: int, *, window: int = 25, stride: int = 25, **common: Any) -> None:
        """
        Arguments:
            window: number of steps that gradients flow back.
            stride: steps between updates.
            common: see `RecurrentLearner`.
        """
        check_size("window", window)
        check_size("stride", stride)
        if window < stride:
            raise ValueError(
                f"window: expected at least the stride, {stride}, got {window}; steps would be dropped before an "
                f"update learns from them"
            )
        self.window, self.stride = window, stride
        super().__init__(input_size, hidden_size, **common)

    def options(self) -> dict[str, Any]:
        return {**super().options(), "window": self.window, "stride": self.stride}

    def step(self, x: Tensor, state: Any, *, learn: bool = True, mask: Tensor | None = None) -> Step:
        """Predict, observe `x` (B, n), advance `state` and, each `stride` steps, learn."""
        out = super().step(x, state, learn=learn, mask=mask)
        if state.fresh == self.stride and learn:
            self.update(state)
            state.forget(keep=self.window - self.stride)
        return out

    def store(self, x: Tensor, mask: Tensor | None, scored: Tensor, state: Any) -> None:
        """Store the step and the hidden state before it, which may become the start of a window."""
        super().store(x, mask, scored, state)
        if len(state.before) < len(state.xs):
            state.before.append(state.hidden)
