"""How much of the processor others took while something was measured."""

from __future__ import annotations

import os
import time
from pathlib import Path

STAT = Path("/proc/stat")


class Company:
    """Counts from when it is made. The load average says what was before, and counts the measured threads too.

    >>> 0.0 <= (Company().share() or 0.0) <= 1.0
    True
    """

    def __init__(self) -> None:
        self._start = time.perf_counter()
        self._busy, self._own = _busy_seconds(), _own_seconds()

    def share(self) -> float | None:
        """Of all cores, what other processes and other guests of the machine took; None where nobody knows."""
        busy = _busy_seconds()
        if busy is None or self._busy is None:
            return None
        others = (busy - self._busy) - (_own_seconds() - self._own)
        available = (time.perf_counter() - self._start) * (os.cpu_count() or 1)
        return min(1.0, max(0.0, others / max(available, 1e-9)))


def _busy_seconds() -> float | None:
    """Of all cores since the system started: everything but idling and waiting for disks."""
    if not STAT.exists():
        return None
    ticks = [int(number) for number in STAT.read_text().split("\n", 1)[0].split()[1:9]]
    return (sum(ticks) - ticks[3] - ticks[4]) / os.sysconf("SC_CLK_TCK")


def _own_seconds() -> float:
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system
