"""The last observations and what was expected of them, for a picture."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ptncn.streaming.columns import Vector

LENGTH = 256


class History:
    """The last 256 observations and predictions, in the units of the source."""

    def __init__(self, width: int) -> None:
        self.pairs = np.empty((0, 2, width))
        """(n, 2, width): observed and predicted, the oldest first."""

    def add(self, observed: Vector, predicted: Vector) -> None:
        """Take (n, width) rows."""
        new = np.stack((observed, predicted), axis=1)
        self.pairs = np.concatenate((self.pairs, new))[-LENGTH:] if len(new) < LENGTH else new[-LENGTH:]

    def tree(self) -> dict[str, Any]:
        return {"pairs": self.pairs}

    def load_tree(self, tree: Mapping[str, Any]) -> None:
        self.pairs = np.asarray(tree["pairs"])
