"""The state of many streams as the rows of one array, as the kernels take it."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class StateRows:
    """Saves and restores (streams, width) `state`, or one row of it."""

    state: Array

    def tree(self, row: int | None = None) -> dict[str, Array]:
        """Everything that the streams, or one of them, have learnt."""
        return {"state": (self.state if row is None else self.state[row : row + 1]).copy()}

    def load_tree(self, tree: Mapping[str, Array], row: int | None = None) -> None:
        state = np.asarray(tree["state"], dtype=np.float64)
        expected = (len(self.state) if row is None else 1, self.state.shape[1])
        if state.shape != expected:
            raise ValueError(f"state: expected {expected}, got {state.shape}")
        self.state[slice(None) if row is None else slice(row, row + 1)] = state
