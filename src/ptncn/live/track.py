"""What is kept of one stream for its page: the last rows, the forecast ahead of now, and how much trouble there is."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ptncn.live.ring import Ring, Table
from ptncn.streaming.results import FADING, Results

X, ROW, ANOMALY, ALARM, DRIFT, AGAINST_COPY, TARGETS = range(7)
"""Columns of the ring; from `TARGETS` on there are four of each target: observed, predicted, lower and upper bound."""
EACH = 4


@dataclass
class Alarm:
    """An alarm in the list of a page."""

    row: int
    """The number of its row in the whole stream, which also is its name."""
    x: float
    when: str | None
    """Its timestamp, as it came."""
    key: str | None
    cause: str | None
    severity: float
    acknowledged: bool = False


class Track:
    """The recent past of one stream, and its forecast."""

    def __init__(self, targets: int, capacity: int) -> None:
        self.ring = Ring(TARGETS + EACH * targets, capacity)
        self.fan: Table = np.empty((0, 3, targets))
        """(h, 3, targets) forecast, lower and upper bound of the next h rows."""
        self.open_alarms = 0
        self.trouble = 0.0
        """The severities of open alarms, added up."""
        self.highest = 0.0
        """The highest anomaly score of late, fading away."""
        self._next_bounds = np.full((2, targets), np.nan)
        self._error = self._copy_error = 0.0

    def add(self, results: Results, rows: NDArray[np.intp], x: Table, places: list[int]) -> None:
        """Take over some rows of a block; `places` are the entries of the targets that are shown."""
        steps, n = results.steps, len(rows)
        table = np.empty((n, TARGETS + EACH * len(places)))
        table[:, X] = x
        table[:, ROW] = results.first + rows
        table[:, ANOMALY], table[:, ALARM], table[:, DRIFT] = (
            steps.anomaly[rows],
            steps.alarm[rows],
            results.drift[rows],
        )
        table[:, AGAINST_COPY] = self._against_copy(steps.error[rows], steps.copy_error[rows])
        targets = table[:, TARGETS:].reshape(n, len(places), EACH)
        targets[:, :, 0] = results.observed[rows][:, places]
        targets[:, :, 1] = steps.predicted[rows][:, places]
        self._add_bounds(results, rows, places, targets)
        self.ring.append(table)
        scores = np.nan_to_num(steps.anomaly[rows])
        self.highest = max(self.highest * 0.995**n, float(scores.max()))

    def _add_bounds(self, results: Results, rows: NDArray[np.intp], places: list[int], targets: Table) -> None:
        """The bounds of a row are those of the forecast one step before it."""
        steps = results.steps
        bounds = np.full((len(rows) + 1, 2, len(places)), np.nan)
        bounds[0] = self._next_bounds
        if steps.lower.shape[1]:
            bounds[1:, 0], bounds[1:, 1] = steps.lower[rows, 0][:, places], steps.upper[rows, 0][:, places]
        targets[:, :, 2:] = bounds[:-1].transpose(0, 2, 1)
        self._next_bounds = bounds[-1].copy()
        ahead = steps.forecast[rows[-1]][:, places]
        self.fan = np.full((len(ahead), 3, len(places)), np.nan)
        self.fan[:, 0] = ahead
        if len(steps.lower[rows[-1]]):
            self.fan[:, 1], self.fan[:, 2] = steps.lower[rows[-1]][:, places], steps.upper[rows[-1]][:, places]

    def _against_copy(self, error: Table, copied: Table) -> float:
        """The error as a share of that of copying the last row, older rows fading away."""
        scored = ~(np.isnan(error) | np.isnan(copied))
        fade = FADING ** int(scored.sum())
        self._error = fade * self._error + float(error[scored].sum())
        self._copy_error = fade * self._copy_error + float(copied[scored].sum())
        return math.sqrt(self._error / self._copy_error) if self._copy_error else math.nan
