"""Settings, and the state of a stream as one row of float64, the same for the reference and the kernel."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

PAST = 6
"""Number of strength classes by which past events are counted."""
EVENTS = ("point", "burst", "high", "low", "quiet", "range")
"""Kinds of events; each event is compared with earlier ones of the same kind."""
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
"""The state of each column."""


@dataclass(frozen=True)
class AnomalySetting:
    """Fixed defaults for all streams, chosen on planted anomalies: see `benchmarks/anomalies.py`."""

    columns: int = 1
    hold: int = 100
    """Rows after a peak in which only a worse row is a new event."""
    share: float = 0.1
    """Tails begin at the quantile that this share of the rows exceeds."""
    cap: float = 5.0
    """Errors are clipped at this multiple of the usual error, for the usual error and for bursts."""
    memory: float = 1000.0
    """Memory of the usual error, in rows."""
    window: float = 10.0
    """Length of a burst, in rows."""
    quiet: float = 20.0
    """Rows over which a value that hardly moves is detected."""
    level: float = 40.0
    """Rows over which a long-term level is measured."""
    brief: float = 5.0
    """Rows over which a short-term level is measured."""
    bulk: float = 10_000.0
    """Memory of tails and event counts, in rows."""
    fade: float = 0.96
    """Decay of a peak per row, after `hold` rows."""
    worse: float = 0.2
    """A row is much worse than a peak if it exceeds its nines by this share."""
    repeat: float = 1.0
    """Discount of recurring events: nines less for ten times as many earlier events of the same kind."""
    single: float = 0.5
    """Discount of a single surprise in nines, because one-row spikes are usual in many streams."""
    level_weight: float = 1.0
    quiet_weight: float = 1.0
    rate: float = 0.01
    """Alarms per row."""
    step: float = 0.1
    """How far an alarm raises the threshold, in nines."""
    haste: float = 0.0005
    """Additional rise, divided by the rate: rare alarms must move the threshold farther to become rare soon enough."""
    events: int = 1
    """1: one alarm per event, and another if it lasts longer than 1 / rate rows; 0: one for each row."""

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
