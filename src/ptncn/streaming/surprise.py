"""How surprising an observation is: its error beside the error that is usual."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from ptncn.streaming.columns import Vector
from ptncn.streaming.scaling import FIRST

TRUST = 9.0
"""A square error of more than so many usual ones counts as so many."""
LEAST = 1e-12


class Surprise:
    """½ Σ e²/v over the columns, where v is the usual square error of each column, as far as was known before.

    Measured like this a column that cannot be predicted does not drown one that can, and surprise keeps its size
    while the learner gets better: that is what lets a rank among the surprises of late be fair. v remembers about
    `memory` errors. Where a column was not observed the others stand for it.
    """

    def __init__(self, width: int, *, memory: int = 500) -> None:
        self.memory = memory
        self.usual, self._ones = np.ones(width), np.ones(width)
        self.parts = np.zeros(width)
        """(width,) what each column contributed to the last surprise; 0 where it was not observed."""
        self._count = 1

    @property
    def settled(self) -> bool:
        """Whether errors are in scales that can be trusted, so that surprises may be compared."""
        return self._count > FIRST

    def update(self, error: Vector) -> float:
        """The surprise at (width,) errors, NaN where nothing was observed; then learn from them."""
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
        self.usual, self._count = tree["usual"].numpy(), tree["count"]
