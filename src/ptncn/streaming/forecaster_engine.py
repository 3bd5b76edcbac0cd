"""The default engine: a network that never stops learning, and a forecaster that uses the network's states."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptncn.learner import Learner
from ptncn.streaming.anomaly import Anomaly, AnomalySetting
from ptncn.streaming.bank import NetworkBank
from ptncn.streaming.columns import Columns, Vector
from ptncn.streaming.covariates import Covariates
from ptncn.streaming.engine import DivergedError
from ptncn.streaming.forecaster import Forecaster
from ptncn.streaming.forecaster.layout import completed, default_setting, views
from ptncn.streaming.gauge import Gauge
from ptncn.streaming.results import Steps
from ptncn.streaming.storage import grow
from ptncn.streaming.times import CALENDAR

HISTORY = 4096
KEYED_HISTORY = 512
"""Number of values kept for each stream if there are many streams; seasons are at most half as long."""

Slots = NDArray[np.int64]


class ForecasterEngine:
    """Streams in slots, stepped as batches.

    Each row is shown to a network. A `Forecaster`, with a separate readout, scale, seasons, bounds and anomaly scores
    for each slot, predicts from the network's states and the last values.

    Arguments:
        make: builds the network for a given number of inputs.
        season: length of the season in rows; None detects it.
        shared: whether all slots share one network.
    """

    layers = 0

    def __init__(
        self,
        make: Callable[[int], Learner],
        columns: Columns,
        *,
        horizon: int = 0,
        level: float = 0.9,
        season: int | None = None,
        alarm_rate: float = 0.01,
        alarm_per: str = "event",
        learn: bool = True,
        shared: bool = False,
        keyed: bool = False,
    ) -> None:
        self.horizon, self.alarm_rate = horizon, alarm_rate
        self._width = columns.target_width
        self._calendar = CALENDAR if columns.timestamp is not None else 0
        self._gauge = Gauge(self._width)
        self._bank = NetworkBank(make, 2 * self._width, learn=learn, shared=shared)
        self._setting = default_setting(
            self._width,
            max(1, horizon),
            self._bank.states,
            self._calendar,
            level=level,
            **({"history": KEYED_HISTORY, "units": 0} if keyed else {"history": HISTORY}),
        )
        self._seasons = () if season is None else (season,)
        self._forecaster = Forecaster(self._setting, 1, seasons=self._seasons)
        self._covariates = Covariates(columns.width - self._width, self._width, max(1, horizon))
        self._anomaly_setting = AnomalySetting(self._width, rate=alarm_rate, events=int(alarm_per == "event"))
        self._anomaly = Anomaly(self._anomaly_setting, 1)
        self._ahead = np.empty((0, 3, self._width, self._setting.horizon))
        """(slots, 3, w, H) the last forecast of each slot and its bounds."""
        self._slots = 0
        self.resize(1)
        self.reset(0)

    @property
    def learner(self) -> Learner:
        return self._bank.learner(0)

    def resize(self, slots: int) -> None:
        slots = max(slots, 1)
        if slots <= self._slots:
            return
        self._forecaster.resize(slots)
        grow(self._anomaly.state, slots)
        grow(self._ahead, slots)
        self._ahead[self._slots :] = np.nan
        for part in (self._gauge, self._bank, self._covariates):
            part.resize(slots)
        self._slots = slots

    def reset(self, slot: int) -> None:
        self._forecaster.reset(slot)
        self._ahead[slot] = np.nan
        self._anomaly.state[slot] = 0.0
        for part in (self._gauge, self._bank, self._covariates):
            part.reset(slot)

    def run(self, slots: Slots, values: Vector, calendar: Vector) -> Steps:
        targets = np.ascontiguousarray(values[:, : self._width])
        states = self._bank.step(slots, self._gauge.scale(slots, targets))
        if not math.isfinite(states.sum()):
            raise DivergedError(int(np.flatnonzero(~np.isfinite(states).all(1))[0]))
        extra = np.ascontiguousarray(calendar[:, 0, : self._calendar])
        made = self._forecaster.observe(targets, states, extra, rows=slots)
        predicted = self._covariates.correct(slots, values[:, self._width :], targets, made.expected, made.mean)
        reading = self._gauge.judge(slots, targets, predicted)
        scores = self._anomaly.observe(targets, predicted, rows=slots)
        ahead = np.stack((made.mean, made.lower, made.upper), axis=1)
        self._ahead[slots] = ahead
        forecast = ahead[..., : self.horizon].transpose(1, 0, 3, 2)
        settled = np.isfinite(reading.error)
        return Steps(
            predicted=predicted,
            forecast=forecast[0],
            lower=forecast[1],
            upper=forecast[2],
            surprise=reading.surprise,
            parts=reading.parts,
            anomaly=np.where(settled, scores.anomaly, np.nan),
            alarm=scores.alarm & settled,
            severity=np.where(settled, scores.severity, 0.0),
            error=reading.error,
            copy_error=reading.copied,
            layer_errors=np.empty((len(slots), 0)),
        )

    def forecast(self, slot: int, features: Vector, calendar: Vector) -> tuple[Vector, Vector, Vector]:
        wanted = len(features)
        mean, lower, upper = (part.T.copy() for part in self._ahead[slot])  # (H, w)
        if wanted > len(mean):
            mean, lower, upper = self._further(slot, wanted, mean, lower, upper)
        correction = self._covariates.ahead(slot, features)
        parts = (part[:wanted] if correction is None else part[:wanted] + correction for part in (mean, lower, upper))
        return tuple(parts)

    def _further(
        self, slot: int, wanted: int, mean: Vector, lower: Vector, upper: Vector
    ) -> tuple[Vector, Vector, Vector]:
        """Forecast beyond the learnt horizon by feeding forecasts back as observations into a copy of the stream.

        The bounds widen with the square root of the distance.
        """
        copy = Forecaster(self._setting, 1, seasons=self._seasons)
        copy.load_tree(self._forecaster.tree(slot))
        states = self._bank.states_of(slot)[None]
        extra = np.zeros((1, self._calendar))
        rows = list(mean)
        half = (upper[-1] - lower[-1]) / 2
        while len(rows) < wanted:
            for row in rows[-len(mean) :]:
                ahead = copy.observe(np.ascontiguousarray(row[None]), states, extra)
            rows += list(ahead.mean[0].T)
        entries = np.array(rows)
        reach = np.sqrt(np.arange(len(mean) + 1, len(entries) + 1) / len(mean))[:, None] * half
        beyond = entries[len(mean) :]
        return entries, np.concatenate((lower, beyond - reach)), np.concatenate((upper, beyond + reach))

    def state(self, slots: Sequence[int]) -> dict[str, Any]:
        index = list(slots)
        return {
            "forecaster": self._forecaster.state[index],
            "gauge": self._gauge.state[index],
            "ahead": self._ahead[index],
            "horizon": self._setting.horizon,
            "bank": self._bank.state(index),
            "covariates": self._covariates.state(index),
            "anomaly": self._anomaly.state[index],
        }

    def restore(self, slots: Sequence[int], state: Mapping[str, Any]) -> None:
        index = list(slots)
        if state["horizon"] == self._setting.horizon:
            saved = completed(state["forecaster"], self._setting)
            self._forecaster.state[index] = _like(saved, self._forecaster.state[index])
            self._ahead[index] = _like(state["ahead"], self._ahead[index])
        else:
            self._learn_again(index, state["forecaster"], state["horizon"])
        self._gauge.state[index] = _like(state["gauge"], self._gauge.state[index])
        self._bank.restore(index, state["bank"])
        self._covariates.restore(index, state["covariates"])
        self._anomaly.state[index] = _like(state["anomaly"], self._anomaly.state[index])

    def _learn_again(self, slots: Sequence[int], states: Vector, horizon: int) -> None:
        """A new horizon gives the readouts new targets, which they learn from the stored values."""
        old = replace(self._setting, horizon=horizon)
        parts = views(np.ascontiguousarray(completed(states, old)), old)
        for row, slot in enumerate(slots):
            count, length = int(parts["count"][row]), old.history
            past = parts["history"][row, :, : min(count, length)]
            past = np.roll(past, -(count % length), axis=1) if count > length else past
            learner = Forecaster(self._setting, 1, seasons=self._seasons)
            nothing = np.zeros((1, self._setting.states)), np.zeros((1, self._calendar))
            for values in past.T:
                ahead = learner.observe(np.ascontiguousarray(values[None]), *nothing)
            self._forecaster.load_tree(learner.tree(), slot)
            if count:
                self._ahead[slot] = np.stack((ahead.mean[0], ahead.lower[0], ahead.upper[0]))

    def shared_state(self) -> dict[str, Any]:
        return self._bank.shared_state()

    def restore_shared(self, state: Mapping[str, Any]) -> None:
        self._bank.restore_shared(state)


def _like(saved: Any, present: Vector) -> Vector:
    """A saved array, after checking that it has the shape of the array it replaces."""
    if not isinstance(saved, np.ndarray) or saved.shape != present.shape:
        raise ValueError(f"expected an array of {present.shape}, got {getattr(saved, 'shape', type(saved).__name__)}")
    return saved
