"""How much of the processor others took while something was measured."""

from __future__ import annotations

import os
import time

from ptncn.system import busy_seconds


class Company:
    """Counts from when it is made. The load average says what was before, and counts the measured threads too.

    >>> 0.0 <= Company().share() <= 1.0
    True
    """

    def __init__(self) -> None:
        self._start = time.perf_counter()
        self._busy, self._own = busy_seconds(), _own_seconds()

    def share(self) -> float:
        """Of all cores, what other processes and other guests of the machine took."""
        others = (busy_seconds() - self._busy) - (_own_seconds() - self._own)
        available = (time.perf_counter() - self._start) * (os.cpu_count() or 1)
        return min(1.0, max(0.0, others / max(available, 1e-9)))


def _own_seconds() -> float:
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system
