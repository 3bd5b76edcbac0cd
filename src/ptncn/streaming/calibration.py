"""Turn surprises into scores with a chosen false-alarm rate."""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections import deque
from collections.abc import Mapping
from typing import Any

import torch

from ptncn.checkpoint import check_count

BULK = (0.1, 0.02)
"""The tail is fitted at the quantiles exceeded by these shares of the window; a few anomalies hardly move them."""
GROSS = 0.2
"""A surprise is gross if a power-law tail gives larger ones a probability below this share of the alarm rate."""
FAR = 3.0
"""A surprise is also gross if it exceeds the alarm threshold by this factor, which matters for heavy tails."""
ECHO = 5
"""Number of observations left out, beginning with a gross one."""
MOST_GROSS = 0.02
"""Gross surprises count as anomalies up to this share of all surprises, and as normal beyond it."""


class Calibrator:
    """Ranks each surprise among recent ones: conformal p-values on a sliding window [^1].

    The score is 1 − p, where p is the share of the window, including the new surprise, that is at least as surprising.
    An alarm is a score of at least 1 − `rate`. If surprises are exchangeable, the false-alarm rate is at most `rate`,
    whatever their distribution, and there is no alarm before 1/`rate` surprises.

    Gross anomalies and the rows after them are left out of the window: they would hide the next anomaly and make alarms
    rarer than `rate`. Which ones are gross follows from the bulk of the surprises, extrapolated by a Pareto tail [^2],
    so that large anomalies do not affect it. At most two in a hundred are left out, or the share `rate` if that is
    larger; this also limits the number of excess alarms if gross surprises are common.

    Until the window is full it holds the later half of the surprises, because an untrained learner is surprised by
    everything.

    [^1]: Laxhammar, Falkman: Online learning and sequential anomaly detection in trajectories. IEEE TPAMI 36, 2014.
    [^2]: Weissman: Estimation of parameters and large quantiles based on the k largest observations. JASA 73, 1978.

    >>> calibrator = Calibrator(rate=0.1)
    >>> scores = [calibrator.update(float(surprise)) for surprise in range(20)]
    >>> calibrator.update(5.0) < 0.5 < calibrator.update(30.0), calibrator.is_alarm(scores[-1])
    (True, True)
    """

    def __init__(self, rate: float = 0.01, *, window: int | None = None) -> None:
        if not 0 < rate < 1:
            raise ValueError(f"alarm_rate: expected a share above 0 and below 1, got {rate!r}")
        self.rate = rate
        self.window = window or min(max(1000, math.ceil(10 / rate)), 20_000)
        if self.window * rate < 1:
            raise ValueError(f"alarm_rate={rate}: too rare for a window of {self.window}: 1/rate must fit in")
        self._recent: deque[float] = deque()
        self._ranked: list[float] = []
        self._left_out: deque[int] = deque()
        self._seen = 0
        self._echo = 0

    def rank(self, surprise: float) -> float:
        """The score of a surprise among earlier ones."""
        return bisect_left(self._ranked, surprise) / (len(self._ranked) + 1)

    def update(self, surprise: float) -> float:
        """The score of a surprise among earlier ones, which it then joins."""
        ranked, score = self._ranked, self.rank(surprise)
        self._seen += 1
        while self._left_out and self._left_out[0] <= self._seen - self.window:
            self._left_out.popleft()
        gross = self.is_alarm(score) and self._is_gross(surprise)
        self._echo = ECHO if gross else max(0, self._echo - 1)
        if self._echo and len(self._left_out) < max(self.rate, MOST_GROSS) * len(ranked):
            self._left_out.append(self._seen)
            return score
        if len(self._recent) >= min(self.window, max(2 / self.rate, self._seen / 2)):
            del ranked[bisect_left(ranked, self._recent.popleft())]
        self._recent.append(surprise)
        insort(ranked, surprise)
        return score

    def is_alarm(self, score: float) -> bool:
        return score >= 1 - self.rate - 1e-12

    def _is_gross(self, surprise: float) -> bool:
        """Whether a surprise exceeds q(p) = q(b) (b/p)^ξ at p = GROSS · rate, with ξ from two quantiles of the bulk."""
        count = len(self._ranked) + len(self._left_out)
        near, far = (self._ranked[min(math.ceil((1 - b) * count), len(self._ranked)) - 1] for b in BULK)
        if near <= 0:
            return False
        xi = math.log(far / near) / math.log(BULK[0] / BULK[1])
        threshold = self._ranked[math.ceil((1 - self.rate) * len(self._ranked)) - 1]
        return surprise > min(near * math.pow(BULK[0] / (GROSS * self.rate), xi), FAR * threshold)

    def tree(self) -> dict[str, Any]:
        return {
            "recent": torch.tensor(list(self._recent), dtype=torch.float64),
            "left_out": list(self._left_out),
            "seen": self._seen,
            "echo": self._echo,
        }

    def load_tree(self, tree: Mapping[str, Any]) -> None:
        self._recent = deque(tree["recent"].tolist())
        self._ranked = sorted(self._recent)
        self._left_out = deque(tree["left_out"])
        self._seen = check_count(tree["seen"], "calibrator.seen")
        self._echo = check_count(tree["echo"], "calibrator.echo")
