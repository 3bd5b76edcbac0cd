"""The live line on a terminal: rate, error beside that of copying, the course of the surprise."""

from __future__ import annotations

import sys
import time
from collections import deque
from typing import Protocol

from ptncn.streaming.tally import Tally

BARS = "▁▂▃▄▅▆▇█"
WIDTH = 20
PERIOD = 0.25


class Status(Protocol):
    def update(self, tally: Tally, score: float | None) -> None:
        """Take note of an observation; draw if it is time."""

    def close(self) -> None: ...


class NoStatus:
    """For pipes and logs: says nothing."""

    def update(self, tally: Tally, score: float | None) -> None:
        pass

    def close(self) -> None:
        pass


class LiveStatus:
    """Draws on standard error, four times a second; each bar is the highest score between two drawings.

    What stays on the terminal in the end is all that there was, and the mean rate.
    """

    def __init__(self) -> None:
        from rich.console import Console
        from rich.live import Live

        self._live = Live(console=Console(stderr=True), auto_refresh=False, transient=False)
        self._live.start()
        self._highest: deque[float] = deque(maxlen=WIDTH)
        self._peak = 0.0
        self._begun = self._drawn = time.monotonic()
        self._begun_at = self._drawn_at = 0
        self._tally: Tally | None = None

    def update(self, tally: Tally, score: float | None) -> None:
        if self._tally is None:
            self._tally = tally
            self._begun_at = self._drawn_at = tally.observations - 1  # those of an earlier run took no time of this one
        if score is not None and score > self._peak:
            self._peak = score
        now = time.monotonic()
        if now - self._drawn >= PERIOD:
            self._highest.append(self._peak)
            rate = (tally.observations - self._drawn_at) / (now - self._drawn)
            self._draw(tally, rate)
            self._peak, self._drawn, self._drawn_at = 0.0, now, tally.observations

    def close(self) -> None:
        if self._tally is not None:
            rate = (self._tally.observations - self._begun_at) / max(time.monotonic() - self._begun, 1e-9)
            self._draw(self._tally, rate)
        self._live.stop()

    def _draw(self, tally: Tally, rate: float) -> None:
        from rich.text import Text

        self._live.update(Text(describe(tally, rate, self._highest)), refresh=True)


def describe(tally: Tally, rate: float, scores: deque[float]) -> str:
    """
    >>> describe(Tally(observations=1500, alarms=2, error=1.0, copy_error=16.0), 1200.0, deque([0.0, 0.5, 1.0]))
    '1,500 rows  1,200/s  error 25 % of copy-last  surprise ▁▅█  2 alarms'
    """
    parts = [f"{tally.observations:,} rows", f"{rate:,.0f}/s"]
    if tally.copy_error:
        parts.append(f"error {100 * tally.against_copy:.0f} % of copy-last")
    parts += [f"surprise {sparkline(scores)}", f"{tally.alarms:,} alarms"]
    if tally.drifts:
        parts.append(f"{tally.drifts:,} drifts")
    if tally.bad_rows:
        parts.append(f"{tally.bad_rows:,} bad rows")
    return "  ".join(parts)


def sparkline(scores: deque[float]) -> str:
    return "".join(BARS[min(int(score * len(BARS)), len(BARS) - 1)] for score in scores)


def choose_status(quiet: bool, writes_to_stdout: bool) -> Status:
    """Live on a terminal, unless the lines themselves go to it."""
    if quiet or not sys.stderr.isatty() or (writes_to_stdout and sys.stdout.isatty()):
        return NoStatus()
    return LiveStatus()
