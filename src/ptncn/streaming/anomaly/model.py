"""An anomaly score that means the same on every stream, and alarms at a chosen rate."""

from __future__ import annotations

import ctypes
from dataclasses import fields
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ptncn.kernels import address, open_library
from ptncn.streaming.anomaly import reference
from ptncn.streaming.anomaly.layout import AnomalySetting, Array, width
from ptncn.streaming.anomaly.reference import HALF
from ptncn.streaming.storage import StateRows

AFTER = 0.25
"""What the novelty of a level adds up to at most, where no event begins."""


class CSetting(ctypes.Structure):
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
    """From 0 to below 1: how rare the row is, at the first row of an event and where it gets much worse; elsewhere at
    most ¼, by how far the levels are from what was seen before."""
    unusual: Array
    """The same for every row, within events, too."""
    alarm: NDArray[np.bool_]
    severity: Array
    """Of an alarm, how many nines: 4 is one row in 10,000; 0 without one."""
    column: NDArray[np.int64]
    """Which column it came from."""


class Anomaly(StateRows):
    """Scores rows of `streams` independent streams by their values and what was expected of them.

    A row is unusual as a surprise (its error, beside what is usual), in a burst of surprises or of errors to one side,
    as a level above or below most that were seen, over few rows or many, as values that hardly move, or as a value
    outside of the range of all before. Each has a tail of its own, fitted to the stream as it goes: the chance to
    exceed it is what makes a spiky stream comparable to a quiet one. It is counted in nines: 3 is one row in a
    thousand. After a peak, only what is worse is a new event, for 100 rows; then the bar falls. An event like others of
    its kind before counts for less, and of what is left the least likely kind is the score.

    An alarm is raised where the score exceeds a threshold, which rises with each alarm and falls between them, so that
    there are `rate` alarms a row. Rows that begin no event come after all that do: they give alarms only where events
    are rarer than the rate that was asked for. What never changes is never unusual.

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
        self._c_setting = CSetting(**{field.name: getattr(setting, field.name) for field in fields(setting)})

    def observe(self, values: Array, expected: Array, *, rows: NDArray[np.int64] | None = None) -> Scores:
        """Score (B, C) values, NaN where nothing was observed, of the streams `rows`, in their order."""
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
            reference.step(self.setting, self.state, rows, values, expected, out)
            return
        wrong = self._library.anomaly_step(
            ctypes.byref(self._c_setting),
            address("state", self.state, np.float64, *self.state.shape),
            *map(ctypes.c_int64, self.state.shape),
            places,
            ctypes.c_int64(count),
            *addresses,
        )
        if wrong:
            raise ValueError(f"rows: expected numbers from 0 to {len(self.state) - 1}")
