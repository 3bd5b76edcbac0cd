"""The engine protocol of a `Stream`: many independent streams in numbered slots, stepped by blocks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ptncn.learner import Learner
from ptncn.streaming.columns import Vector


@dataclass(slots=True)
class Steps:
    """An engine's results for n rows, in order. Values are in the units of the source, NaN for unknown.

    w counts the entries of the targets, h the steps of the forecast.
    """

    predicted: Vector
    """(n, w) made before the row was seen."""
    forecast: Vector
    """(n, h, w) the next h rows, made after the row was seen."""
    lower: Vector
    """(n, h, w) bounds of the forecast at the level asked for; (n, 0, w) for an engine that has none."""
    upper: Vector
    surprise: Vector
    """(n,) ½ Σ e²/v over the targets; NaN where nothing was observed or expected."""
    parts: Vector
    """(n, w) the part of each entry in the surprise."""
    anomaly: Vector
    """(n,) from 0 to 1, NaN among the first rows."""
    alarm: NDArray[np.bool_]
    severity: Vector
    """(n,) of the event that an alarm belongs to; 0 without one."""
    error: Vector
    """(n,) the mean square error over the targets, in scaled units; NaN where it does not count."""
    copy_error: Vector
    """(n,) the same for the last observation as prediction."""
    layer_errors: Vector
    """(n, layers) ½‖e‖² of each layer; (n, 0) unless asked for."""

    @classmethod
    def empty(cls, n: int, width: int, horizon: int, *, bounds: bool, layers: int = 0) -> Steps:
        steps = np.full((n, horizon, width), np.nan)
        around = np.full((n, horizon if bounds else 0, width), np.nan)
        nothing = np.full(n, np.nan)
        return cls(
            predicted=np.full((n, width), np.nan),
            forecast=steps,
            lower=around,
            upper=around.copy(),
            surprise=nothing,
            parts=np.full((n, width), np.nan),
            anomaly=nothing.copy(),
            alarm=np.zeros(n, dtype=bool),
            severity=np.zeros(n),
            error=nothing.copy(),
            copy_error=nothing.copy(),
            layer_errors=np.full((n, layers), np.nan),
        )

    @classmethod
    def joined(cls, parts: Sequence[Steps]) -> Steps:
        if len(parts) == 1:
            return parts[0]
        return cls(**{f.name: np.concatenate([getattr(part, f.name) for part in parts]) for f in fields(cls)})

    def take(self, rows: NDArray[np.bool_]) -> Steps:
        """Some of the rows."""
        return Steps(**{f.name: getattr(self, f.name)[rows] for f in fields(self)})


class Engine(Protocol):
    """Independent streams in slots 0, 1, …; each has its own scale, state and calibration."""

    layers: int
    """Columns of `Steps.layer_errors`."""

    @property
    def learner(self) -> Learner:
        """The learner of the first slot, or of all."""

    def resize(self, slots: int) -> None:
        """Make room for this many streams."""

    def reset(self, slot: int) -> None:
        """A new stream in a slot."""

    def run(self, slots: NDArray[np.int64], values: Vector, calendar: Vector) -> Steps:
        """Observe n rows in their order, each in its slot: (n, width) values, NaN where nothing was observed, and
        (n, 1 + horizon, c) what the calendar says of each row and of those ahead of it."""

    def forecast(self, slot: int, features: Vector, calendar: Vector) -> tuple[Vector, Vector, Vector]:
        """(h, w) the next rows of a slot, with their lower and upper bounds, from (h, f) known features, NaN for
        unknown ones, and (h, c) calendar inputs. Nothing changes."""

    def state(self, slots: Sequence[int]) -> dict[str, Any]:
        """Everything that makes the streams of some slots: a tree of arrays, numbers, text, lists and dicts."""

    def restore(self, slots: Sequence[int], state: Mapping[str, Any]) -> None:
        """Continue these streams in as many slots."""

    def shared_state(self) -> dict[str, Any]:
        """What the slots have in common."""

    def restore_shared(self, state: Mapping[str, Any]) -> None: ...


Array = NDArray[np.float64]


class StateRows:
    """Saves and restores (streams, width) `state`, or one row of it."""

    state: Array

    def tree(self, row: int | None = None) -> dict[str, Array]:
        """Everything that the streams, or one of them, have learnt."""
        return {"state": (self.state if row is None else self.state[row : row + 1]).copy()}

    def load_tree(self, tree: Mapping[str, Array], row: int | None = None) -> None:
        state = np.asarray(tree["state"], dtype=np.float64)
        expected = (len(self.state) if row is None else 1, self.state.shape[1])
        if state.shape != expected:
            raise ValueError(f"state: expected {expected}, got {state.shape}")
        self.state[slice(None) if row is None else slice(row, row + 1)] = state
