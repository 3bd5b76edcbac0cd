"""From surprise to a score whose false-alarm rate can be chosen."""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections import deque
from collections.abc import Mapping
from typing import Any

import torch

GROSS = 3.0
"""Surprise of more than so many times the threshold is hardly usual, even where tails are heavy."""
MOST_GROSS = 0.02
"""The share of gross surprises up to which they are anomalies; where there are more of them, that is how things are."""


class Calibrator:
    """Ranks each surprise among those of late: conformal p-values on a sliding window [^1].

    The score is 1 − p, where p is the share of the window, the new surprise included, that is at least as
    surprising. An alarm is a score of at least 1 − `rate`. On a stream whose surprises are exchangeable the alarm
    is false with a probability of at most `rate`, whatever their distribution, and none can come before
    1/`rate` surprises were seen.

    Gross anomalies are left out of the window, lest they hide the next and make alarms rarer than `rate`; but no more
    of them than two in a hundred, or the share `rate` if that is more. So even where the gross is usual there are no
    more than so many alarms too much.

    [^1]: Laxhammar, Falkman: Online learning and sequential anomaly detection in trajectories. IEEE TPAMI 36, 2014.

    >>> calibrator = Calibrator(rate=0.1)
    >>> scores = [calibrator.update(float(surprise)) for surprise in range(20)]
    >>> calibrator.update(5.0) < 0.5 < calibrator.update(30.0), calibrator.is_alarm(scores[-1])
    (True, True)
    """

    def __init__(self, rate: float = 0.01, *, window: int | None = None) -> None:
        if not 0 < rate < 1:
            raise ValueError(f"alarm_rate={rate!r}: a share above 0 and below 1 would be right, such as 0.01")
        self.rate = rate
        self.window = window or min(max(1000, math.ceil(10 / rate)), 20_000)
        if self.window * rate < 1:
            raise ValueError(f"alarm_rate={rate}: too rare for a window of {self.window}: 1/rate must fit in")
        self._recent: deque[float] = deque()
        self._ranked: list[float] = []
        self._left_out: deque[int] = deque()
        self._seen = 0

    def update(self, surprise: float) -> float:
        """The score of a surprise among those before it; then it joins them."""
        ranked = self._ranked
        below = bisect_left(ranked, surprise)
        score = below / (len(ranked) + 1)
        self._seen += 1
        while self._left_out and self._left_out[0] <= self._seen - self.window:
            self._left_out.popleft()
        if self.is_alarm(score) and self._is_gross(surprise):
            self._left_out.append(self._seen)
            return score
        if len(self._recent) == self.window:
            del ranked[bisect_left(ranked, self._recent.popleft())]
        self._recent.append(surprise)
        insort(ranked, surprise)
        return score

    def is_alarm(self, score: float) -> bool:
        return score >= 1 - self.rate - 1e-12

    def _is_gross(self, surprise: float) -> bool:
        ranked = self._ranked
        threshold = ranked[math.ceil((1 - self.rate) * len(ranked)) - 1]
        return surprise > GROSS * threshold and len(self._left_out) < max(self.rate, MOST_GROSS) * len(ranked)

    def tree(self) -> dict[str, Any]:
        return {
            "recent": torch.tensor(list(self._recent), dtype=torch.float64),
            "left_out": list(self._left_out),
            "seen": self._seen,
        }

    def load_tree(self, tree: Mapping[str, Any]) -> None:
        self._recent = deque(tree["recent"].tolist())
        self._ranked = sorted(self._recent)
        self._left_out = deque(tree["left_out"])
        self._seen = tree["seen"]
