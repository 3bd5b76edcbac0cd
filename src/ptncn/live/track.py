"""The data of one stream for its page: the last rows, thinned out to fit a screen, the forecast and open alarms."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ptncn.streaming.results import FADING, Results

Table = NDArray[np.float64]

X, ROW, ANOMALY, ALARM, DRIFT, AGAINST_COPY, TARGETS = range(7)
"""Columns of the ring. From `TARGETS` on there are six per target: observed, predicted, two bounds, and two inner
bounds."""
EACH = 6
MIDDLE = 0.5
"""Probability of the inner bounds."""
PAST = 1000
"""Number of earlier rows that an explanation of an alarm refers to."""
RARE = 0.005
"""Explanations with shares of rows that differ by less than this are about equally good; the simplest one is given."""


@dataclass
class Alarm:
    """An alarm in the list of a page."""

    row: int
    """The number of its row in the stream, which identifies it."""
    x: float
    when: str | None
    """Its timestamp in its original form."""
    key: str | None
    cause: str | None
    """The target concerned."""
    why: str
    """An explanation in words."""
    severity: float
    acknowledged: bool = False


class Track:
    """The recent past of one stream, and its forecast."""

    def __init__(self, targets: int, capacity: int) -> None:
        self.ring = Ring(TARGETS + EACH * targets, capacity)
        self.fan: Table = np.empty((0, EACH - 1, targets))
        """(h, 5, targets) forecast, lower and upper bound, then those of the middle half, of the next h rows."""
        self._middle = MiddleHalf()
        self.open_alarms = 0
        self.open_severity = 0.0
        """The sum of the severities of open alarms."""
        self.highest = 0.0
        """The highest recent anomaly score, fading over time."""
        self._next = np.full((EACH - 2, targets), np.nan)
        self._error = self._copy_error = 0.0

    def add(self, results: Results, rows: NDArray[np.intp], x: Table, places: list[int]) -> None:
        """Add some rows of a block; `places` are the entries of the targets shown."""
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

    def explain(self, skip: int, first: int | None = None) -> tuple[int, str] | None:
        """The target that stands out in the row `skip` rows before the newest, and an explanation; None if none does.

        The target `first` is preferred to others that stand out as much.
        """
        rows = self.ring.last(PAST, skip)
        targets = rows[:, TARGETS:].reshape(len(rows), -1, EACH)
        candidates = [
            (share, target != first, order, target, words)
            for target in range(targets.shape[1])
            for order, (share, words) in enumerate(explanations(targets[:, target, 0], targets[:, target, 1]))
        ]
        least = min((share for share, *_ in candidates), default=1.0)
        if least > 0.1:
            return None
        best = [each for each in candidates if each[0] <= least + RARE]
        *_, target, words = min(best, key=lambda each: each[1:4])
        return target, words

    def _add_bounds(self, results: Results, rows: NDArray[np.intp], places: list[int], targets: Table) -> None:
        """The bounds of a row are those of the forecast made one step before it."""
        steps = results.steps
        ahead = steps.forecast[rows][:, :, places]
        made = np.full((len(rows), ahead.shape[1], 3, len(places)), np.nan)
        made[:, :, 0] = ahead
        if steps.lower.shape[1]:
            made[:, :, 1], made[:, :, 2] = steps.lower[rows][:, :, places], steps.upper[rows][:, :, places]
        bounds = np.full((len(rows) + 1, EACH - 2, len(places)), np.nan)
        bounds[0] = self._next
        if made.shape[1]:
            bounds[1:] = self._middle.widen(made)[:, 0, 1:]
        targets[:, :, 2:] = bounds[:-1].transpose(0, 2, 1)
        self._next = bounds[-1].copy()
        self._middle.follow(targets[:, :, 0], made)
        self.fan = self._middle.widen(made[-1:])[0]

    def _against_copy(self, error: Table, copied: Table) -> Table:
        """The error relative to copying the last row, after each row, with exponential fading."""
        scored = ~(np.isnan(error) | np.isnan(copied))
        fade = FADING ** np.cumsum(scored)
        errors = fade * (self._error + np.cumsum(np.where(scored, error, 0.0) / fade))
        copies = fade * (self._copy_error + np.cumsum(np.where(scored, copied, 0.0) / fade))
        self._error, self._copy_error = float(errors[-1]), float(copies[-1])
        shares = np.full(len(error), np.nan)
        np.divide(errors, copies, out=shares, where=copies > 0)
        return shares**0.5


def explanations(observed: Table, expected: Table) -> Iterator[tuple[float, str]]:
    """Possible explanations of the last row, the simplest first: the share of earlier rows that were at least as
    unusual, and a sentence. `docs/streams.md` lists the ways in which a row can be rare.

    >>> quiet = np.sin(np.arange(300.0))
    >>> min(explanations(np.append(quiet, 8.0), np.append(quiet + 0.1, 0.5)))[1]
    'observed 8, expected 0.5; none of the 300 rows before had a larger error'
    """
    error = np.abs(observed - expected)
    usual = float(np.nanmedian(error[:-1])) if np.isfinite(error[:-1]).any() else 0.0
    value, prediction = observed[-1], expected[-1]
    level, moves = rolling(observed, 40), rolling(np.abs(np.diff(observed, prepend=np.nan)), 20)
    size = in_words(level[-1])
    digits = next((digits for digits in (4, 7, 10) if in_words(value, digits) != in_words(prediction, digits)), 16)
    pair = f"observed {in_words(value, digits)}, expected {in_words(prediction, digits)}"
    burst = rolling(np.minimum(error, 8 * usual), 10)
    for series, fact, comparison in (
        (error, pair, "had a larger error"),
        (observed, f"observed {in_words(value)}", "had a higher value"),
        (-observed, f"observed {in_words(value)}", "had a lower value"),
        (burst, f"the error of the last 10 rows is {in_words(burst[-1])} on average", "had a larger one"),
        (level, f"the mean of the last 40 rows is {size}", "had a higher one"),
        (-level, f"the mean of the last 40 rows is {size}", "had a lower one"),
        (-moves, f"the last 20 rows hardly moved, by {in_words(moves[-1])} a row", "moved less"),
    ):
        past = series[:-1][np.isfinite(series[:-1])]
        if len(past) >= 20 and np.isfinite(series[-1]):
            count = int((past >= series[-1]).sum())
            yield count / len(past), f"{fact}; {count or 'none'} of the {len(past):,} rows before {comparison}"


def in_words(value: float, digits: int = 4) -> str:
    """A number for use in a sentence, with four digits or more.

    >>> [in_words(value) for value in (8.0412, 12345.6, -0.00012344, 3.9693e12)]
    ['8.041', '12,346', '-0.0001234', '3.969e12']
    """
    if 10**digits <= abs(value) < 1e9:
        return f"{value:,.0f}"
    return f"{value:,.{digits}g}".replace("e+", "e")


def rolling(series: Table, window: int) -> Table:
    """The moving mean over a window, without missing values; NaN at the start.

    >>> rolling(np.array([1.0, 3.0, np.nan, 5.0]), 2)
    array([nan,  2.,  3.,  5.])
    """
    known = np.isfinite(series)
    total, count = (np.cumsum(np.append(0.0, each)) for each in (np.where(known, series, 0.0), known))
    means = np.full(len(series), np.nan)
    if len(series) >= window:
        count = count[window:] - count[:-window]
        np.divide(total[window:] - total[:-window], count, out=means[window - 1 :], where=count > 0)
    return means


class MiddleHalf:
    """Bounds of the middle half of the values, derived from the bounds of a stream, which have one level.

    Each lies between the forecast and the given bound. Its distance, as a share of the bound's, is tracked for each
    step ahead, side and target: it grows if more than a quarter of the values lie beyond it, and shrinks otherwise.
    """

    START = 0.41
    """The initial share, which is right for normal errors and a level of 0.9."""
    RATE = 0.01
    """Change in a share per row; a block of many rows changes it by at most half."""

    def __init__(self) -> None:
        self._share: Table | None = None  # (h, 2, targets)
        self._made: Table | None = None  # (h, h, 3, targets) the last forecasts

    def widen(self, made: Table) -> Table:
        """(n, h, 5, targets) forecasts and bounds (n, h, 3, targets), followed by the inner bounds."""
        share = self.START if self._share is None else self._share
        return np.concatenate([made, made[:, :, :1] + share * (made[:, :, 1:] - made[:, :, :1])], axis=2)

    def follow(self, observed: Table, made: Table) -> None:
        """Learn from (n, targets) rows, and store the forecasts made after them."""
        n, h = made.shape[:2]
        if self._made is None or self._share is None:
            self._made, self._share = made[:0], np.full((h, 2, made.shape[3]), self.START)
        both = np.concatenate([self._made, made])
        which = len(self._made) + np.arange(n)[:, None] - 1 - np.arange(h)  # the forecast of this row by this step
        kept = both[which.clip(0), np.arange(h)]  # (n, h, 3, targets)
        reach = kept[:, :, 1:] - kept[:, :, :1]
        off = (observed[:, None, None] - kept[:, :, :1]) * np.array([[-1.0], [1.0]])
        known = (which >= 0)[:, :, None, None] & np.isfinite(off) & np.isfinite(reach)
        beyond = (known & (off > self._share * np.abs(reach))).sum(0) - (1 - MIDDLE) / 2 * known.sum(0)
        step = min(self.RATE, 0.5 / max(n, 1))
        self._share = (self._share + step * beyond).clip(0, 1)
        self._made = both[len(both) - min(h, len(both)) :].copy()


class Ring:
    """Keeps the last `capacity` rows of a table sorted by its first column.

    >>> ring = Ring(2, capacity=3)
    >>> ring.append(np.array([[0.0, 5], [1, 6], [2, 7], [3, 8]]))
    >>> ring.window(1.5, 9.0)[1]
    array([[2., 7.],
           [3., 8.]])
    """

    def __init__(self, columns: int, capacity: int) -> None:
        self.capacity = capacity
        self.total = 0
        """Number of rows so far."""
        self._rows = np.empty((min(capacity, 256), columns))

    def __len__(self) -> int:
        return min(self.total, self.capacity)

    def append(self, rows: Table) -> None:
        """Add rows, (n, columns), at the end."""
        rows = rows[-self.capacity :] if (skipped := len(rows) - self.capacity) > 0 else rows
        self.total += max(skipped, 0)
        while len(self._rows) < min(self.total + len(rows), self.capacity):
            more = min(2 * len(self._rows), self.capacity)
            self._rows = np.concatenate([self._rows, np.empty((more - len(self._rows), self._rows.shape[1]))])
        self._rows[np.arange(self.total, self.total + len(rows)) % len(self._rows)] = rows
        self.total += len(rows)

    def last(self, count: int = 1, skip: int = 0) -> Table:
        """A copy of the last `count` rows before the newest `skip`, fewer if there are fewer."""
        stop = self.total - min(skip, len(self))
        count = min(count, len(self) - min(skip, len(self)))
        return self._rows[np.arange(stop - count, stop) % len(self._rows)]

    def span(self) -> tuple[float, float]:
        """The values of the first column in the oldest and the newest row."""
        return self._first_column(0), self._first_column(len(self) - 1)

    def window(self, start: float | None, end: float | None) -> tuple[int, Table]:
        """The number of the first row from `start` on, and a copy of the rows from there to `end`."""
        places, oldest = range(len(self)), self.total - len(self)
        first = 0 if start is None else bisect_left(places, start, key=self._first_column)
        stop = len(self) if end is None else bisect_right(places, end, key=self._first_column)
        return oldest + first, self._rows[np.arange(oldest + first, oldest + stop) % len(self._rows)]

    def _first_column(self, place: int) -> float:
        return float(self._rows[(self.total - len(self) + place) % len(self._rows), 0])


def thin_out(
    rows: Table, first: int, points: int, *, low: Sequence[int] = (), high: Sequence[int] = ()
) -> tuple[int, Table]:
    """About `points` rows with the same outline: the lowest and highest values of each bucket of rows.

    A bucket gives two rows, the lowest values at its first x and the highest at its last, so that no peak is lost.
    Columns in `low` give only their lowest values, those in `high` only their highest. Buckets are aligned to multiples
    of their size from the start of the stream, where `rows` begins at row `first`, so that the drawing does not shift
    as rows arrive. Returns the size of a bucket (1 if nothing was thinned out) and the rows.

    >>> thin_out(np.array([[0.0, 3], [1, 1], [2, 2], [3, 9], [4, 4], [5, 5], [6, 0], [7, 1]]), 0, 4)[1].tolist()
    [[0.0, 1.0], [3.0, 9.0], [4.0, 0.0], [7.0, 5.0]]
    """
    bucket = 1
    while 2 * len(rows) > points * bucket and len(rows) > points:
        bucket *= 2
    if bucket <= 2:
        return 1, rows
    starts = np.arange(-(first % bucket), len(rows), bucket).clip(0)
    ends = np.append(starts[1:], len(rows)) - 1
    lowest, highest = np.fmin.reduceat(rows, starts), np.fmax.reduceat(rows, starts)
    thin = np.empty((2 * len(starts), rows.shape[1]))
    thin[::2], thin[1::2] = lowest, highest
    thin[1::2, list(low)] = lowest[:, list(low)]
    thin[::2, list(high)] = highest[:, list(high)]
    thin[::2, 0], thin[1::2, 0] = rows[starts, 0], rows[ends, 0]
    return bucket, thin
