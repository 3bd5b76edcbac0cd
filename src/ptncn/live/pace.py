"""The speed of a replay: by timestamps, in rows per second, or as fast as possible."""

from __future__ import annotations

import math
import re
import statistics
import time
from collections import deque
from collections.abc import Callable

LONGEST_WAIT = 2.0
"""Maximum seconds that a replay waits at a gap, a step of more than twice the usual length."""
FORMS = "1x, 60x, 20/s or max"


class Pace:
    """Computes how many rows are due.

    Arguments:
        speed: "60x" replays the timestamps sixty times as fast, "20/s" gives twenty rows a second, "max" never waits.
        now: the clock, in seconds.

    >>> pace = Pace("10/s", now=iter([0.0, 0.0, 0.25, 0.25]).__next__)
    >>> pace.due(256)
    1
    >>> pace.took(1, 0.0)
    >>> pace.due(256)
    2
    """

    def __init__(self, speed: str = "max", now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self.paused = False
        self._steps: deque[float] = deque(maxlen=3)
        self._first: float = math.nan
        self._last: float = math.nan
        self.set(speed)

    def set(self, speed: str) -> None:
        """Change the speed."""
        self._factor, self._rate = parse_speed(speed)
        self.speed = speed
        self._begin()

    def pause(self, paused: bool) -> None:
        self.paused = paused
        self._begin()

    def due(self, most: int) -> int:
        """Rows to take now, from 0 to `most`."""
        if self.paused:
            return 0
        if self._factor is None and self._rate is None:
            return most
        passed = self._now() - self._began
        if self._rate is not None:
            return min(most, int(passed * self._rate) + 1 - self._rows)
        assert self._factor is not None
        ahead = 0.0 if math.isnan(self._last) else (self._last - self._first) / self._factor - passed
        step = self._step / self._factor
        usual = statistics.median_low(self._steps) / self._factor if len(self._steps) > 1 else 0.0
        if ahead > max(LONGEST_WAIT, 2 * usual):  # a gap: restart the clock shortly before this row
            self._first += (ahead - LONGEST_WAIT) * self._factor
            return 0
        return 0 if ahead > 0 else 1 if step <= 0 else min(most, int(-ahead / step) + 1)

    def wait(self) -> float:
        """Seconds until the next row is due."""
        passed = self._now() - self._began
        if self._rate is not None:
            return self._rows / self._rate - passed
        if self._factor is None or math.isnan(self._last):
            return 0.0
        return (self._last - self._first) / self._factor - passed

    def took(self, rows: int, moment: float) -> None:
        """Record that `rows` rows were taken, the last with this timestamp in seconds."""
        if self._factor is not None and math.isnan(moment):
            raise ValueError(f"speed: {self.speed} needs timestamps, and there are none; try 20/s or max")
        self._rows += rows
        if math.isnan(self._first):
            self._first = moment
        elif moment > self._last:
            self._step = (moment - self._last) / rows
            self._steps.append(self._step)
        self._last = moment

    def _begin(self) -> None:
        self._began = self._now()
        self._rows, self._step = 0, 0.0
        self._first, self._last = math.nan, math.nan


def parse_speed(speed: str) -> tuple[float | None, float | None]:
    """The speed-up relative to recorded time, and the rows per second; both are None for "max".

    >>> parse_speed("60x"), parse_speed("20/s"), parse_speed("max")
    ((60.0, None), (None, 20.0), (None, None))
    """
    if speed == "max":
        return None, None
    match = re.fullmatch(r"(\d{1,9}(?:\.\d{1,6})?)(x|/s)", speed)
    if match is None or float(match[1]) == 0:
        raise ValueError(f"speed: expected {FORMS}, got {speed[:40]!r}")
    value = float(match[1])
    return (value, None) if match[2] == "x" else (None, value)
