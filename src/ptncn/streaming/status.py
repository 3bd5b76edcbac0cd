"""What a stream shows of itself: a live line on a terminal, and a summary at the end."""

from __future__ import annotations

import math
import sys
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Protocol

FADING = 0.999


@dataclass
class RunningStats:
    """Errors are mean square differences over the targets, in scaled units, older ones fading away."""

    observations: int = 0
    scored: int = 0
    alarms: int = 0
    drifts: int = 0
    bad_rows: int = 0
    gaps: int = 0
    late_rows: int = 0
    error: float = 0.0
    copy_error: float = 0.0
    weight: float = 0.0

    def score(self, error: float, copy_error: float) -> None:
        self.scored += 1
        self.error = FADING * self.error + error
        self.copy_error = FADING * self.copy_error + copy_error
        self.weight = FADING * self.weight + 1.0

    @property
    def root_mean_square(self) -> float:
        return math.sqrt(self.error / self.weight) if self.weight else math.nan

    @property
    def against_copy(self) -> float:
        """The error as a share of that of the copied last observation; below 1 is better than copying."""
        return math.sqrt(self.error / self.copy_error) if self.copy_error else math.nan

    def tree(self) -> dict[str, float]:
        return asdict(self)

    def load_tree(self, tree: Mapping[str, float]) -> None:
        for name, value in tree.items():
            setattr(self, name, value)


BARS = "▁▂▃▄▅▆▇█"
WIDTH = 20
PERIOD = 0.25


class Status(Protocol):
    def update(self, stats: RunningStats, score: float | None) -> None:
        """Take note of a block of observations and its highest anomaly score; draw if it is time."""

    def close(self) -> None: ...


class NoStatus:
    """For pipes and logs: nothing live."""

    def update(self, stats: RunningStats, score: float | None) -> None:
        pass

    def close(self) -> None:
        pass


class LiveStatus:
    """Draws on standard error, four times a second; each bar is the highest score between two drawings.

    What stays on the terminal in the end is all that there was, and the mean rate.
    """

    def __init__(self, before: int = 0) -> None:
        """`before`: observations of an earlier run, which took no time of this one."""
        from rich.console import Console
        from rich.live import Live

        self._live = Live(console=Console(stderr=True), auto_refresh=False, transient=False)
        self._live.start()
        self._highest: deque[float] = deque(maxlen=WIDTH)
        self._peak = 0.0
        self._begun = self._drawn = time.monotonic()
        self._begun_at = self._drawn_at = 0
        self._before = before
        self._stats: RunningStats | None = None

    def update(self, stats: RunningStats, score: float | None) -> None:
        if self._stats is None:
            self._stats = stats
            self._begun_at = self._drawn_at = self._before
        if score is not None and score > self._peak:
            self._peak = score
        now = time.monotonic()
        if now - self._drawn >= PERIOD:
            self._highest.append(self._peak)
            rate = (stats.observations - self._drawn_at) / (now - self._drawn)
            self._draw(stats, rate)
            self._peak, self._drawn, self._drawn_at = 0.0, now, stats.observations

    def close(self) -> None:
        if self._stats is not None:
            rate = (self._stats.observations - self._begun_at) / max(time.monotonic() - self._begun, 1e-9)
            self._draw(self._stats, rate)
        self._live.stop()

    def _draw(self, stats: RunningStats, rate: float) -> None:
        from rich.text import Text

        self._live.update(Text(describe(stats, rate, self._highest)), refresh=True)


def describe(stats: RunningStats, rate: float, scores: deque[float]) -> str:
    """
    >>> describe(RunningStats(observations=1500, alarms=2, error=1.0, copy_error=16.0), 1200.0, deque([0.0, 0.5, 1.0]))
    '1,500 rows  1,200/s  error 25 % of copy-last  surprise ▁▅█  2 alarms'
    """
    parts = [f"{stats.observations:,} rows", f"{rate:,.0f}/s"]
    if stats.copy_error:
        parts.append(f"error {100 * stats.against_copy:.0f} % of copy-last")
    parts += [f"surprise {sparkline(scores)}", f"{stats.alarms:,} alarms"]
    if stats.drifts:
        parts.append(f"{stats.drifts:,} drifts")
    if stats.bad_rows:
        parts.append(f"{stats.bad_rows:,} bad rows")
    return "  ".join(parts)


def summarise(stats: RunningStats) -> str:
    """
    >>> summarise(RunningStats(observations=1500, alarms=2, error=1.0, copy_error=16.0))
    '1,500 rows, error 25 % of copying the last row, 2 alarms'
    """
    parts = [f"{stats.observations:,} rows"]
    if stats.copy_error:
        parts.append(f"error {100 * stats.against_copy:.0f} % of copying the last row")
    parts.append(f"{stats.alarms:,} alarms")
    counts = (
        ("drifts", stats.drifts),
        ("bad rows", stats.bad_rows),
        ("gaps", stats.gaps),
        ("late rows", stats.late_rows),
    )
    return ", ".join(parts + [f"{count:,} {what}" for what, count in counts if count])


def sparkline(scores: deque[float]) -> str:
    return "".join(BARS[min(int(score * len(BARS)), len(BARS) - 1)] for score in scores)


def choose_status(quiet: bool, writes_to_stdout: bool, before: int = 0) -> Status:
    """Live on a terminal, unless the lines themselves go to it."""
    if quiet or not sys.stderr.isatty() or (writes_to_stdout and sys.stdout.isatty()):
        return NoStatus()
    return LiveStatus(before)
