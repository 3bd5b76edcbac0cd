"""Detect a lasting change of the surprise, and react to it."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from importlib import import_module
from typing import Any, Protocol

import torch

from ptncn.learner import Learner
from ptncn.registry import unknown
from ptncn.streaming.sources import StreamError


class PageHinkley:
    """Detects a rise in the mean of a signal with the Page-Hinkley test [^1].

    Arguments:
        threshold: the cumulative excess over the mean that counts as a drift, in units of the signal's usual deviation.
        slack: the tolerated excess, in the same units.
        warmup: number of values without detection at the start and after each drift.

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
        # a value counts as at most four usual ones, so that a single spike is not a drift
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


REMEMBERED = 10_000
ACTIONS = ("report", "raise-lr", "checkpoint")


class Detector(Protocol):
    """The protocol of River's drift detectors: `update` takes a number, and `drift_detected` refers to the last one."""

    @property
    def drift_detected(self) -> bool: ...

    def update(self, x: float) -> Any: ...


class DriftListener:
    """Feeds each surprise to a detector and acts when it detects a drift.

    Arguments:
        detector: River's `ADWIN()`, our `PageHinkley()`, or any object with the same methods.
        action: "report" marks the observation; "raise-lr" also multiplies the learner's step size by `factor` for
            `steps` observations; "checkpoint" also makes `ptncn stream` write a checkpoint.

    A detector with `tree` and `load_tree` is saved with the stream. Others would need a pickle, which can execute code
    when it is loaded. Instead, they are given the last 10,000 surprises again, which is exact for up to that many rows.
    """

    def __init__(self, detector: Detector, action: str = "report", *, factor: float = 5.0, steps: int = 200) -> None:
        if action not in ACTIONS:
            raise ValueError(unknown("drift action", action, ACTIONS))
        if factor <= 0 or steps < 1:
            raise ValueError(f"factor, steps: expected a positive factor and at least one step, got {factor}, {steps}")
        self.detector, self.action, self.factor, self.steps = detector, action, factor, steps
        self._usual_lr: float | None = None
        self._left = 0
        self._remembered: deque[float] | None = None if hasattr(detector, "tree") else deque(maxlen=REMEMBERED)

    def check(self, learner: Learner) -> None:
        """Raise an error if the action needs a step size that the learner does not have."""
        if self.action == "raise-lr" and not hasattr(learner, "lr"):
            raise StreamError(f"the learner {learner.registry_name!r} has no step size `lr` to raise at a drift")

    def listen(self, surprise: float, learner: Learner) -> bool:
        """Whether a drift is detected at this surprise."""
        self._lower(learner)
        self.detector.update(surprise)
        if self._remembered is not None:
            self._remembered.append(surprise)
        drift = bool(self.detector.drift_detected)
        if drift and self.action == "raise-lr":
            self._raise(learner)
        return drift

    def tree(self) -> dict[str, Any]:
        known = self.detector.tree() if hasattr(self.detector, "tree") else None
        remembered = None if self._remembered is None else torch.tensor(list(self._remembered), dtype=torch.float64)
        return {"usual_lr": self._usual_lr, "left": self._left, "detector": known, "remembered": remembered}

    def load_tree(self, tree: Mapping[str, Any], learner: Learner) -> None:
        self._usual_lr, self._left = tree["usual_lr"], tree["left"]
        if self._left:
            learner.lr = self._usual_lr * self.factor  # type: ignore[attr-defined]
        if hasattr(self.detector, "load_tree"):
            self.detector.load_tree(tree["detector"])
            return
        for surprise in tree["remembered"].tolist():
            self.detector.update(surprise)
            assert self._remembered is not None
            self._remembered.append(surprise)

    def _raise(self, learner: Any) -> None:
        if not self._left:
            self._usual_lr = learner.lr
            learner.lr = learner.lr * self.factor
        self._left = self.steps

    def _lower(self, learner: Any) -> None:
        if self._left:
            self._left -= 1
            if not self._left:
                learner.lr = self._usual_lr


def make_listener(detector: str | None, action: str, factor: float, steps: int) -> DriftListener | None:
    """The listener for a detector by name; None without one."""
    if detector is None:
        return None
    if detector == "page-hinkley":
        return DriftListener(PageHinkley(), action, factor=factor, steps=steps)
    if detector == "adwin":
        try:
            adwin = import_module("river.drift").ADWIN()
        except ImportError as error:
            raise StreamError("--drift adwin needs River: pip install 'ptncn[river]'") from error
        return DriftListener(adwin, action, factor=factor, steps=steps)
    raise ValueError(unknown("drift detector", detector, ("page-hinkley", "adwin")))
