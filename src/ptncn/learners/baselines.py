"""Two trivial baselines: repeat the last observation, and predict the running mean."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from ptncn.distributions import DISTRIBUTIONS
from ptncn.learner import State, Step, check_batch_size, check_mask, check_observation
from ptncn.learners.base import (
    DTYPES,
    check_begun_by,
    check_choice,
    check_part,
    check_positive,
    check_size,
    scored_rows,
)


@dataclass(kw_only=True)
class TrivialState(State):
    """The state of a batch of sequences."""

    learner: str = field(metadata={"stored_as": "kind"})
    last: Tensor
    """(B, n) the last observation of each row; zeros before the first."""


class TrivialLearner:
    """Base of both: subclasses return the expected observation, which is converted to logits.

    Probabilities are clipped to `floor`, since a copied pixel of exactly 0 or 1 would have an infinite logit.
    `hidden_size` and `seed` are accepted, so that any learner can be replaced by these, and are ignored.
    """

    registry_name: str

    def __init__(
        self,
        input_size: int,
        hidden_size: int | None = None,
        *,
        output: str = "bernoulli",
        seed: int = 0,
        floor: float = 1e-3,
        dtype: str = "float32",
    ) -> None:
        check_size("input_size", input_size)
        check_positive("floor", floor)
        if floor >= 0.5:
            raise ValueError(f"floor: expected a probability below 0.5, got {floor}")
        check_choice("dtype", dtype, DTYPES)
        self.input_size, self.floor = input_size, floor
        self.output = DISTRIBUTIONS.find(output)
        self._like = torch.empty(0, dtype=DTYPES[dtype])
        self._options = {
            "input_size": input_size,
            "hidden_size": hidden_size,
            "output": output,
            "seed": seed,
            "floor": floor,
            "dtype": dtype,
        }

    def expected(self, state: TrivialState) -> Tensor:
        """(B, n) the expected next observation."""
        raise NotImplementedError

    def observe(self, x: Tensor, mask: Tensor | None) -> None:
        """Learn from the observed rows of x (B, n)."""

    def begin(self, batch_size: int) -> TrivialState:
        check_batch_size(batch_size)
        last = self._like.new_zeros(batch_size, self.input_size)
        return TrivialState(batch_size=batch_size, learner=self.registry_name, last=last)

    def step(self, x: Tensor, state: TrivialState, *, learn: bool = True, mask: Tensor | None = None) -> Step:
        """Predict, observe `x` (B, n), advance `state` in place and, with `learn`, learn."""
        self._check_state(state)
        mask = check_mask(mask, state.batch_size, self._like.device)
        x = check_observation(x, state.batch_size, self.input_size, self._like, mask)
        logits = self._logits(state)
        prediction = self.output.mean(logits)
        observed = torch.ones(state.batch_size, dtype=torch.bool) if mask is None else mask
        error = torch.where(observed[:, None], prediction - x, 0.0)
        scored = scored_rows(state, mask, x)
        if learn:
            self.observe(x, mask)
        state.last = torch.where(observed[:, None], x, state.last)
        state.advance(mask)
        return Step(prediction=prediction, logits=logits, errors=(error,), scored=scored)

    def end(self, state: TrivialState) -> None:
        self._check_state(state)

    def predict(self, state: TrivialState) -> Tensor:
        self._check_state(state)
        return self.output.mean(self._logits(state))

    def options(self) -> dict[str, Any]:
        return dict(self._options)

    def snapshot(self) -> dict[str, Any]:
        return {}

    def restore(self, tree: Mapping[str, Any]) -> None:
        """Nothing is learnt, so there is nothing to restore."""

    def _logits(self, state: TrivialState) -> Tensor:
        return self.output.to_logits(self.expected(state), self.floor)

    def _check_state(self, state: TrivialState) -> None:
        check_begun_by(self.registry_name, TrivialState, state)
        check_part(state.last, (state.batch_size, self.input_size), self._like.dtype)


class Copy(TrivialLearner):
    """Predicts the last observation of each row; learns nothing.

    >>> learner = Copy(2, output="gaussian")
    >>> state = learner.begin(1)
    >>> _ = learner.step(torch.tensor([[1.0, 2.0]]), state)
    >>> learner.predict(state)
    tensor([[1., 2.]])
    """

    registry_name = "copy"

    def expected(self, state: TrivialState) -> Tensor:
        return state.last


class Mean(TrivialLearner):
    """Predicts the mean of all observations so far, over all rows and sequences.

    The mean is learnt: `learn=False` freezes it, and a new sequence starts from that of the earlier ones.

    >>> learner = Mean(1, output="gaussian")
    >>> state = learner.begin(2)
    >>> _ = learner.step(torch.tensor([[1.0], [3.0]]), state)
    >>> learner.predict(state)
    tensor([[2.],
            [2.]])
    """

    registry_name = "mean"

    def __init__(self, input_size: int, hidden_size: int | None = None, **common: Any) -> None:
        super().__init__(input_size, hidden_size, **common)
        self.count = 0
        self.mean = self._like.new_zeros(input_size)

    def expected(self, state: TrivialState) -> Tensor:
        return self.mean.expand(state.batch_size, -1)

    def observe(self, x: Tensor, mask: Tensor | None) -> None:
        rows = x if mask is None else x[mask]
        if len(rows):
            self.count += len(rows)
            self.mean = self.mean + (rows - self.mean).sum(0) / self.count

    def snapshot(self) -> dict[str, Any]:
        return {"count": self.count, "mean": self.mean.clone()}

    def restore(self, tree: Mapping[str, Any]) -> None:
        """Restore the snapshot of a learner with the same options."""
        if tree["mean"].shape != self.mean.shape:
            raise ValueError(
                f"snapshot: expected a mean of shape {tuple(self.mean.shape)}, got {tuple(tree['mean'].shape)}"
            )
        self.count, self.mean = tree["count"], tree["mean"].clone()
