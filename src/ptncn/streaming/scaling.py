"""Robust online scaling, and surprise: errors relative to their usual size."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ptncn.checkpoint import check_count
from ptncn.streaming.columns import Vector

FIRST = 32
"""Number of values for the first estimate of a column's scale, and for a new estimate after a lasting change."""
FAR = 6.0
"""Values are clipped at this many scales. Fewer than one such value in FAR² hardly matters; if there are more, they are
part of the distribution."""
LEAST = 1e-12
"""The scale of a column that has never changed."""


def are_ordinary(off: Vector) -> bool:
    """Whether no scaled value is missing or clipped."""
    return off.dot(off) < FAR * FAR or bool(np.abs(off).max(initial=0.0) < FAR)


class RobustScaler:
    """Scales each column to location 0 and scale 1, based on earlier rows.

    Location and scale start as the median and the median absolute deviation of the first 32 values. From then on mean
    and variance follow with a memory of `memory` values, each clipped at six scales [^1]. After 32 clipped values in a
    row, both are estimated again from these. Memory is constant, and the same values give the same numbers.

    [^1]: Huber: Robust estimation of a location parameter. Annals of Mathematical Statistics 35, 1964.

    >>> scaler = RobustScaler(1)
    >>> for value in (1.0, 2.0, 3.0):
    ...     scaler.update(np.array([value]))
    >>> scaler.transform(np.array([2.0])), scaler.inverse(np.array([0.0]))
    (array([0.]), array([2.]))
    """

    def __init__(self, width: int, *, memory: int = 5000, unscaled: NDArray[np.bool_] | None = None) -> None:
        if memory < FIRST:
            raise ValueError(f"memory: expected at least {FIRST} values, got {memory}")
        self.memory = memory
        self.mean, self.scale = np.zeros(width), np.ones(width)
        self.count = np.zeros(width, dtype=np.int64)
        self._scaled = np.ones(width, dtype=bool) if unscaled is None else ~unscaled
        self._weight, self._least = self._scaled.astype(np.float64), np.full(width, LEAST)
        self._recent = np.zeros((FIRST, width))
        self._far = np.zeros(width, dtype=np.int64)
        self._refresh()

    def init_location(self, values: Vector) -> NDArray[np.bool_] | None:
        """Use the first value of a column as its location; returns (width,) the columns where this was done, or None.

        A prediction of such a value must not use this location, which was not known before.
        """
        if self._grown:
            return None
        new = self._scaled & (self.count == 0) & (values == values)
        self.mean[new] = values[new]
        return new if new.any() else None

    @property
    def is_known(self) -> NDArray[np.bool_]:
        """(width,) whether each column has a scale, because it was observed or needs none."""
        known: NDArray[np.bool_] = (self.count > 0) | ~self._scaled
        return known

    def transform(self, values: Vector) -> Vector:
        result: Vector = (values - self.mean) / self.scale
        return result

    def inverse(self, scaled: Vector) -> Vector:
        result: Vector = scaled * self.scale + self.mean
        return result

    def update(self, values: Vector) -> None:
        """Learn from (width,) values; NaN is ignored."""
        off = self.transform(values)
        self.update_scaled(values, off, are_ordinary(off))

    def update_scaled(self, values: Vector, off: Vector, ordinary: bool) -> None:
        """The same, given the results of `transform` and `are_ordinary`."""
        fast = ordinary and self._grown
        if fast:
            rate = self._full_rate if self._rows_to_full <= 0 else self._count_all()
        else:
            rate = self._count_observed(values, off)
            off = np.where(np.isnan(off), 0.0, np.clip(off, -FAR, FAR))
        self.mean += rate * self.scale * off
        self.scale *= np.sqrt(off * off * rate + (1.0 - rate))
        np.maximum(self.scale, self._least, out=self.scale)
        if not fast:
            self._estimate_again()

    def _count_all(self) -> Vector:
        """The rates for a complete row."""
        self.count += 1
        self._rows_to_full -= 1
        rate: Vector = self._weight / np.minimum(self.count, self.memory)
        return rate

    def _count_observed(self, values: Vector, off: Vector) -> Vector:
        """The rates for any other row; new and clipped values are stored for a new estimate."""
        seen = self._scaled & (values == values)
        self.count[seen] += 1
        young = seen & (self.count <= FIRST)
        far = seen & ~young & (np.abs(off) >= FAR)
        self._far = np.where(far, self._far + 1, np.where(seen, 0, self._far))
        for column in np.flatnonzero(young | far).tolist():
            place = self.count[column] if young[column] else self._far[column]
            self._recent[(place - 1) % FIRST, column] = values[column]
        return np.where(seen, 1.0 / np.clip(self.count, 1, self.memory), 0.0)

    def _estimate_again(self) -> None:
        young = self._scaled & (self.count > 0) & (self.count <= FIRST)
        for column in np.flatnonzero(young).tolist():
            self._estimate(column, int(self.count[column]), LEAST)
        for column in np.flatnonzero(self._far == FIRST).tolist():
            self._estimate(column, FIRST, float(self.scale[column]))
            self.count[column], self._far[column] = FIRST + 1, 0
        self._refresh()

    def _estimate(self, column: int, count: int, least: float) -> None:
        """Location and scale of the stored values; the scale is at least `least`."""
        kept = self._recent[:count, column]
        middle = float(np.median(kept))
        spread = 1.4826 * float(np.median(np.abs(kept - middle))) or float(kept.std())
        if count == 1:
            spread = abs(middle) or 1.0
        self.mean[column], self.scale[column] = middle, max(spread, least)

    def _refresh(self) -> None:
        """Choose the code path: fast if no column is new or clipped, and faster still once all memories are full."""
        least = int(self.count[self._scaled].min(initial=self.memory))
        self._grown = least > FIRST and not self._far.any()
        self._rows_to_full = self.memory - least
        self._full_rate = self._weight / self.memory

    def tree(self) -> dict[str, Any]:
        arrays = {
            "mean": self.mean,
            "scale": self.scale,
            "count": self.count,
            "far": self._far,
            "judged": self._recent,
        }
        return {name: torch.from_numpy(array.copy()) for name, array in arrays.items()}

    def load_tree(self, tree: Mapping[str, Any]) -> None:
        self.mean, self.scale = tree["mean"].numpy(), tree["scale"].numpy()
        self.count, self._far = tree["count"].numpy(), tree["far"].numpy()
        self._recent = tree["judged"].numpy()
        self._refresh()


