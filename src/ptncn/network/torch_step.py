"""A step of a P-TNCN in PyTorch, for networks that the kernel does not support."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ptncn.distributions import Distribution
from ptncn.network import equations, memory
from ptncn.network.backend import Outputs
from ptncn.network.config import Config
from ptncn.network.layers import Layer
from ptncn.network.readout import SecondOrder
from ptncn.network.state import PTNCNState, UsualFeedback
from ptncn.updates import Factors, LocalLearning


@dataclass(slots=True)
class TorchStep:
    """Called like a `Kernel`."""

    layers: list[Layer]
    learning: LocalLearning
    feedback: UsualFeedback | None
    readout: SecondOrder | None
    output: Distribution
    config: Config

    def __call__(
        self, x: Tensor, state: PTNCNState, *, learn: bool, mask: Tensor | None, teaches: Tensor | None
    ) -> Outputs:
        """Advance `state` by a step; with `learn`, update the weights by the rows `teaches`, all if that is None.

        `mask` marks the observed rows.
        """
        layers = self.layers
        guess = equations.predict(state.corrected, state.held, layers, self.output)
        observed = None if mask is None else mask[:, None].to(x.dtype)
        e, y, back = equations.correct(x, guess, layers, self.output, self.config, observed)
        e_z = []
        if learn or state.displacement is not None:
            if learn and self.feedback is not None:
                self.feedback.observe(back, teaches)
            usual = None if self.feedback is None else self.feedback.mean
            e_z = equations.displacements(guess, y, back, usual, layers, self.config)
        if learn:
            self._learn(x, guess, e, e_z, state, teaches, mask)
        elif self.readout is not None:
            self.readout.skip_step(state.waiting, mask)
        state.remember(x, guess.z, y, e_z, mask)
        for u, layer in zip([x, *y[:-1]], layers, strict=True):
            if layer.memory is not None:
                memory.advance(state.held, u, layer.memory, mask)
        return guess.z_o[0], guess.logits, e, guess.z, y

    def _learn(
        self,
        x: Tensor,
        guess: equations.Guess,
        e: list[Tensor],
        e_z: list[Tensor],
        state: PTNCNState,
        rows: Tensor | None,
        mask: Tensor | None,
    ) -> None:
        weight = None if rows is None else rows[:, None].to(x.dtype)
        if self.config.reduction == "mean":
            weight = (x.new_ones(len(x), 1) if weight is None else weight) / state.batch_size
        before = state.corrected if state.uncorrected is None else state.uncorrected
        updates = equations.learn(
            x, guess, e, e_z, before, state.held, state.displacement, self.layers, self.config, weight
        )
        if self.readout is not None:
            self._solve(x, guess.z[0], rows, mask, state, updates)
        synapses = {name: part for layer in self.layers for name, part in layer.synapses().items()}
        self.learning.apply_updates(synapses, updates, state.batch_size)

    def _solve(
        self,
        x: Tensor,
        z: Tensor,
        rows: Tensor | None,
        mask: Tensor | None,
        state: PTNCNState,
        updates: dict[str, Factors],
    ) -> None:
        """Replace the updates of the first layer's W and c by least squares; with the transpose rule, E follows W."""
        assert self.readout is not None
        first = self.layers[0]
        parts = [first.W.write(), *([] if first.c is None else [first.c.weight])]
        change = self.readout.learn(z, x, torch.cat(parts), rows, mask, state.waiting).to(x.dtype)
        for part, delta in zip(parts, torch.split(change, [len(part) for part in parts]), strict=True):
            part.add_(delta)
        for name in ("W1", "c1"):
            updates.pop(name, None)
        if self.config.error_rule == "transpose":
            first.E.write().add_(change[: len(parts[0])].T)
            del updates["E1"]
