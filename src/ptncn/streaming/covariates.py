"""The correction of predictions by features that are known before their targets, for many streams in slots."""

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


class Covariates:
    """A linear correction of predictions by features, for many streams in slots.

    The error that the forecast alone leaves is regressed on the level of each feature and on its change since the
    row before, by recursive least squares with forgetting. The correction is used once it has made the recent errors
    of a target smaller.
    """

    def __init__(self, features: int, width: int) -> None:
        self.features, self._width = features, width
        n = 2 * features
        self._shapes = {
            "mean": (features,),
            "variance": (features,),
            "last": (features,),
            "shown": (n,),
            "P": (n, n),
            "B": (n, width),
            "gain": (2, width),
            "count": (),
        }
        self._parts = {name: np.empty((0, *shape)) for name, shape in self._shapes.items()}

    def resize(self, slots: int) -> None:
        before = len(self._parts["count"])
        for name in self._shapes:
            grow(self._parts[name], slots)
        for slot in range(before, slots):
            self.reset(slot)

    def reset(self, slot: int) -> None:
        for values in self._parts.values():
            values[slot] = 0.0
        self._parts["P"][slot] = 100.0 * np.eye(2 * self.features)
        self._parts["variance"][slot] = 1.0
        self._parts["last"][slot] = np.nan

    def correct(self, slots: Slots, features: Vector, targets: Vector, expected: Vector) -> Vector:
        """(n, width) what is expected of targets once the features of their rows are known; then learn from them."""
        if not self.features:
            return expected
        predicted = np.empty_like(expected)
        for rows in rounds(slots):
            which = slots[rows]
            predicted[rows] = expected[rows] + self.expect(which, features[rows])
            self.learn(which, targets[rows] - expected[rows])
        return predicted

    def expect(self, slots: Slots, features: Vector) -> Vector:
        """(B, width) what (B, features) add to the prediction. Takes note of them."""
        parts = self._parts
        count = parts["count"][slots][:, None]
        mean, variance, last = (parts[name][slots] for name in ("mean", "variance", "last"))
        known = features == features
        mean = np.where((count < 1) & known, features, mean)
        shown = self._inputs(features, last, mean, variance)
        off = np.where(known, features - mean, 0.0)
        rate = 1.0 / np.minimum(count + 1.0, MEMORY)
        parts["mean"][slots] = mean + rate * off
        square = np.where(known, off * off, variance)
        parts["variance"][slots] = np.where(count < 2, np.maximum(square, 1e-12), variance + rate * (square - variance))
        parts["last"][slots] = np.where(known, features, last)
        parts["shown"][slots] = shown
        parts["count"][slots] += known.any(1)
        return self._correction(slots, shown)

    def learn(self, slots: Slots, left: Vector) -> None:
        """From (B, width) what the forecast alone left."""
        parts = self._parts
        shown = parts["shown"][slots]
        known = (left == left).all(1) & shown.any(1)
        which, z, y = slots[known], shown[known], left[known]
        if not len(which):
            return
        P, B = parts["P"][which], parts["B"][which]
        Pz = np.einsum("bij,bj->bi", P, z)
        k = Pz / (FORGETTING + np.einsum("bi,bi->b", z, Pz))[:, None]
        free = y - np.einsum("bi,biw->bw", z, B)
        plain, corrected = parts["gain"][which, 0], parts["gain"][which, 1]
        limit = 4.0 * np.sqrt(np.maximum(plain, 1e-300))
        taught = np.where(parts["count"][which][:, None] > 8, np.clip(free, -limit, limit), free)
        parts["B"][which] = B + k[:, :, None] * taught[:, None, :]
        P = (P - k[:, :, None] * Pz[:, None, :]) / FORGETTING
        parts["P"][which] = np.where((np.einsum("bii->b", P) < 1e6)[:, None, None], P, P * FORGETTING)
        rate = 0.02
        parts["gain"][which, 0] = plain + rate * (y * y - plain)
        parts["gain"][which, 1] = corrected + rate * (free * free - corrected)

    def ahead(self, slot: int, features: Vector) -> Vector | None:
        """(h, width) what (h, features) of the steps ahead add; nothing where they are not known."""
        if not self.features or np.isnan(features).all():
            return None
        parts = self._parts
        before = np.concatenate((parts["last"][slot][None], features[:-1]))
        mean, variance = parts["mean"][[slot]], parts["variance"][[slot]]
        shown = self._inputs(features, before, mean, variance)
        return self._correction(np.full(len(features), slot), shown)

    def _inputs(self, features: Vector, last: Vector, mean: Vector, variance: Vector) -> Vector:
        scale = np.sqrt(variance)
        shown = np.concatenate(((features - mean) / scale, (features - last) / scale), axis=1)
        return np.clip(np.where(shown == shown, shown, 0.0), -FAR, FAR)

    def _correction(self, slots: Slots, shown: Vector) -> Vector:
        helps = self._parts["gain"][slots, 1] < self._parts["gain"][slots, 0]
        return np.where(helps, np.einsum("bi,biw->bw", shown, self._parts["B"][slots]), 0.0)

    def state(self, slots: Sequence[int]) -> dict[str, Any]:
        return {name: values[list(slots)] for name, values in self._parts.items()} if self.features else {}

    def restore(self, slots: Sequence[int], state: Mapping[str, Any]) -> None:
        for name, values in state.items():
            self._parts[name][list(slots)] = values
