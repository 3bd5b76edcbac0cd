"""How unusual a row is, and when to raise an alarm: scores that are comparable between streams.

`anomaly_reference` describes the model. `kernels/anomaly.c` and the functions there compute the same numbers.
"""

from __future__ import annotations

import ctypes
from dataclasses import fields
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ptncn.kernels import address, open_library
from ptncn.streaming.anomaly_reference import AFTER, HALF, AnomalySetting, Array, step, width
from ptncn.streaming.storage import StateRows

__all__ = ["Anomaly", "AnomalySetting", "Scores"]


class CAnomalySetting(ctypes.Structure):
    """`AnomalySetting` as the kernel reads it."""

    _fields_ = [
        (field.name, ctypes.c_int64 if field.type == "int" else ctypes.c_double) for field in fields(AnomalySetting)
    ]


@cache
def load() -> ctypes.CDLL | None:
    """The library of anomaly scores, or None: see `open_library`."""
    return open_library("_anomaly", {"anomaly_size": ctypes.c_int64, "anomaly_step": ctypes.c_int64})


class Scores(NamedTuple):
    """(B,) each."""

    anomaly: Array
    """From 0 to below 1. At the first row of an event, and where the event gets much worse, the rarity of the row;
    elsewhere at most ¼, depending on how far levels are from earlier ones."""
    unusual: Array
    """The rarity of every row, including those within events."""
    alarm: NDArray[np.bool_]
    severity: Array
    """The nines of an alarm: 4 is one row in 10,000; 0 without an alarm."""
    column: NDArray[np.int64]
    """The unusual column."""


class Anomaly(StateRows):
    """Scores rows of `streams` independent streams by their values and predictions.

    A row can be unusual as a surprise (a large error relative to the usual one), as part of a burst of surprises or of
    errors with one sign, because of a high or low level over few or many rows, because values hardly move, or because
    a value is outside the range of all earlier ones. Each kind has its own tail distribution, fitted to the stream. The
    probability of exceeding a value makes spiky and quiet streams comparable. It is measured in nines: 3 means one row
    in a thousand. For 100 rows after a peak, only a worse row is a new event; then this limit decays. Recurring events
    of the same kind count for less, and the rarest kind determines the score.

    An alarm is raised if the score exceeds a threshold, which rises with each alarm and falls between alarms, so that
    there are `rate` alarms per row. Rows that do not start an event rank below all rows that do, so they cause alarms
    only if events are rarer than the rate. A stream that never changes is never unusual.

    >>> scorer = Anomaly(AnomalySetting())
    >>> values = np.random.default_rng(0).normal(size=(500, 1))
    >>> values[400] = 30.0
    >>> scores = scorer.observe(values, np.zeros((500, 1)), rows=np.zeros(500, dtype=np.int64))
    >>> int(scores.anomaly.argmax()), bool(scores.alarm[400])
    (400, True)
    """

    def __init__(self, setting: AnomalySetting, streams: int = 1) -> None:
        self.setting = setting
        self.state = np.zeros((streams, width(setting)))
        self._all = np.arange(streams)
        self._library = load()
        self._c_setting = CAnomalySetting(**{field.name: getattr(setting, field.name) for field in fields(setting)})

    def observe(self, values: Array, expected: Array, *, rows: NDArray[np.int64] | None = None) -> Scores:
        """Score (B, C) values, NaN if not observed, of the streams `rows`, in order."""
        rows = self._all if rows is None else rows
        out = np.empty((len(rows), 5))
        self._step(rows, values, expected, out)
        alarm = out[:, 2] > 0
        squashed = out[:, :2] / (out[:, :2] + HALF)
        severity = np.where(alarm, out[:, 1], 0.0)
        novelty = AFTER * out[:, 4] / (1 + out[:, 4])
        return Scores(np.maximum(squashed[:, 0], novelty), squashed[:, 1], alarm, severity, out[:, 3].astype(np.int64))

    def _step(self, rows: NDArray[np.int64], values: Array, expected: Array, out: Array) -> None:
        count, columns = len(rows), self.setting.columns
        addresses = (
            address("values", values, np.float64, count, columns),
            address("expected", expected, np.float64, count, columns),
            address("out", out, np.float64, count, 5),
        )
        places = address("rows", rows, np.int64, count)
        if self._library is None:
            step(self.setting, self.state, rows, values, expected, out)
            return
        code = self._library.anomaly_step(
            ctypes.byref(self._c_setting),
            address("state", self.state, np.float64, *self.state.shape),
            *map(ctypes.c_int64, self.state.shape),
            places,
            ctypes.c_int64(count),
            *addresses,
        )
        if code:
            raise ValueError(f"rows: expected numbers from 0 to {len(self.state) - 1}")
