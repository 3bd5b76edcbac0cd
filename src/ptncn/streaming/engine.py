"""The protocol of engines, and the engine for any learner."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ptncn.checkpoint import check_like, restore_state, stored_fields
from ptncn.learner import Learner
from ptncn.streaming.calibration import Calibrator
from ptncn.streaming.columns import Columns, Vector
from ptncn.streaming.predictor import Guess, Predictor
from ptncn.streaming.results import Steps
from ptncn.streaming.scaling import Surprise
from ptncn.streaming.sources import StreamError


class DivergedError(Exception):
    """Learning has diverged: the prediction for row `row` of a block is not finite."""

    def __init__(self, row: int) -> None:
        super().__init__(row)
        self.row = row


class Engine(Protocol):
    """Runs independent streams in slots 0, 1, …; each stream has its own scale, state and calibration."""

    layers: int
    """Columns of `Steps.layer_errors`."""

    @property
    def learner(self) -> Learner:
        """The learner of the first slot, or the one that all slots share."""

    def resize(self, slots: int) -> None:
        """Set the number of slots."""

    def reset(self, slot: int) -> None:
        """Start a new stream in a slot."""

    def run(self, slots: NDArray[np.int64], values: Vector, calendar: Vector) -> Steps:
        """Observe n rows in order, each in its slot: (n, width) values, NaN if not observed, and
        (n, 1 + horizon, c) calendar inputs of each row and of the steps ahead."""

    def forecast(self, slot: int, features: Vector, calendar: Vector) -> tuple[Vector, Vector, Vector]:
        """(h, w) the next rows of a slot, with lower and upper bounds, given (h, f) known features, NaN for
        unknown ones, and (h, c) calendar inputs. Nothing changes."""

    def state(self, slots: Sequence[int]) -> dict[str, Any]:
        """The state of the streams in some slots: a tree of arrays, numbers, text, lists and dicts."""

    def restore(self, slots: Sequence[int], state: Mapping[str, Any]) -> None:
        """Continue these streams in the same number of slots."""

    def shared_state(self) -> dict[str, Any]:
        """The state that all slots share."""

    def restore_shared(self, state: Mapping[str, Any]) -> None: ...


@dataclasses.dataclass
class Cell:
    """One stream: a predictor with the state of its learner, and the usual size of its errors."""

    predictor: Predictor
    surprise: Surprise
    calibrator: Calibrator
    pending: Vector
    """The targets of the last row, which the learner sees together with the features of the next."""


class LearnerEngine:
    """Runs any learner on any number of streams.

    The features of a row are known before its targets. To make use of them, the learner sees the features of a row
    together with the targets of the previous row, and predicts what comes next: the targets of this row, and the
    features of the next one.

    Arguments:
        make: builds a learner for a given number of inputs.
        target: what the learner sees of each column; see `Predictor`.
        shared: whether all streams share one set of weights, and learn in turn.
    """

    def __init__(
        self,
        make: Callable[[int], Learner],
        columns: Columns,
        *,
        target: str,
        horizon: int = 0,
        alarm_rate: float = 0.01,
        learn: bool = True,
        layer_errors: bool = False,
        shared: bool = False,
    ) -> None:
        self.target, self.horizon, self.alarm_rate = target, horizon, alarm_rate
        self.learn, self.shared = learn, shared
        self._unscaled = columns.unscaled
        self._width, self._targets = columns.width, columns.target_width
        self._inputs = Predictor.input_size(target, self._unscaled)
        self._make = make
        self._cells: list[Cell | None] = []
        self.resize(1)
        self.reset(0)
        self.layers = self.cell(0).predictor.count_layers() if layer_errors else 0

    @property
    def learner(self) -> Learner:
        """The learner of the first stream, or the shared one."""
        return self.cell(0).predictor.learner if self._cells[0] is not None else self._common

    @functools.cached_property
    def _common(self) -> Learner:
        return self._make_learner()

    def _make_learner(self) -> Learner:
        learner = self._make(self._inputs)
        if learner.input_size != self._inputs:
            raise StreamError(
                f"the learner has {learner.input_size} inputs; the columns with target={self.target!r} "
                f"need {self._inputs}"
            )
        return learner

    def cell(self, slot: int) -> Cell:
        cell = self._cells[slot]
        assert cell is not None
        return cell

    def resize(self, slots: int) -> None:
        self._cells += [None] * (slots - len(self._cells))

    def reset(self, slot: int) -> None:
        learner = self._common if self.shared else self._make_learner()
        self._cells[slot] = Cell(
            Predictor(learner, self.target, self._unscaled),
            Surprise(self._targets),
            Calibrator(self.alarm_rate),
            np.full(self._targets, np.nan),
        )

    def run(self, slots: NDArray[np.int64], values: Vector, calendar: Vector) -> Steps:
        steps = Steps.empty(len(values), self._targets, self.horizon, bounds=False, layers=self.layers)
        for row, (slot, entries) in enumerate(zip(slots.tolist(), values, strict=True)):
            self._observe(self.cell(slot), entries, steps, row)
        return steps

    def _observe(self, cell: Cell, entries: Vector, steps: Steps, row: int) -> None:
        targets = entries[: self._targets]
        if self._width > self._targets:
            guess = self._with_features(cell, entries)
        else:
            guess = cell.predictor.observe(entries, learn=self.learn)
        if guess.scored:
            steps.predicted[row] = guess.prediction[: self._targets]
        if guess.scored and guess.step is not None:
            self._judge(cell, guess, steps, row, bool((targets == targets).any()))
        if self.horizon:
            features = np.full((self.horizon, self._width - self._targets), np.nan)
            steps.forecast[row] = self._ahead(cell, features)
        if self.layers and guess.step is not None:
            steps.layer_errors[row] = [0.5 * float(e.square().sum()) for e in guess.step.errors]

    def _judge(self, cell: Cell, guess: Guess, steps: Steps, row: int, observed: bool) -> None:
        """The surprise and the score of a row; NaN if nothing was predicted or observed."""
        error = guess.error[: self._targets]
        surprise = cell.surprise.update(error)
        if surprise == surprise:
            steps.surprise[row], steps.parts[row] = surprise, cell.surprise.parts
            if cell.surprise.settled:
                steps.error[row] = _mean_square(error)
                steps.copy_error[row] = _mean_square(guess.copied[: self._targets])
                steps.anomaly[row] = score = cell.calibrator.update(surprise)
                steps.alarm[row] = alarm = surprise > 0 and cell.calibrator.is_alarm(score)
                steps.severity[row] = score if alarm else 0.0
        elif observed and guess.step is not None and not np.isfinite(guess.step.prediction.numpy()).all():
            raise DivergedError(row)

    def _with_features(self, cell: Cell, entries: Vector) -> Guess:
        """Show the targets of the last row with the features of this one; returns the prediction of its targets."""
        shown = np.concatenate((cell.pending, entries[self._targets :]))
        seen = cell.predictor.observe(shown, learn=self.learn)
        cell.pending = entries[: self._targets]
        wanted = np.concatenate((cell.pending, np.full(self._width - self._targets, np.nan)))
        return cell.predictor.peek(wanted, seen)

    def forecast(self, slot: int, features: Vector, calendar: Vector) -> tuple[Vector, Vector, Vector]:
        ahead = self._ahead(self.cell(slot), features)
        return ahead, np.empty((0, self._targets)), np.empty((0, self._targets))

    def _ahead(self, cell: Cell, features: Vector) -> Vector:
        if self._width == self._targets:
            return np.array(cell.predictor.forecast(len(features)))
        rows = []
        with cell.predictor.branch() as predictor:
            pending = cell.pending
            for known in features:
                predictor.observe(np.concatenate((pending, known)), learn=False)
                rows.append(predictor.forecast(1)[0][: self._targets])
                pending = rows[-1]
        return np.array(rows)

    def state(self, slots: Sequence[int]) -> dict[str, Any]:
        return {"cells": [self._cell_state(self.cell(slot)) for slot in slots]}

    def restore(self, slots: Sequence[int], state: Mapping[str, Any]) -> None:
        for slot, each in zip(slots, state["cells"], strict=True):
            self.reset(slot)
            self._restore_cell(self.cell(slot), each)

    def _cell_state(self, cell: Cell) -> dict[str, Any]:
        state = cell.predictor.state
        return {
            "learner": None if self.shared else cell.predictor.learner.snapshot(),
            "state": stored_fields(state),
            "predictor": cell.predictor.tree(),
            "surprise": cell.surprise.tree(),
            "calibrator": cell.calibrator.tree(),
            "pending": cell.pending,
        }

    def _restore_cell(self, cell: Cell, state: Mapping[str, Any]) -> None:
        learner = cell.predictor.learner
        if state["learner"] is not None:
            check_like(state["learner"], learner.snapshot(), "learner")
            learner.restore(state["learner"])
        fresh = learner.begin(1)
        cell.predictor.load_tree(state["predictor"], restore_state(state["state"], fresh))
        cell.surprise.load_tree(state["surprise"])
        cell.calibrator.load_tree(state["calibrator"])
        cell.pending = state["pending"]

    def shared_state(self) -> dict[str, Any]:
        return {"learner": self._common.snapshot() if self.shared else None}

    def restore_shared(self, state: Mapping[str, Any]) -> None:
        if state["learner"] is not None:
            self._common.restore(state["learner"])


def _mean_square(values: Vector) -> float:
    """The mean of the values that are not NaN; NaN if there are none."""
    total = float(values.dot(values))
    if total == total:
        return total / len(values)
    seen = values[values == values]
    return float(seen.dot(seen)) / len(seen) if len(seen) else np.nan
