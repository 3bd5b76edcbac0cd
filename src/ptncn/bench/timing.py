"""Many short samples of each contestant in turn, so that whatever else the machine does hits all of them alike."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

SAMPLE_SECONDS = 0.15
"""How long a sample should take: long against the clock and against what the one before left in the caches."""
SLOW = 2.0
"""Seconds of a sample from which on fewer have to do."""
LEAST = 5
"""Samples of each contestant, unless that would take more than a quarter of the time there is."""


@dataclass
class Contestant:
    """Something that takes steps."""

    what: str
    run: Callable[[int], object]
    """Take that many steps."""
    unit: int = 1
    """Steps come in multiples of this: a whole sequence, or a whole cycle of postponed writing."""


@dataclass
class Samples:
    """Milliseconds a step, one number a sample."""

    contestant: Contestant
    steps: int
    """In a sample."""
    least: int
    slow: bool = False
    ms: list[float] = field(default_factory=list)
    spent: float = 0.0

    def take(self) -> None:
        elapsed = seconds(lambda: self.contestant.run(self.steps))
        self.ms.append(1000 * elapsed / self.steps)
        self.spent += elapsed

    def summary(self) -> dict[str, float | int]:
        low, middle, high = np.percentile(self.ms, [25, 50, 75])
        return {"ms": float(middle), "iqr": float(high - low), "samples": len(self.ms), "steps": self.steps}


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def interleave(contestants: Sequence[Contestant], budget: float, least: int = LEAST) -> dict[str, Samples]:
    """Samples of each contestant within about `budget` seconds, and at least `least` of them, or 1 if it is very slow.

    All get the same time: one whose samples take longer sits out rounds, and is spread over the whole run like the
    others. Those that are very slow come last, and take nothing from the time of the others.
    """
    length = min(SAMPLE_SECONDS, budget / len(contestants) / least)
    rounds = [_warm_up(contestant, length, budget, least) for contestant in contestants]
    quick = [each for each in rounds if not each.slow]
    deadline = time.perf_counter() + budget
    share = 0.0
    while quick and (time.perf_counter() < deadline or any(len(each.ms) < each.least for each in quick)):
        share += SAMPLE_SECONDS
        late = time.perf_counter() >= deadline
        for each in quick:
            if len(each.ms) < each.least if late else each.spent <= share:
                each.take()
    for each in rounds:
        while each.slow and len(each.ms) < each.least:
            each.take()
    return {each.contestant.what: each for each in rounds}


def _warm_up(contestant: Contestant, sample_seconds: float, budget: float, least: int) -> Samples:
    """Take the first steps, which allocate and compile, and find how many make a sample."""
    once = seconds(lambda: contestant.run(contestant.unit))
    if once < 4 * sample_seconds:
        once = seconds(lambda: contestant.run(contestant.unit))
    steps = contestant.unit * max(1, round(sample_seconds / max(once, 1e-9)))
    if once <= SLOW:
        return Samples(contestant, steps, least)
    return Samples(contestant, steps, min(least, max(1, int(budget / 4 / once))), slow=True)
