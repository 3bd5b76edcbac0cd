"""Anomaly scores and alarms of many streams, from their surprises."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptncn.streaming.calibration import Calibrator
from ptncn.streaming.columns import Vector

Slots = NDArray[np.int64]


class RankAnomaly:
    """Ranks each surprise among the recent ones of its stream, see `Calibrator`."""

    def __init__(self, rate: float) -> None:
        self.rate = rate
        self._calibrators: list[Calibrator | None] = []

    def resize(self, slots: int) -> None:
        self._calibrators += [None] * (slots - len(self._calibrators))

    def reset(self, slot: int) -> None:
        self._calibrators[slot] = Calibrator(self.rate)

    def observe(self, slots: Slots, surprise: Vector) -> tuple[Vector, NDArray[np.bool_], Vector]:
        """(B,) the anomaly score of each surprise, whether it is an alarm, and its severity."""
        scores = []
        for slot, value in zip(slots.tolist(), surprise.tolist(), strict=True):
            scores.append(self._calibrator(slot).update(value))
        anomaly = np.where(surprise > 0, scores, 0.0)
        alarm = (anomaly >= 1 - self.rate - 1e-12) & (surprise > 0)
        return anomaly, alarm, np.where(alarm, anomaly, 0.0)

    def _calibrator(self, slot: int) -> Calibrator:
        calibrator = self._calibrators[slot]
        assert calibrator is not None
        return calibrator

    def state(self, slots: Sequence[int]) -> dict[str, Any]:
        return {"calibrators": [self._calibrator(slot).tree() for slot in slots]}

    def restore(self, slots: Sequence[int], state: Mapping[str, Any]) -> None:
        for slot, tree in zip(slots, state["calibrators"], strict=True):
            self.reset(slot)
            self._calibrator(slot).load_tree(tree)
