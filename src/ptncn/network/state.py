"""The state of a P-TNCN, the result of a step, and running statistics of the network."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from ptncn.distributions import Distribution
from ptncn.learner import State, Step
from ptncn.network.config import Config
from ptncn.network.equations import prediction_discrepancy, state_discrepancy


@dataclass(kw_only=True)
class PTNCNState(State):
    """The state of B sequences; its size does not depend on their length."""

    sizes: tuple[int, ...]
    """Units of the observation and of each layer: n₀, n₁, …, n_L."""
    corrected: Tensor
    """(B, n₀+n₁+…+n_L) the last observation and the corrected states, [x, y¹, …, yᴸ]."""
    displacement: Tensor | None
    """(B, n₁+…+n_L) the last [e_z¹, …, e_zᴸ], if the rule for E needs it."""
    uncorrected: Tensor | None
    """(B, n₀+n₁+…+n_L) the last [x, z¹, …, zᴸ], if the rules for M, V and U need it."""

    held: dict[str, Tensor] = field(default_factory=dict)
    """Memories and their traces, (B, …), by the names of `ptncn.network.memory`; empty without a memory."""
    waiting: dict[str, Tensor] = field(default_factory=dict)
    """(B+1, horizon−1, F) features and gains of pending forecasts; the last row belongs to the prior."""

    def check(self) -> None:
        """Check the tensors against the sizes; both may come from a file."""
        rows, everything = self.batch_size, sum(self.sizes)
        if type(rows) is not int or type(self.steps) is not int:
            raise ValueError(f"state: expected whole numbers of rows and steps, got {rows!r} and {self.steps!r}")
        self._check_tensor("corrected", self.corrected, (rows, everything))
        if self.displacement is not None:
            self._check_tensor("displacement", self.displacement, (rows, everything - self.sizes[0]))
        if self.uncorrected is not None:
            self._check_tensor("uncorrected", self.uncorrected, (rows, everything))
        for what, parts, length in (("held", self.held, rows), ("waiting", self.waiting, rows + 1)):
            if type(parts) is not dict:
                raise ValueError(f"state.{what}: expected a dict of tensors, got a {type(parts).__name__}")
            for name, tensor in parts.items():
                shape = (length, *tensor.shape[1:]) if _is_dense(tensor) else (length,)
                dtype = None if what == "held" else getattr(tensor, "dtype", None)  # forecasts have their own precision
                self._check_tensor(f"{what}[{name!r}]", tensor, shape, dtype)
        if self.seen is not None:
            self._check_tensor("seen", self.seen, (rows,), torch.bool)

    def _check_tensor(self, name: str, tensor: Any, shape: tuple[int, ...], dtype: torch.dtype | None = None) -> None:
        if not _is_dense(tensor):
            got = "a tensor of another layout" if isinstance(tensor, Tensor) else f"a {type(tensor).__name__}"
            raise ValueError(f"state.{name}: expected a dense tensor of shape {shape}, got {got}")
        dtype = dtype or self.corrected.dtype
        if tensor.shape != shape or tensor.dtype is not dtype:
            got = f"{tuple(tensor.shape)} of {tensor.dtype}"
            raise ValueError(f"state.{name}: expected shape {shape} of {dtype}, got {got}")

    def is_contiguous(self) -> bool:
        e_z, z = self.displacement, self.uncorrected
        apart = (e_z is None or e_z.is_contiguous()) and (z is None or z.is_contiguous())
        held = not self.held or all(part.is_contiguous() for part in self.held.values())
        return apart and held and self.corrected.is_contiguous()

    def remember(self, x: Tensor, z: list[Tensor], y: list[Tensor], e_z: list[Tensor], mask: Tensor | None) -> None:
        """Store what the next step needs; masked rows stay unchanged."""
        _write(self.corrected, [x, *y], mask)
        if self.displacement is not None:
            _write(self.displacement, e_z, mask)
        if self.uncorrected is not None:
            _write(self.uncorrected, [x, *z], mask)


def _is_dense(value: Any) -> bool:
    return isinstance(value, Tensor) and value.layout is torch.strided and not value.is_nested


def _write(buffer: Tensor, parts: list[Tensor], mask: Tensor | None) -> None:
    """Put (B, n) parts side by side into (B, Σn), in the rows of the mask."""
    start = 0
    for part in parts:
        place = buffer[:, start : start + part.shape[1]]
        place.copy_(part if mask is None else torch.where(mask[:, None], part, place))
        start += part.shape[1]


@dataclass(frozen=True)
class Discrepancy:
    """The total discrepancy of the network and its parts (equation 24), each (B,)."""

    predictions: tuple[Tensor, ...]
    """L^p of each layer: its prediction error and the cost of its state."""
    states: tuple[Tensor, ...]
    """L^z of each layer: the correction of its state."""

    @property
    def total(self) -> Tensor:
        return sum(self.predictions[1:], self.predictions[0]) + sum(self.states[1:], self.states[0])


@dataclass(slots=True)
class PTNCNStep(Step):
    """The result of a step. `errors[ℓ]` is e^ℓ (B, n_ℓ), ℓ = 0 … L−1."""

    states: tuple[Tensor, ...]
    """z¹ … zᴸ, before the observation was seen."""
    corrected: tuple[Tensor, ...]
    """y¹ … yᴸ, after."""
    observation: Tensor
    config: Config
    output: Distribution

    @property
    def surprise(self) -> tuple[Tensor, ...]:
        """(B,) for each layer: ½‖e^ℓ‖²."""
        return tuple(0.5 * e.square().sum(-1) for e in self.errors)

    def discrepancy(self) -> Discrepancy:
        """The objective that this step descended; meaningless for unobserved rows."""
        if self.output.name == "categorical":
            fits = [self.output.nll(self.logits, self.observation)]
        else:
            fits = [0.5 * self.errors[0].square().sum(-1)]
        fits += [0.5 * e.square().sum(-1) for e in self.errors[1:]]
        own_errors = (*self.errors[1:], None)
        predictions = tuple(
            prediction_discrepancy(fit, z, e_own, self.config)
            for fit, z, e_own in zip(fits, self.states, own_errors, strict=True)
        )
        states = tuple(state_discrepancy(z, y) for z, y in zip(self.states, self.corrected, strict=True))
        return Discrepancy(predictions, states)


OPENING = 10_000
"""Observations after which the mean is fixed; the bias continues to learn by its rule."""
PRIOR = 1.0
"""Weight of a uniform prior, in observations."""


class UsualFeedback(nn.Module):
    """The moving mean square of E e over rows, units and learning steps, for each layer."""

    square: Tensor

    def __init__(self, layers: int, decay: float) -> None:
        super().__init__()
        self.decay = decay
        self.updates = 0
        self.register_buffer("square", torch.zeros(layers), persistent=False)

    def observe(self, back: list[Tensor], rows: Tensor | None, layers: slice = slice(None)) -> None:
        """Update with E e of a learning step, (B, n) for each of `layers`; only `rows` (B,) count, or all if None."""
        now = [(own if rows is None else own[rows]).square().mean() for own in back]
        self.square[layers].mul_(self.decay).add_(torch.stack(now), alpha=1 - self.decay)
        self.updates += 1

    @property
    def mean(self) -> Tensor:
        """(L,) the weighted mean over all learning steps so far; 1 before the first."""
        return self.square / self.weight(self.updates) if self.updates else torch.ones_like(self.square)

    def weight(self, updates: int) -> float:
        """The sum of the weights of this many steps."""
        return 1 - self.decay**updates

    def snapshot(self) -> dict[str, Any]:
        return {"square": self.square.clone(), "updates": self.updates}

    def restore(self, tree: Mapping[str, Any]) -> None:
        self.square.copy_(tree["square"])
        self.updates = tree["updates"]


class MeanObservation(nn.Module):
    """The mean of the first observations, and the change of the output bias that follows from it."""

    total: Tensor

    def __init__(self, input_size: int, output: Distribution) -> None:
        super().__init__()
        self.output = output
        self.count = 0
        self.register_buffer("total", torch.zeros(input_size), persistent=False)

    @property
    def known(self) -> bool:
        return self.count >= OPENING

    def observe(self, x: Tensor, mask: Tensor | None) -> Tensor:
        """Include the rows of `x` (B, n) in `mask` (B,), and return the change (n,) of the bias."""
        before = self._logits()
        x = x if mask is None else x[mask]
        self.total += x.sum(0)
        self.count += len(x)
        return self._logits() - before

    def _logits(self) -> Tensor:
        even = self.output.mean(torch.zeros_like(self.total))
        mean = (self.total + PRIOR * even) / (self.count + PRIOR)
        return self.output.to_logits(mean, 0.0)

    def snapshot(self) -> dict[str, Any]:
        return {"total": self.total.clone(), "count": self.count}

    def restore(self, tree: Mapping[str, Any]) -> None:
        self.total.copy_(tree["total"])
        self.count = tree["count"]
