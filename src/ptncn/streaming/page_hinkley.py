"""A drift detector that needs nothing else, and whose memory is a handful of numbers."""

from __future__ import annotations

from collections.abc import Mapping


class PageHinkley:
    """Detects that the mean of a signal has risen, by the test of Page and Hinkley [^1].

    Arguments:
        threshold: how large the sum of the excess over the mean may grow, in usual deviations of the signal.
        slack: the part of an excess, in usual deviations, that is let pass.
        warmup: values to see before anything is detected, at the beginning and after each drift.

    [^1]: Page: Continuous inspection schemes. Biometrika 41, 1954.

    >>> detector = PageHinkley()
    >>> signal = [1.0, 1.2] * 100 + [3.0, 3.2] * 20
    >>> drifts = [detector.update(value).drift_detected for value in signal]
    >>> 200 < drifts.index(True) < 210
    True
    """

    def __init__(self, threshold: float = 30.0, slack: float = 0.5, warmup: int = 100) -> None:
        self.threshold, self.slack, self.warmup = threshold, slack, warmup
        self.drift_detected = False
        self._count, self._mean, self._deviation, self._sum = 0, 0.0, 0.0, 0.0

    def update(self, x: float) -> PageHinkley:
        self._count += 1
        rate = 1.0 / self._count
        off = x - self._mean
        usual = self._deviation or abs(off) or 1.0
        # a value counts at most as four usual ones, so that a single spike is no drift
        excess = min(off / usual, 4.0) - self.slack
        self._mean += rate * off
        self._deviation += rate * (abs(off) - self._deviation)
        self.drift_detected = False
        if self._count > self.warmup:
            self._sum = max(0.0, self._sum + excess)
            if self._sum > self.threshold:
                self._count, self._mean, self._deviation, self._sum = 0, 0.0, 0.0, 0.0
                self.drift_detected = True
        return self

    def tree(self) -> dict[str, float]:
        return {"count": self._count, "mean": self._mean, "deviation": self._deviation, "sum": self._sum}

    def load_tree(self, tree: Mapping[str, float]) -> None:
        self._count, self._mean = int(tree["count"]), tree["mean"]
        self._deviation, self._sum = tree["deviation"], tree["sum"]
