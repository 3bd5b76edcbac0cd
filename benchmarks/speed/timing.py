"""Interleaved timing: many short samples of each case in turn, so that background load affects all of them alike."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

SAMPLE_SECONDS = 0.15
"""Target length of a sample: long compared with the clock's resolution and with cache effects of the previous case."""
SLOW = 2.0
"""A case whose shortest sample takes longer than this many seconds gets fewer samples."""
MIN_SAMPLES = 5
"""Samples of each case, unless they would take more than a quarter of the time budget."""


@dataclass
class Case:
    """Something that can take steps."""

    name: str
    run: Callable[[int], object]
    """Take that many steps."""
    unit: int = 1
    """Steps come in multiples of this: a whole sequence, or a whole cycle of deferred updates."""


@dataclass
class Samples:
    """Milliseconds per step, one number per sample."""

    case: Case
    steps: int
    """Steps per sample."""
    min_samples: int
    slow: bool = False
    ms: list[float] = field(default_factory=list)
    elapsed: float = 0.0

    def take(self) -> None:
        seconds = time_once(lambda: self.case.run(self.steps))
        self.ms.append(1000 * seconds / self.steps)
        self.elapsed += seconds

    def summary(self) -> dict[str, float | int]:
        low, middle, high = np.percentile(self.ms, [25, 50, 75])
        return {"ms": float(middle), "iqr": float(high - low), "samples": len(self.ms), "steps": self.steps}


def time_once(work: Callable[[], object]) -> float:
    """Seconds that one call takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def interleave(cases: Sequence[Case], budget: float, min_samples: int = MIN_SAMPLES) -> dict[str, Samples]:
    """Sample each case for about `budget` seconds in total; at least `min_samples` each, or 1 if it is very slow.

    Every case gets the same time. One whose samples take longer skips rounds, so its samples still spread over the
    whole run. Very slow cases come last and do not use the others' time.
    """
    length = min(SAMPLE_SECONDS, budget / len(cases) / min_samples)
    everything = [_warm_up(case, length, budget, min_samples) for case in cases]
    quick = [samples for samples in everything if not samples.slow]
    deadline = time.perf_counter() + budget
    share = 0.0
    while quick and (time.perf_counter() < deadline or any(len(each.ms) < each.min_samples for each in quick)):
        share += SAMPLE_SECONDS
        late = time.perf_counter() >= deadline
        for samples in quick:
            if len(samples.ms) < samples.min_samples if late else samples.elapsed <= share:
                samples.take()
    for samples in everything:
        while samples.slow and len(samples.ms) < samples.min_samples:
            samples.take()
    return {samples.case.name: samples for samples in everything}


def median_ms(cases: Sequence[Case], budget: float) -> list[float]:
    """Median milliseconds per step of each case."""
    return [samples.summary()["ms"] for samples in interleave(cases, budget).values()]


def _warm_up(case: Case, sample_seconds: float, budget: float, min_samples: int) -> Samples:
    """Take the first steps, which allocate and compile, and choose the number of steps per sample."""
    once = time_once(lambda: case.run(case.unit))
    if once < 4 * sample_seconds:
        once = time_once(lambda: case.run(case.unit))
    steps = case.unit * max(1, round(sample_seconds / max(once, 1e-9)))
    if once <= SLOW:
        return Samples(case, steps, min_samples)
    return Samples(case, steps, min(min_samples, max(1, int(budget / 4 / once))), slow=True)
