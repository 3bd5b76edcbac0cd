"""The last rows of an endless table, and how they are thinned out for a screen."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Table = NDArray[np.float64]


class Ring:
    """Keeps the last `capacity` rows of a table whose first column ascends.

    >>> ring = Ring(2, capacity=3)
    >>> ring.append(np.array([[0.0, 5], [1, 6], [2, 7], [3, 8]]))
    >>> ring.window(1.5, 9.0)[1]
    array([[2., 7.],
           [3., 8.]])
    """

    def __init__(self, columns: int, capacity: int) -> None:
        self.capacity = capacity
        self.total = 0
        """Rows that ever came."""
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

    def last(self, count: int = 1) -> Table:
        """A copy of the last `count` rows, fewer if there are fewer."""
        count = min(count, len(self))
        return self._rows[np.arange(self.total - count, self.total) % len(self._rows)]

    def window(self, start: float | None, end: float | None) -> tuple[int, Table]:
        """The number of the first row from `start` on, and a copy of the rows from there to `end`."""
        rows = self.last(len(self))
        first = 0 if start is None else int(np.searchsorted(rows[:, 0], start, "left"))
        stop = len(rows) if end is None else int(np.searchsorted(rows[:, 0], end, "right"))
        return self.total - len(rows) + first, rows[first:stop]


def thin_out(
    rows: Table, first: int, points: int, *, low: Sequence[int] = (), high: Sequence[int] = ()
) -> tuple[int, Table]:
    """At most about `points` rows with the same outline: of each bucket of rows the lowest and the highest values.

    A bucket gives two rows, the lowest values at its first x and the highest at its last, so that no peak is lost.
    The columns `low` only give their lowest values, `high` only their highest. Buckets begin at multiples of their
    size in the whole stream, counted from its beginning where `rows` is row `first`: what is drawn stays put while
    new rows come. Returns the size of a bucket, 1 if nothing was thinned out, and the rows.

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
