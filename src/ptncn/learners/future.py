"""LSTM future predictors (Srivastava, Mansimov and Salakhutdinov, 2015): an encoder and one or two decoders.

The encoder reads `context` frames. A decoder with separate weights starts from the state of the encoder and generates
the next `horizon` frames; in the composite model a second one reconstructs the context, last frame first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ptncn.learner import Step
from ptncn.learners.base import RecurrentState, check_size, keep_masked
from ptncn.learners.bptt import UnrolledState, UnrollingLearner
from ptncn.learners.cells import Cell, Hidden, make_cell, make_readout


@dataclass(kw_only=True)
class FutureState(UnrolledState):
    last: Tensor
    """(B, n) the last observation of each row; zeros before the first."""


class FuturePredictor(UnrollingLearner):
    """Encodes some frames, then predicts the next ones together; one update per window, and one in `end`.

    The loss is the mean over the predicted frames; with `conditional`, the decoder sees the true frame before each of
    them. A window has `context` + `horizon` frames; one that ends early is split in half.

    The one-step prediction that the protocol requires after each observation is the first frame of the decoder, started
    from the current state of the encoder. It is trained only at the end of the context, so one-step errors do not do
    the model justice; `dream` returns the frames that it is trained to predict.

    >>> from ptncn.learners import make
    >>> learner = make("lstm-fp", input_size=4, hidden_size=8)
    >>> state = learner.begin(batch_size=2)
    >>> for frame in torch.rand(10, 2, 4):
    ...     out = learner.step(frame, state)
    >>> learner.dream(state, steps=10).shape
    torch.Size([10, 2, 4])
    """

    rule = "fp"
    state_type = FutureState
    reads_state = False

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        *,
        context: int = 10,
        horizon: int = 10,
        conditional: bool = True,
        **common: Any,
    ) -> None:
        """
        Arguments:
            context: frames that the encoder reads before the decoder starts.
            horizon: frames that the decoder predicts.
            conditional: show the decoder the frame before the one it predicts; else it sees zeros.
            common: see `RecurrentLearner`.
        """
        check_size("context", context)
        check_size("horizon", horizon)
        self.context, self.horizon, self.conditional = context, horizon, conditional
        super().__init__(input_size, hidden_size, **common)

    def build(self) -> None:
        self.decoder = self.make_decoder()

    def make_decoder(self) -> Cell:
        """A cell like the encoder's, with separate weights."""
        name = self.registry_name.partition("-")[0]
        dtype = self.readout.weight.dtype
        return make_cell(name, self.input_size, self.hidden_size, self.generator, dtype=dtype)

    def options(self) -> dict[str, Any]:
        own = {"context": self.context, "horizon": self.horizon, "conditional": self.conditional}
        return {**super().options(), **own}

    def begin_state(self, batch_size: int) -> RecurrentState:
        last = self.readout.weight.new_zeros(batch_size, self.input_size)
        return FutureState(
            batch_size=batch_size, learner=self.registry_name, hidden=self.cell.begin(batch_size), last=last
        )

    def step(self, x: Tensor, state: Any, *, learn: bool = True, mask: Tensor | None = None) -> Step:
        """Predict, observe `x` (B, n), advance `state` and, with `learn`, learn when a window is full."""
        out = super().step(x, state, learn=learn, mask=mask)
        if learn and len(state.xs) == self.context + self.horizon:
            self.update(state)
            state.forget()
        return out

    def logits(self, state: Any) -> Tensor:
        logits: Tensor = self.readout(self.decoder(self._decoder_input(state.last), state.hidden)[0])
        return logits

    @torch.no_grad()
    def dream(self, state: Any, steps: int) -> Tensor:
        """(steps, B, n) the frames that the decoder generates from here, fed back as if they had been observed."""
        self.check_state(state)
        check_size("steps", steps)
        hidden, frame, frames = state.hidden, state.last, []
        for _ in range(steps):
            hidden = self.decoder(self._decoder_input(frame), hidden)
            frame = self.output.mean(self.readout(hidden[0]))
            frames.append(frame)
        return torch.stack(frames)

    def observe(self, x: Tensor, mask: Tensor | None, state: Any) -> None:
        super().observe(x, mask, state)
        (state.last,) = keep_masked(mask, (x.clone(),), (state.last,))

    def loss(self, state: Any) -> Tensor | None:
        split = min(self.context, max(1, len(state.xs) // 2))
        scored = torch.stack(state.scored_at[split:]) if len(state.xs) > split else None  # (t, B)
        if scored is None or not scored.any():
            return None
        hidden, last_frame = state.before[0], torch.zeros_like(state.last)
        for x, mask in zip(state.xs[:split], state.masks[:split], strict=True):
            hidden = keep_masked(mask, self.cell(x, hidden), hidden)
            (last_frame,) = keep_masked(mask, (x,), (last_frame,))
        logits = self.readout(self._decode(self.decoder, hidden, last_frame, state.xs[split:], state.masks[split:]))
        nll = self.output.nll(logits, torch.stack(state.xs[split:]))
        loss: Tensor = torch.where(scored, nll, 0.0).sum() / (scored.any(1).sum() * state.batch_size)
        return loss + self.reconstruction_loss(hidden, state, split)

    def reconstruction_loss(self, hidden: Hidden, state: Any, split: int) -> Tensor | float:
        """The loss of reconstructing the context; zero except in the composite model."""
        return 0.0

    def _decoder_input(self, frame: Tensor) -> Tensor:
        return frame if self.conditional else torch.zeros_like(frame)

    def _decode(
        self, decoder: Cell, hidden: Hidden, last_frame: Tensor, xs: list[Tensor], masks: list[Tensor | None]
    ) -> Tensor:
        """(t, B, H) the decoder's visible states, each before the frame that it predicts is fed in."""
        visible = []
        for x, mask in zip(xs, masks, strict=True):
            hidden = keep_masked(mask, decoder(self._decoder_input(last_frame), hidden), hidden)
            (last_frame,) = keep_masked(mask, (x,), (last_frame,))
            visible.append(hidden[0])
        return torch.stack(visible)


class CompositePredictor(FuturePredictor):
    """The future predictor with a second decoder that reconstructs the context, last frame first.

    The two losses are added, so that the encoder retains the past as well as what predicts the future.
    """

    rule = "cfp"

    def build(self) -> None:
        super().build()
        self.reconstructor = self.make_decoder()
        dtype = self.readout.weight.dtype
        self.reconstruction = make_readout(self.hidden_size, self.input_size, self.generator, dtype)

    def reconstruction_loss(self, hidden: Hidden, state: Any, split: int) -> Tensor | float:
        xs, masks = state.xs[split - 1 :: -1], state.masks[split - 1 :: -1]
        visible = self._decode(self.reconstructor, hidden, torch.zeros_like(state.last), xs, masks)
        nll = self.output.nll(self.reconstruction(visible), torch.stack(xs))  # (t, B)
        ones = torch.ones_like(nll[0], dtype=torch.bool)
        observed = torch.stack([ones if mask is None else mask for mask in masks])
        loss: Tensor = torch.where(observed, nll, 0.0).sum() / (len(xs) * state.batch_size)
        return loss
