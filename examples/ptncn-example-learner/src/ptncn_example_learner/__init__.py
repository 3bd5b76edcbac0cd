"""Linear autoregression, learnt online by normalised least mean squares."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ptncn.distributions import DISTRIBUTIONS
from ptncn.learner import State, Step, check_batch_size, check_mask, check_observation
from ptncn.learners import Entry, Style


@dataclass(kw_only=True)
class LinearState(State):
    """The last observations of each row."""

    lags: Tensor
    """(B, lags, n) the newest first; zeros before the first."""


class LinearAR:
    """Predict x_t as a linear function of the last `hidden_size` observations.

    >>> learner = LinearAR(2, 3, output="gaussian")
    >>> state = learner.begin(batch_size=1)
    >>> learner.step(torch.ones(1, 2), state).prediction.shape
    torch.Size([1, 2])
    """

    registry_name = "linear-ar"

    def __init__(
        self,
        input_size: int,
        hidden_size: int = 4,
        *,
        output: str = "bernoulli",
        lr: float = 0.1,
        seed: int = 0,
        dtype: str = "float32",
    ) -> None:
        """
        Arguments:
            hidden_size: number of past observations to use.
            lr: step size, relative to one that would remove the error at once.
        """
        self.input_size, self.hidden_size, self.lr = input_size, hidden_size, lr
        self.output = DISTRIBUTIONS.find(output)
        self._options = {
            "input_size": input_size,
            "hidden_size": hidden_size,
            "output": output,
            "lr": lr,
            "seed": seed,
            "dtype": dtype,
        }
        draws = torch.randn(
            input_size, hidden_size * input_size + 1, generator=torch.Generator().manual_seed(seed), dtype=torch.float64
        )
        self.weight = (0.01 * draws).to(getattr(torch, dtype))
        """(n, lags·n + 1), the constant last."""

    def begin(self, batch_size: int) -> LinearState:
        check_batch_size(batch_size)
        lags = self.weight.new_zeros(batch_size, self.hidden_size, self.input_size)
        return LinearState(batch_size=batch_size, lags=lags)

    @torch.no_grad()
    def step(self, x: Tensor, state: LinearState, *, learn: bool = True, mask: Tensor | None = None) -> Step:
        self._check_state(state)
        mask = check_mask(mask, state.batch_size, self.weight.device)
        x = check_observation(x, state.batch_size, self.input_size, self.weight, mask)
        observed = torch.ones(state.batch_size, dtype=torch.bool) if mask is None else mask
        some, rows = state.scored(mask)
        scored = torch.full_like(observed, some) if rows is None else rows
        features = self._features(state)
        logits = features @ self.weight.T
        prediction = self.output.mean(logits)
        error = torch.where(observed[:, None], prediction - x, 0.0)
        if learn and some:
            size = features.square().sum(1, keepdim=True)
            taught = torch.where(scored[:, None], error / size, 0.0)
            self.weight = self.weight - self.lr / state.batch_size * taught.T @ features
        moved = torch.cat([x[:, None], state.lags[:, :-1]], dim=1)
        state.lags = torch.where(observed[:, None, None], moved, state.lags)
        state.advance(mask)
        return Step(prediction=prediction, logits=logits, errors=(error,), scored=scored)

    def end(self, state: LinearState) -> None:
        """Nothing is left to learn."""
        self._check_state(state)

    def predict(self, state: LinearState) -> Tensor:
        self._check_state(state)
        return self.output.mean(self._features(state) @ self.weight.T)

    def options(self) -> dict[str, Any]:
        return {**self._options, "lr": self.lr}

    def snapshot(self) -> dict[str, Any]:
        return {"weight": self.weight.clone()}

    def restore(self, tree: Mapping[str, Any]) -> None:
        if tree["weight"].shape != self.weight.shape:
            raise ValueError(
                f"snapshot: expected weights {tuple(self.weight.shape)}, got {tuple(tree['weight'].shape)}"
            )
        self.weight = tree["weight"].clone()

    def _features(self, state: LinearState) -> Tensor:
        """(B, lags·n + 1)"""
        return torch.cat([state.lags.flatten(1), state.lags.new_ones(state.batch_size, 1)], dim=1)

    def _check_state(self, state: LinearState) -> None:
        expected = (getattr(state, "batch_size", 0), self.hidden_size, self.input_size)
        if not isinstance(state, LinearState) or state.lags.shape != expected:
            raise ValueError(f"state: expected one from begin() of {self.registry_name!r}, got another learner's")


ENTRY = Entry(
    where="ptncn_example_learner:LinearAR",
    about="linear autoregression, LMS",
    learns="online",
    memory="B·n·lags",
    defaults={"video": {"lr": 0.05}, "text": {"lr": 0.1}, "other": {"lr": 0.1}},
    search=lambda trial: {"lr": trial.suggest_float("lr", 1e-3, 1.0, log=True)},
    label="linear AR",
    style=Style("#117733", "--"),
)
