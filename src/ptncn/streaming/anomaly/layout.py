"""Settings and the state of a stream: one row of float64 a stream, the same for the reference and the kernel."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

PAST = 6
"""Steps of strength by which past events are counted."""
EVENTS = ("point", "burst", "high", "low", "quiet", "range")
"""Kinds of events: each is compared with those of its own kind before."""
ALARM = ("count", "bar", "left", "threshold", "active", "budget", "since")
KEPT = ("bar", "left", *(f"past {k}" for k in range(PAST)))
COMMON = (*ALARM, *(f"{kind} {part}" for kind in EVENTS for part in KEPT))
TAILS = ("point", "burst", "lean", "level high", "level low", "brief high", "brief low", "quiet")
PARTS = ("quantile", "excess", "number", "spread")
SUMS = (
    *("seen", "largest", "least", "most", "usual", "burst", "lean", "last"),
    *("moves", "usual moves", "busy", "level", "brief", "mean", "variance"),
)
OWN = (*SUMS, *(f"{tail} {part}" for tail in TAILS for part in PARTS))
"""What each column keeps."""


@dataclass(frozen=True)
class AnomalySetting:
    """One fixed default for all streams, chosen on planted anomalies: see `benchmarks/anomalies.py`."""

    columns: int = 1
    hold: int = 100
    """Rows after a peak in which only what is worse is an event."""
    share: float = 0.1
    """Tails begin at the quantile that this share of the rows exceeds."""
    cap: float = 5.0
    """An error of more than so many usual ones counts as so many for what is usual, and for bursts."""
    memory: float = 1000.0
    """Rows that the usual error remembers."""
    window: float = 10.0
    """Rows of a burst."""
    quiet: float = 20.0
    """Rows in which a value that hardly moves is noticed."""
    level: float = 40.0
    """Rows over which a level is measured."""
    brief: float = 5.0
    """Rows over which a brief one is measured."""
    bulk: float = 10_000.0
    """Rows that tails and counts of events remember."""
    fade: float = 0.96
    """What a row leaves of a peak, after `hold` rows."""
    worse: float = 0.2
    """By this share of its nines."""
    repeat: float = 1.0
    """How much less an event counts that is like others of its kind before: so many nines for ten times as many."""
    single: float = 0.5
    """How many nines less a single surprise counts: in many streams, spikes of one row are usual."""
    level_weight: float = 1.0
    quiet_weight: float = 1.0
    rate: float = 0.01
    """Alarms a row."""
    step: float = 0.1
    """How far an alarm moves the threshold, in nines."""
    haste: float = 0.0005
    """How much farther, over the rate: rare alarms must count for more, or there are too many before they are rare."""
    events: int = 1
    """1: an alarm is raised once for an event, and again where it lasts longer than 1 / rate rows; 0: for each row."""

    def __post_init__(self) -> None:
        if not 0 < self.rate < 1:
            raise ValueError(f"alarm_rate: expected a share above 0 and below 1, such as 0.01, got {self.rate!r}")
        if self.columns < 1:
            raise ValueError(f"columns: expected a positive integer, got {self.columns!r}")


def width(setting: AnomalySetting) -> int:
    """Numbers in the state of a stream."""
    return len(COMMON) + setting.columns * len(OWN)


def split(state: Array, setting: AnomalySetting) -> tuple[Array, Array]:
    """(B, COMMON) and (B, C, OWN) views of (B, width) state."""
    return state[:, : len(COMMON)], state[:, len(COMMON) :].reshape(len(state), setting.columns, len(OWN))
