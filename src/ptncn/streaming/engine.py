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
from ptncn.streaming.predictor import Prediction, Predictor
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
class OneStream:
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
        self._streams: list[OneStream | None] = []
        self.resize(1)
        self.reset(0)
        self.layers = self.stream(0).predictor.count_layers() if layer_errors else 0

    @property
    def learner(self) -> Learner:
        """The learner of the first stream, or the shared one."""
        return self.stream(0).predictor.learner if self._streams[0] is not None else self._common

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

    def stream(self, slot: int) -> OneStream:
        stream = self._streams[slot]
        assert stream is not None
        return stream

    def resize(self, slots: int) -> None:
        self._streams += [None] * (slots - len(self._streams))

    def reset(self, slot: int) -> None:
        learner = self._common if self.shared else self._make_learner()
        self._streams[slot] = OneStream(
            Predictor(learner, self.target, self._unscaled),
            Surprise(self._targets),
            Calibrator(self.alarm_rate),
            np.full(self._targets, np.nan),
        )

    def run(self, slots: NDArray[np.int64], values: Vector, calendar: Vector) -> Steps:
        steps = Steps.empty(len(values), self._targets, self.horizon, bounds=False, layers=self.layers)
        for row, (slot, entries) in enumerate(zip(slots.tolist(), values, strict=True)):
            self._observe(self.stream(slot), entries, steps, row)
        return steps

    def _observe(self, stream: OneStream, entries: Vector, steps: Steps, row: int) -> None:
        targets = entries[: self._targets]
        if self._width > self._targets:
            prediction = self._with_features(stream, entries)
        else:
            prediction = stream.predictor.observe(entries, learn=self.learn)
        if prediction.scored:
            steps.predicted[row] = prediction.prediction[: self._targets]
        if prediction.scored and prediction.step is not None:
            self._judge(stream, prediction, steps, row, bool((targets == targets).any()))
        if self.horizon:
            features = np.full((self.horizon, self._width - self._targets), np.nan)
            steps.forecast[row] = self._ahead(stream, features)
        if self.layers and prediction.step is not None:
            steps.layer_errors[row] = [0.5 * float(e.square().sum()) for e in prediction.step.errors]

    def _judge(self, stream: OneStream, prediction: Prediction, steps: Steps, row: int, observed: bool) -> None:
        """The surprise and the score of a row; NaN if nothing was predicted or observed."""
        error = prediction.error[: self._targets]
        surprise = stream.surprise.update(error)
        if surprise == surprise:
            steps.surprise[row], steps.parts[row] = surprise, stream.surprise.parts
            if stream.surprise.settled:
                steps.error[row] = _mean_square(error)
                steps.copy_error[row] = _mean_square(prediction.copied[: self._targets])
                steps.anomaly[row] = score = stream.calibrator.update(surprise)
                steps.alarm[row] = alarm = surprise > 0 and stream.calibrator.is_alarm(score)
                steps.severity[row] = score if alarm else 0.0
        elif observed and prediction.step is not None and not np.isfinite(prediction.step.prediction.numpy()).all():
            raise DivergedError(row)

    def _with_features(self, stream: OneStream, entries: Vector) -> Prediction:
        """Show the targets of the last row with the features of this one; returns the prediction of its targets."""
        shown = np.concatenate((stream.pending, entries[self._targets :]))
        seen = stream.predictor.observe(shown, learn=self.learn)
        stream.pending = entries[: self._targets]
        wanted = np.concatenate((stream.pending, np.full(self._width - self._targets, np.nan)))
        return stream.predictor.peek(wanted, seen)

    def forecast(self, slot: int, features: Vector, calendar: Vector) -> tuple[Vector, Vector, Vector]:
        ahead = self._ahead(self.stream(slot), features)
        return ahead, np.empty((0, self._targets)), np.empty((0, self._targets))

    def _ahead(self, stream: OneStream, features: Vector) -> Vector:
        if self._width == self._targets:
            return np.array(stream.predictor.forecast(len(features)))
        rows = []
        with stream.predictor.branch() as predictor:
            pending = stream.pending
            for known in features:
                predictor.observe(np.concatenate((pending, known)), learn=False)
                rows.append(predictor.forecast(1)[0][: self._targets])
                pending = rows[-1]
        return np.array(rows)

    def state(self, slots: Sequence[int]) -> dict[str, Any]:
        return {"cells": [self._stream_state(self.stream(slot)) for slot in slots]}

    def restore(self, slots: Sequence[int], state: Mapping[str, Any]) -> None:
        for slot, each in zip(slots, state["cells"], strict=True):
            self.reset(slot)
            self._restore_stream(self.stream(slot), each)

    def _stream_state(self, stream: OneStream) -> dict[str, Any]:
        state = stream.predictor.state
        return {
            "learner": None if self.shared else stream.predictor.learner.snapshot(),
            "state": stored_fields(state),
            "predictor": stream.predictor.tree(),
            "surprise": stream.surprise.tree(),
            "calibrator": stream.calibrator.tree(),
            "pending": stream.pending,
        }

    def _restore_stream(self, stream: OneStream, state: Mapping[str, Any]) -> None:
        learner = stream.predictor.learner
        if state["learner"] is not None:
            check_like(state["learner"], learner.snapshot(), "learner")
            learner.restore(state["learner"])
        fresh = learner.begin(1)
        stream.predictor.load_tree(state["predictor"], restore_state(state["state"], fresh))
        stream.surprise.load_tree(state["surprise"])
        stream.calibrator.load_tree(state["calibrator"])
        stream.pending = state["pending"]

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
