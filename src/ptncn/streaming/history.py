"""The last observations and what was expected of them, for a picture."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from ptncn.streaming.columns import Vector

LENGTH = 256


class History:
    """A ring of the last 256 observations and predictions, in the units of the source."""

    def __init__(self, width: int) -> None:
        self._values = np.full((LENGTH, 2, width), np.nan)
        self._count = 0

    def add(self, observed: Vector, predicted: Vector | None) -> None:
        place = self._values[self._count % LENGTH]
        place[0] = observed
        place[1] = np.nan if predicted is None else predicted
        self._count += 1

    def ordered(self) -> Vector:
        """(n, 2, width): observed and predicted, the oldest first, n at most 256."""
        if self._count < LENGTH:
            return self._values[: self._count]
        return np.roll(self._values, -(self._count % LENGTH), axis=0)

    def tree(self) -> dict[str, Any]:
        return {"values": torch.from_numpy(self._values.copy()), "count": self._count}

    def load_tree(self, tree: Mapping[str, Any]) -> None:
        self._values, self._count = tree["values"].numpy(), tree["count"]
