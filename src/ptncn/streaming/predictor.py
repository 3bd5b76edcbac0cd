"""A learner with scaling: values and predictions are in the units of the source."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ptncn.learner import Learner, Step
from ptncn.streaming.columns import Vector
from ptncn.streaming.scaling import FAR, RobustScaler, are_ordinary

TARGETS = ("level", "change", "both")


class Prediction(NamedTuple):
    """The prediction of an observation, and its error."""

    prediction: Vector
    """(width,) the prediction in the units of the source; NaN if there was none."""
    error: Vector
    """(width,) prediction − observation in scaled units; NaN if nothing was observed or the scale was unknown."""
    copied: Vector
    """(width,) the same for a prediction that copies the last observation."""
    scored: bool
    """Whether there were earlier observations."""
    step: Step | None
    """The learner's step; None if there was nothing to show to the learner."""


class Predictor:
    """Shows rows to a learner, with values scaled by earlier rows and missing ones replaced by predictions.

    Values are clipped at six scales for the learner; errors use the unclipped values.

    Arguments:
        target: "level" shows the values; "change" shows their differences from the last row, so the prediction is the
            last observation plus the predicted change; "both" shows the changes, which give the prediction, followed by
            the levels. Categories are shown unchanged.
        unscaled: (width,) True for the entries of categories.
    """

    def __init__(self, learner: Learner, target: str, unscaled: NDArray[np.bool_]) -> None:
        self.learner, self.target = learner, target
        self.state = learner.begin(1)
        width = len(unscaled)
        levels = np.flatnonzero(~unscaled) if target == "both" else np.arange(0)
        self.scaler = RobustScaler(learner.input_size, unscaled=np.append(unscaled, np.zeros(len(levels), dtype=bool)))
        self._width, self._levels = width, levels
        self._changes = ~unscaled if target != "level" else np.zeros(width, dtype=bool)
        self._all_change = bool(self._changes.all())
        self._known = False
        self._last = np.full(width, np.nan)
        self._no_prediction = np.full(learner.input_size, np.nan)
        self._dtype = learner.predict(self.state).numpy().dtype

    @staticmethod
    def input_size(target: str, unscaled: NDArray[np.bool_]) -> int:
        """The number of inputs that a learner needs."""
        return len(unscaled) + (int((~unscaled).sum()) if target == "both" else 0)

    def observe(self, values: Vector, *, learn: bool) -> Prediction:
        """Predict (width,) values, NaN if not observed, then observe them and, by default, learn."""
        last, width, scaler = self._last, self._width, self.scaler
        base = last if self._all_change else self._base(last)
        inputs = self._to_inputs(values, base)
        new = scaler.init_location(inputs)
        scaled = scaler.transform(inputs)
        ordinary = are_ordinary(scaled)
        step = self._step(scaled, learn) if ordinary else self._step_with_gaps(np.clip(scaled, -FAR, FAR), learn)
        expected = self._no_prediction if step is None else step.prediction.numpy()[0]
        prediction, error = scaler.inverse(expected)[:width] + base, (expected - scaled)[:width]
        if new is not None:
            new = new[:width]
            prediction = np.where(new, np.where(self._changes, expected[:width] + base, np.nan), prediction)
            error = np.where(new, np.nan, error)
        copied = (last - values) / scaler.scale[:width]
        scaler.update_scaled(inputs, scaled, ordinary)
        self._last = values if ordinary else np.where(np.isnan(values), prediction, values)
        self._known = self._known or (step is not None and bool(step.scored[0]))
        return Prediction(prediction, error, copied, self._known, step)

    def peek(self, values: Vector, seen: Prediction) -> Prediction:
        """Predict (width,) values after the row of `seen`, without showing them to the learner."""
        width, scaler = self._width, self.scaler
        base = self._base(self._last)
        expected = self.learner.predict(self.state).numpy()[0]
        scaled = scaler.transform(self._to_inputs(values, base))
        known = scaler.is_known[:width]
        error = np.where(known, (expected - scaled)[:width], np.nan)
        prediction = np.where(known, scaler.inverse(expected)[:width] + base, np.nan)
        copied = (self._last - values) / scaler.scale[:width]
        return Prediction(prediction, error, copied, self._known, seen.step)

    def count_layers(self) -> int:
        """The number of layers that report errors, found with a trial step."""
        with preserve_rng_state(self.learner):
            blank = torch.zeros(1, self.learner.input_size)
            return len(self.learner.step(blank, self.learner.begin(1), learn=False).errors)

    def forecast(self, horizon: int) -> list[Vector]:
        """Predict the next `horizon` rows, each fed back as an observation; changes nothing."""
        state, last, rows = self.state.clone(), self._last, []
        with preserve_rng_state(self.learner), torch.no_grad():
            for _ in range(horizon):
                base = self._base(last)
                expected = self.learner.predict(state).numpy()[0]
                last = self.scaler.inverse(expected)[: self._width] + base
                rows.append(last)
                shown = np.clip(self.scaler.transform(self._to_inputs(last, base)), -FAR, FAR)
                shown = np.where(np.isnan(shown), expected, shown)
                self.learner.step(self._tensor(shown), state, learn=False)
        return rows

    def tree(self) -> dict[str, Any]:
        return {"scaler": self.scaler.tree(), "last": torch.from_numpy(self._last.copy()), "known": self._known}

    def load_tree(self, tree: Mapping[str, Any], state: Any) -> None:
        self.scaler.load_tree(tree["scaler"])
        self._last, self._known = tree["last"].numpy(), tree["known"]
        self.state = state

    def _base(self, last: Vector) -> Vector | float:
        """The reference of changes: the last observation."""
        if self._all_change:
            return last
        return np.where(self._changes, last, 0.0) if self.target != "level" else 0.0

    def _to_inputs(self, values: Vector, base: Vector | float) -> Vector:
        changes: Vector = values - base
        if self.target != "both":
            return changes
        return np.concatenate((changes, values if self._all_change else values[self._levels]))

    def _step(self, x: Vector, learn: bool) -> Step:
        return self.learner.step(self._tensor(x), self.state, learn=learn)

    def _tensor(self, x: Vector) -> Tensor:
        """(1, n) a row in the learner's units."""
        return torch.from_numpy(x.astype(self._dtype)[None])

    def _step_with_gaps(self, x: Vector, learn: bool) -> Step | None:
        missing = np.isnan(x)
        if not missing.any():
            return self._step(x, learn)
        if missing.all() and not self.state.steps:
            return None  # in the first rows there is no prediction yet that could replace a missing value
        expected = self.learner.predict(self.state).numpy()[0]
        return self._step(np.where(missing, expected, x), learn and not missing.all())

    @contextmanager
    def branch(self) -> Iterator[Predictor]:
        """A predictor that continues from here. It does not change this one or its learner until it learns."""
        twin = copy.copy(self)
        twin.state = self.state.clone()
        twin.scaler = copy.deepcopy(self.scaler)
        with preserve_rng_state(self.learner):
            yield twin


@contextmanager
def preserve_rng_state(learner: Learner) -> Iterator[None]:
    """Restore the learner's random generator, if it has one."""
    generator = getattr(learner, "generator", None)
    before = None if generator is None else generator.get_state()
    try:
        yield
    finally:
        if generator is not None:
            generator.set_state(before)
