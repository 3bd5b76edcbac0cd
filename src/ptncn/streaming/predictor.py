"""A learner between two scalings: values in the units of the source go in, predictions in the same units come out."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from ptncn.learner import Learner, Step
from ptncn.streaming.columns import Vector
from ptncn.streaming.scaling import FAR, RobustScaler

TARGETS = ("level", "change")


class Guess(NamedTuple):
    """What was expected of an observation, and how far off it was."""

    prediction: Vector
    """(width,) in the units of the source."""
    error: Vector
    """(width,) prediction − observation in scaled units, NaN where nothing was observed."""
    copied: Vector
    """(width,) the same for the last observation as prediction."""
    scored: bool
    """Whether anything had been seen before."""
    step: Step


class Predictor:
    """Shows a learner one row after another, scaled by what was known before, and fills in what is missing.

    The learner sees no value more than ten scales off; errors are measured with the whole distance.

    Arguments:
        target: "level" shows the values themselves; "change" shows how they differ from those before, so that the
            last observation plus what is expected to change is the prediction. Categories are shown as they are.
        unscaled: (width,) True for the entries of categories.
    """

    def __init__(self, learner: Learner, target: str, unscaled: NDArray[np.bool_]) -> None:
        self.learner, self.target = learner, target
        self.state = learner.begin(1)
        self.scaler = RobustScaler(learner.input_size, unscaled=unscaled)
        self._changes = ~unscaled if target == "change" else np.zeros(learner.input_size, dtype=bool)
        self._all_change = bool(self._changes.all())
        self._known = False
        self._last = np.full(learner.input_size, np.nan)

    def observe(self, values: Vector, *, learn: bool) -> Guess:
        """Predict (width,) values, NaN where nothing was observed; then see them and, unless told otherwise, learn."""
        last, complete = self._last, not math.isnan(values.sum())
        base = self._base(last)
        given = values - base
        self.scaler.meet(given)
        scaled = self.scaler.transform(given)
        shown = np.minimum(np.maximum(scaled, -FAR), FAR)
        step = self._step(shown, learn) if complete and self._known else self._step_with_gaps(shown, learn)
        expected = step.prediction.numpy()[0]
        prediction = self.scaler.inverse(expected) + base
        copied = (last - values) / self.scaler.scale
        self.scaler.update_by(given, scaled, shown)
        self._last = values if complete else np.where(values == values, values, prediction)
        scored = self._known or bool(step.scored[0])
        self._known = scored
        return Guess(prediction, expected - scaled, copied, scored, step)

    def forecast(self, horizon: int) -> list[Vector]:
        """The next `horizon` rows as the learner imagines them: each is taken for what happened. Nothing changes."""
        state, last, rows = self.state.clone(), self._last, []
        with self._chance_kept(), torch.no_grad():
            for _ in range(horizon):
                expected = self.learner.predict(state)
                last = self.scaler.inverse(expected.numpy()[0]) + self._base(last)
                rows.append(last)
                self.learner.step(expected, state, learn=False)
        return rows

    def tree(self) -> dict[str, Any]:
        return {"scaler": self.scaler.tree(), "last": torch.from_numpy(self._last.copy()), "known": self._known}

    def load_tree(self, tree: Mapping[str, Any], state: Any) -> None:
        self.scaler.load_tree(tree["scaler"])
        self._last, self._known = tree["last"].numpy(), tree["known"]
        self.state = state

    def _base(self, last: Vector) -> Vector | float:
        """What a change is counted from."""
        if self._all_change:
            return last
        return np.where(self._changes, last, 0.0) if self.target == "change" else 0.0

    def _step(self, x: Vector, learn: bool) -> Step:
        return self.learner.step(torch.from_numpy(x[None]), self.state, learn=learn)

    def _step_with_gaps(self, x: Vector, learn: bool) -> Step:
        missing = np.isnan(x)
        if not missing.any():
            return self._step(x, learn)
        if missing.all() and not self._known:  # there is no expectation yet that could stand in
            nobody = torch.zeros(1, dtype=torch.bool)
            return self.learner.step(torch.from_numpy(x[None]), self.state, learn=learn, mask=nobody)
        expected = self.learner.predict(self.state).numpy()[0]
        return self._step(np.where(missing, expected, x), learn and not missing.all())

    @contextmanager
    def _chance_kept(self) -> Iterator[None]:
        """Put the learner's source of chance, if it has one, back to where it was."""
        generator = getattr(self.learner, "generator", None)
        before = None if generator is None else generator.get_state()
        try:
            yield
        finally:
            if generator is not None:
                generator.set_state(before)
