"""Sparse attentive backtracking (Ke et al., 2018)."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from ptncn.learner import Step
from ptncn.learners.base import check_choice, check_size, keep_masked
from ptncn.learners.bptt import UnrolledState, UnrollingLearner
from ptncn.learners.cells import Hidden, draw_uniform

EPSILON = 1e-7
"""Keeps the weights finite if all scores are equal."""


@dataclass(kw_only=True)
class SABState(UnrolledState):
    """An unrolled state with a memory of past hidden states. The last part of `hidden` is the summary (B, H)."""

    slots: list[Tensor] = field(default_factory=list)
    """(B, H) each: the microstates, a ring buffer for each row, with as many slots as the fullest row needs."""
    counts: Tensor
    """(B,) observations of each row so far, which determine the filled slots."""
    slots_before: list[Tensor] = field(default_factory=list)
    """The slots before the first stored step."""
    counts_before: Tensor | None = None
    """The counts before the first stored step."""

    def forget(self, keep: int = 0) -> None:
        super().forget(keep)
        self.slots_before, self.counts_before = [], None


class SparseAttention(nn.Module):
    """Attention over the `k_top` best microstates.

    A microstate m scores v·tanh(K m + Q ĥ + b). The score of the (k_top + 1)-th best is subtracted from those
    of the better ones, and the differences are normalised to weights. If no more than k_top are stored, all are
    attended, with a threshold 1 below the lowest score. The selection has no gradient and the microstate at the
    threshold is detached, so no gradient reaches a microstate that is not attended.
    """

    def __init__(self, hidden_size: int, attention_size: int, k_top: int, dtype: torch.dtype) -> None:
        super().__init__()
        self.k_top = k_top
        self.key = nn.Parameter(torch.empty(attention_size, hidden_size, dtype=dtype))
        self.query = nn.Parameter(torch.empty(attention_size, hidden_size, dtype=dtype))
        self.bias = nn.Parameter(torch.empty(attention_size, dtype=dtype))
        self.value = nn.Parameter(torch.empty(attention_size, dtype=dtype))

    def score(self, h: Tensor, memory: Tensor) -> Tensor:
        """h (B, H), memory (B, U, H) → (B, U)."""
        query = h @ self.query.T + self.bias  # (B, A)
        return torch.tanh(memory @ self.key.T + query[:, None]) @ self.value

    def forward(self, h: Tensor, slots: list[Tensor], filled: Tensor) -> Tensor:
        """The summary (B, H) of the first `filled` (B,) slots; zero for a row without any."""
        memory = torch.stack(slots, dim=1)  # (B, U, H)
        present = torch.arange(len(slots), device=h.device) < filled[:, None]  # (B, U)
        with torch.no_grad():
            ranked = self.score(h, memory).masked_fill(~present, -math.inf)
            best = ranked.topk(min(self.k_top + 1, len(slots)), dim=1).indices  # (B, K)
        chosen = memory.gather(1, best[..., None].expand(-1, -1, h.shape[1]))  # (B, K, H)
        present = present.gather(1, best)
        attended, runner_up = chosen[:, : self.k_top], chosen[:, self.k_top :].detach()
        scores = self.score(h, torch.cat([attended, runner_up], dim=1))
        threshold = scores.masked_fill(~present, math.inf).amin(dim=1, keepdim=True)
        all_attended = ~present[:, self.k_top :].any(dim=1, keepdim=True)
        threshold = torch.where(all_attended, threshold - 1.0, threshold)  # (B, 1)
        above = torch.relu(scores - threshold)[:, : self.k_top]
        above = torch.where(present[:, : self.k_top], above, 0.0)
        weights = above / (above.sum(dim=1, keepdim=True) + EPSILON)  # (B, k_top)
        return (weights[..., None] * attended).sum(dim=1)


class SAB(UnrollingLearner):
    """Gradients flow through `k_trunc` local steps and through the attended microstates.

    At each step, with ĥ from the cell and s the summary of attention over the microstates, the hidden state is
    h = ĥ + s and the readout sees [h, s]. Every `k_attn` observations a row stores a microstate; the latest
    `memory` are kept. The chain from step to step is cut every `k_trunc` observations of a row, as in the
    authors' code; the skip connections of attention are not.

    Updates happen in `end`, and on a stream every `memory` · `k_attn` steps, when all microstates are from stored
    steps. Earlier microstates are attended to as constants.

    The authors store h, which is ĥ plus a mean of earlier microstates and grows without bound on a stream. Here ĥ is
    stored by default, which was also better on short sequences.
    """

    rule = "sab"
    state_type = SABState

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        *,
        k_top: int = 10,
        k_trunc: int = 5,
        k_attn: int = 2,
        memory: int = 100,
        microstate: str = "cell",
        attention: bool = True,
        attention_size: int = 64,
        **common: Any,
    ) -> None:
        """
        Arguments:
            k_top: microstates attended at each step.
            k_trunc: steps between two cuts of the local chain.
            k_attn: observations between two microstates.
            memory: microstates to keep; the oldest are dropped.
            microstate: "cell" stores ĥ, "sum" stores h as the authors do; see above.
            attention: False leaves only the local chain.
            attention_size: hidden units that score a microstate.
            common: see `RecurrentLearner`; the cell is "lstm" or "rnn".
        """
        sizes = {"k_top": k_top, "k_trunc": k_trunc, "k_attn": k_attn, "memory": memory}
        for name, size in {**sizes, "attention_size": attention_size}.items():
            check_size(name, size)
        check_choice("microstate", microstate, ["cell", "sum"])
        check_choice("cell for sab", common.get("cell", "lstm"), ["lstm", "rnn"])
        self.k_top, self.k_trunc, self.k_attn, self.memory = k_top, k_trunc, k_attn, memory
        self.microstate, self.attends, self.attention_size = microstate, attention, attention_size
        self.reads_state = not attention
        super().__init__(input_size, hidden_size, **common)

    def readout_size(self) -> int:
        return 2 * self.hidden_size if self.attends else self.hidden_size

    def build(self) -> None:
        if self.attends:
            dtype = self.readout.weight.dtype
            self.attention = SparseAttention(self.hidden_size, self.attention_size, self.k_top, dtype)
            draw_uniform(self.attention, 1 / math.sqrt(self.hidden_size), self.generator)

    def options(self) -> dict[str, Any]:
        return {
            **super().options(),
            "k_top": self.k_top,
            "k_trunc": self.k_trunc,
            "k_attn": self.k_attn,
            "memory": self.memory,
            "microstate": self.microstate,
            "attention": self.attends,
            "attention_size": self.attention_size,
        }

    def begin_state(self, batch_size: int) -> SABState:
        hidden = self.cell.begin(batch_size)
        if self.attends:
            hidden = (*hidden, torch.zeros_like(hidden[0]))
        counts = torch.zeros(batch_size, dtype=torch.int64, device=hidden[0].device)
        return SABState(batch_size=batch_size, learner=self.registry_name, hidden=hidden, counts=counts)

    def step(self, x: Tensor, state: Any, *, learn: bool = True, mask: Tensor | None = None) -> Step:
        """Predict, observe `x` (B, n), advance `state` and, on a stream, learn when the memory is full."""
        out = super().step(x, state, learn=learn, mask=mask)
        if learn and len(state.xs) == self.memory * self.k_attn:
            self.update(state)
            state.forget()
        return out

    def logits(self, state: Any) -> Tensor:
        logits: Tensor = self.readout(self._readout_input(state.hidden))
        return logits

    def store(self, x: Tensor, mask: Tensor | None, scored: Tensor, state: Any) -> None:
        if not state.xs:
            state.slots_before, state.counts_before = list(state.slots), state.counts
        super().store(x, mask, scored, state)

    def observe(self, x: Tensor, mask: Tensor | None, state: Any) -> None:
        state.hidden, state.slots, state.counts = self._advance(x, mask, state.hidden, state.slots, state.counts)

    def visible(self, state: Any) -> Tensor:
        hidden, slots, counts = state.before[0], state.slots_before, state.counts_before
        inputs = [self._readout_input(hidden)]
        for x, mask in zip(state.xs[:-1], state.masks[:-1], strict=True):
            hidden, slots, counts = self._advance(x, mask, hidden, slots, counts)
            inputs.append(self._readout_input(hidden))
        return torch.stack(inputs)

    def _readout_input(self, hidden: Hidden) -> Tensor:
        """The input of the readout: h, and with attention the summary."""
        return torch.cat([hidden[0], hidden[-1]], dim=-1) if self.attends else hidden[0]

    def _advance(
        self, x: Tensor, mask: Tensor | None, hidden: Hidden, slots: list[Tensor], counts: Tensor
    ) -> tuple[Hidden, list[Tensor], Tensor]:
        """One differentiable step of hidden state and memory."""
        cut = (counts % self.k_trunc == 0)[:, None]
        local = tuple(torch.where(cut, part.detach(), part) for part in hidden[: self.cell.parts])
        after: Hidden = self.cell(x, local)
        observed = torch.ones_like(counts, dtype=torch.bool) if mask is None else mask
        counts_after = counts + observed
        if self.attends:
            from_cell, *rest = after
            filled = counts // self.k_attn  # more than `memory` means all
            summary = self.attention(from_cell, slots, filled) if slots else torch.zeros_like(from_cell)
            after = (from_cell + summary, *rest, summary)
            microstate = from_cell if self.microstate == "cell" else after[0]
            slots = self._store_in_memory(microstate, observed & (counts_after % self.k_attn == 0), slots, counts_after)
        return keep_masked(mask, after, hidden), slots, counts_after

    def _store_in_memory(self, microstate: Tensor, rows: Tensor, slots: list[Tensor], counts: Tensor) -> list[Tensor]:
        """The slots after the given rows (B,) stored their microstate (B, H), in place of the oldest if full."""
        places = (counts // self.k_attn - 1) % self.memory  # (B,)
        slots = list(slots)
        for place in sorted(set(places[rows].tolist())):
            here = (rows & (places == place))[:, None]
            if place == len(slots):
                slots.append(torch.zeros_like(microstate))
            slots[place] = torch.where(here, microstate, slots[place])
        return slots
