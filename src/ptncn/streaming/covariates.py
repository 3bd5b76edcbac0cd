"""Correct forecasts by features that are known before their targets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ptncn.streaming.bank import Slots, rounds
from ptncn.streaming.columns import Vector
from ptncn.streaming.storage import grow

FORGETTING = 0.999
MEMORY = 500
FAR = 6.0
PRIOR = 100.0


class Covariates:
    """A linear correction of forecasts by features, for many streams in slots.

    For each horizon, the error of the forecast is regressed on the level of each feature and on its change since the
    forecast was made, by recursive least squares with forgetting. The correction is applied once it has reduced the
    recent errors of a target.
    """

    def __init__(self, features: int, width: int, horizon: int) -> None:
        self.features, self._horizon = features, horizon
        n = 2 * features
        shapes = {
            "mean": (features,),
            "variance": (features,),
            "past": (horizon, features),
            "made": (horizon, width, horizon),
            "P": (horizon, n, n),
            "B": (horizon, n, width),
            "gain": (horizon, 2, width),
            "seen": (),
            "count": (),
        }
        self._parts = {name: np.empty((0, *shape)) for name, shape in shapes.items()}

    def resize(self, slots: int) -> None:
        if not self.features:
            return
        before = len(self._parts["count"])
        for values in self._parts.values():
            grow(values, slots)
        for slot in range(before, slots):
            self.reset(slot)

    def reset(self, slot: int) -> None:
        if not self.features:
            return
        for values in self._parts.values():
            values[slot] = 0.0
        self._parts["P"][slot] = PRIOR * np.eye(2 * self.features)
        self._parts["variance"][slot] = 1.0
        self._parts["past"][slot] = self._parts["made"][slot] = np.nan

    def correct(self, slots: Slots, features: Vector, targets: Vector, expected: Vector, ahead: Vector) -> Vector:
        """Correct (n, width) predictions using the features of their rows, then learn from the targets.

        Arguments:
            ahead: (n, width, horizon) the forecasts made after each row.
        """
        if not self.features:
            return expected
        predicted = np.empty_like(expected)
        for rows in rounds(slots):
            which = slots[rows]
            shown = self._take(which, features[rows])
            predicted[rows] = expected[rows] + self._correction(which, shown[:, :1])[:, 0]
            self._learn(which, shown, targets[rows])
            self._keep(which, features[rows], ahead[rows])
        return predicted

    def ahead(self, slot: int, features: Vector) -> Vector | None:
        """(h, width) the corrections from the (h, features) of the steps ahead; 0 if the features are unknown."""
        if not self.features or np.isnan(features).all():
            return None
        parts = self._parts
        last = parts["past"][slot, int(parts["seen"][slot] - 1) % self._horizon]
        shown = self._inputs(features, last, parts["mean"][slot], parts["variance"][slot])
        horizons = np.minimum(np.arange(len(features)), self._horizon - 1)
        weights, (plain, corrected) = parts["B"][slot, horizons], np.moveaxis(parts["gain"][slot, horizons], 1, 0)
        return np.where(corrected < plain, np.einsum("hi,hiw->hw", shown, weights), 0.0)

    def _take(self, slots: Slots, features: Vector) -> Vector:
        """(B, horizon, inputs) from (B, features), relative to those known one and more steps before."""
        parts = self._parts
        count = parts["count"][slots][:, None]
        mean, variance = parts["mean"][slots], parts["variance"][slots]
        known = features == features
        mean = np.where((count < 1) & known, features, mean)
        before = self._before("past", slots)
        shown = self._inputs(features[:, None], before, mean[:, None], variance[:, None])
        off = np.where(known, features - mean, 0.0)
        rate = 1.0 / np.minimum(count + 1.0, MEMORY)
        parts["mean"][slots] = mean + rate * off
        square = np.where(known, off * off, variance)
        parts["variance"][slots] = np.where(count < 2, np.maximum(square, 1e-12), variance + rate * (square - variance))
        parts["count"][slots] += known.any(1)
        return shown

    def _before(self, name: str, slots: Slots) -> Vector:
        """(B, horizon, …) the entries stored one, two and more rows ago."""
        back = (self._parts["seen"][slots].astype(np.int64)[:, None] - 1 - np.arange(self._horizon)) % self._horizon
        kept: Vector = self._parts[name][slots[:, None], back]
        return kept

    def _keep(self, slots: Slots, features: Vector, ahead: Vector) -> None:
        parts, seen = self._parts, self._parts["seen"][slots].astype(np.int64)
        last = parts["past"][slots, (seen - 1) % self._horizon]
        parts["past"][slots, seen % self._horizon] = np.where(features == features, features, last)
        parts["made"][slots, seen % self._horizon] = ahead
        parts["seen"][slots] += 1

    def _learn(self, slots: Slots, shown: Vector, targets: Vector) -> None:
        """Learn from the errors of the forecasts for (B, width) targets that were made one and more rows ago."""
        parts, each = self._parts, np.arange(self._horizon)
        left = targets[:, None] - self._before("made", slots)[:, each, :, each].swapaxes(0, 1)  # (B, horizon, width)
        row, h = np.nonzero((left == left).all(2) & shown.any(2))
        if not len(row):
            return
        at, z, y = (slots[row], h), shown[row, h], left[row, h]
        P, B = parts["P"][at], parts["B"][at]
        Pz = np.einsum("bij,bj->bi", P, z)
        k = Pz / (FORGETTING + np.einsum("bi,bi->b", z, Pz))[:, None]
        free = y - np.einsum("bi,biw->bw", z, B)
        plain, corrected = parts["gain"][at][:, 0], parts["gain"][at][:, 1]
        limit = 4.0 * np.sqrt(np.maximum(plain, 1e-300))
        taught = np.where((parts["count"][at[0]] > 8 + h)[:, None], np.clip(free, -limit, limit), free)
        parts["B"][at] = B + k[:, :, None] * taught[:, None, :]
        P = (P - k[:, :, None] * Pz[:, None, :]) / FORGETTING
        parts["P"][at] = np.where((np.einsum("bii->b", P) < 1e6)[:, None, None], P, P * FORGETTING)
        rate = 0.02
        parts["gain"][at] = np.stack(
            (plain + rate * (y * y - plain), corrected + rate * (free * free - corrected)), axis=1
        )

    def _inputs(self, features: Vector, before: Vector, mean: Vector, variance: Vector) -> Vector:
        """Scaled levels and changes since `before`; 0 if unknown."""
        scale = np.sqrt(variance)
        shown = np.concatenate(np.broadcast_arrays((features - mean) / scale, (features - before) / scale), axis=-1)
        return np.clip(np.where(shown == shown, shown, 0.0), -FAR, FAR)

    def _correction(self, slots: Slots, shown: Vector) -> Vector:
        """(B, h, width) the corrections at the first h horizons."""
        h = shown.shape[1]
        gain = self._parts["gain"][slots, :h]
        helps = gain[:, :, 1] < gain[:, :, 0]
        return np.where(helps, np.einsum("bhi,bhiw->bhw", shown, self._parts["B"][slots, :h]), 0.0)

    def state(self, slots: Sequence[int]) -> dict[str, Any]:
        return {name: values[list(slots)] for name, values in self._parts.items()} if self.features else {}

    def restore(self, slots: Sequence[int], state: Mapping[str, Any]) -> None:
        """A stream with another horizon starts over."""
        if state and state["made"].shape[1] != self._horizon:
            for slot in slots:
                self.reset(slot)
            return
        for name, values in state.items():
            self._parts[name][list(slots)] = values
