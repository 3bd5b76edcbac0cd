"""The last observations and what was expected of them, for a picture."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from ptncn.streaming.columns import Vector

LENGTH = 256


class History:
    """The last 256 observations and predictions, in the units of the source."""

    def __init__(self, width: int) -> None:
        self._nothing = np.full(width, np.nan)
        self._pairs: deque[tuple[Vector, Vector]] = deque(maxlen=LENGTH)

    def add(self, observed: Vector, predicted: Vector | None) -> None:
        self._pairs.append((observed, self._nothing if predicted is None else predicted))

    def ordered(self) -> Vector:
        """(n, 2, width): observed and predicted, the oldest first, n at most 256."""
        return np.array(self._pairs).reshape(-1, 2, len(self._nothing))

    def tree(self) -> Mapping[str, Any]:
        return {"pairs": torch.from_numpy(self.ordered())}

    def load_tree(self, tree: Mapping[str, Any]) -> None:
        self._pairs.clear()
        self._pairs.extend((observed, predicted) for observed, predicted in tree["pairs"].numpy())