TRUST = 9.0
"""Squared errors are clipped at this multiple of the usual one."""


class Surprise:
    """½ Σ e²/v over the columns, where v is the usual squared error of each column in earlier rows.

    Dividing by v keeps an unpredictable column from hiding a predictable one. It also keeps the size of surprises
    constant while the learner improves, so that recent surprises are comparable. v has a memory of about `memory`
    errors. If a column was not observed, the sum over the others is scaled up.
    """

    def __init__(self, width: int, *, memory: int = 500) -> None:
        self.memory = memory
        self.usual, self._ones = np.ones(width), np.ones(width)
        self.parts = np.zeros(width)
        """(width,) the contribution of each column to the last surprise; 0 if it was not observed."""
        self._count = 1

    @property
    def settled(self) -> bool:
        """Whether the scales of the errors are reliable, so that surprises are comparable."""
        return self._count > FIRST

    def update(self, error: Vector) -> float:
        """The surprise of (width,) errors, NaN if not observed; then update the usual errors."""
        ratio = error * error / self.usual
        surprise = 0.5 * float(ratio.dot(self._ones))
        self.parts = 0.5 * ratio
        if surprise != surprise:
            seen = ratio == ratio
            observed = int(np.count_nonzero(seen))
            if not observed:
                return surprise
            surprise = 0.5 * float(ratio[seen].sum()) * len(ratio) / observed
            self.parts = np.where(seen, self.parts, 0.0)
            ratio[~seen] = 1.0
        self._count += 1
        rate = max(1.0 / self._count, 1.0 / self.memory)
        self.usual *= np.minimum(ratio, TRUST, out=ratio) * rate + (1.0 - rate)
        np.maximum(self.usual, LEAST, out=self.usual)
        return surprise

    def tree(self) -> dict[str, Any]:
        return {"usual": torch.from_numpy(self.usual.copy()), "count": self._count}

    def load_tree(self, tree: Mapping[str, Any]) -> None:
        usual, self._count = tree["usual"].numpy(), check_count(tree["count"], "surprise.count")
        if usual.shape != self.usual.shape or usual.dtype != self.usual.dtype:
            raise ValueError(f"usual: expected {self.usual.shape}, got {usual.shape} of {usual.dtype}")
        self.usual = usual
