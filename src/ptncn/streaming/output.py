"""The output of a stream (a file that resumes at a checkpoint, or standard output) and its status line."""

from __future__ import annotations

import os
import stat
import sys
import time
from collections import deque
from typing import Protocol

from ptncn.streaming.errors import OutputError, StreamError
from ptncn.streaming.results import RunningStats

BATCH = 1 << 16


class Output:
    """Collects lines and writes them in batches. `length` counts the bytes that were really written.

    Arguments:
        path: None is standard output.
        resume_at: continue an existing file after this many bytes, and drop the rest.
    """

    def __init__(self, path: str | None, *, resume_at: int | None = None) -> None:
        self.name = path or "standard output"
        self.length = resume_at or 0
        self._pending: list[str] = []
        self._size = 0
        self._owned = path is not None
        try:
            self._descriptor = self._open(path, resume_at)
        except OSError as error:
            raise StreamError(f"{self.name}: cannot be written: {error.strerror}") from error
        self._regular = stat.S_ISREG(os.fstat(self._descriptor).st_mode)

    def write(self, line: str) -> None:
        self._pending.append(line)
        self._size += len(line)
        if self._size >= BATCH:
            self.flush()

    def flush(self) -> None:
        """Hand everything to the system; an error leaves `length` at what was taken."""
        data = memoryview("".join(self._pending).encode())
        self._pending, self._size = [], 0
        while data:
            try:
                written = os.write(self._descriptor, data)
            except BrokenPipeError:
                raise
            except OSError as error:
                raise OutputError(f"{self.name}: cannot be written: {error.strerror}") from error
            self.length += written
            data = data[written:]

    def sync(self) -> None:
        """Flush, and wait until it is on the disk."""
        self.flush()
        if self._regular:
            os.fsync(self._descriptor)

    def close(self) -> None:
        if self._owned:
            os.close(self._descriptor)

    def _open(self, path: str | None, resume_at: int | None) -> int:
        if path is None:
            sys.stdout.flush()
            return sys.stdout.fileno()
        if resume_at is None:
            return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT, 0o644)
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            size = os.fstat(descriptor).st_size
            if size < resume_at:
                os.close(descriptor)
                raise StreamError(
                    f"{path}: {size:,} bytes; the checkpoint was made after {resume_at:,}: the file was cut or replaced"
                )
            os.ftruncate(descriptor, resume_at)
            os.lseek(descriptor, resume_at, os.SEEK_SET)
        return descriptor


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
