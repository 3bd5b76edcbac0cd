"""Running statistics of a stream: its error beside that of copying the last observation, and its alarms."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass

FADING = 0.999


@dataclass
class RunningStats:
    """Errors are mean square differences over the targets, in scaled units, older ones fading away."""

    observations: int = 0
    scored: int = 0
    alarms: int = 0
    drifts: int = 0
    bad_rows: int = 0
    gaps: int = 0
    late_rows: int = 0
    error: float = 0.0
    copy_error: float = 0.0
    weight: float = 0.0

    def score(self, error: float, copy_error: float) -> None:
        self.scored += 1
        self.error = FADING * self.error + error
        self.copy_error = FADING * self.copy_error + copy_error
        self.weight = FADING * self.weight + 1.0

    @property
    def root_mean_square(self) -> float:
        return math.sqrt(self.error / self.weight) if self.weight else math.nan

    @property
    def against_copy(self) -> float:
        """The error as a share of that of the copied last observation; below 1 is better than copying."""
        return math.sqrt(self.error / self.copy_error) if self.copy_error else math.nan

    def tree(self) -> dict[str, float]:
        return asdict(self)

    def load_tree(self, tree: Mapping[str, float]) -> None:
        for name, value in tree.items():
            setattr(self, name, value)
