"""Errors and predictions of single sequences: for paired comparisons, and for films."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ptncn.learner import Step
from ptncn.metrics import make_metric


class SequenceErrors:
    """The sum of one error over the scored frames of each sequence, and their number.

    Tables have the mean over all frames of all sequences; paired tests take the mean of each sequence.
    """

    def __init__(self, metric: str) -> None:
        self.name, self.error = metric, make_metric(metric)
        self.sums: list[float] = []
        self.counts: list[int] = []
        self._sum: Tensor | None = None
        self._count: Tensor | None = None

    def update(self, step: Step, x: Tensor) -> None:
        errors = torch.where(step.scored, self.error.per_frame(step, x), 0.0)
        if self._sum is None or self._count is None:
            self._sum, self._count = errors, step.scored.long()
        else:
            self._sum, self._count = self._sum + errors, self._count + step.scored

    def close(self) -> None:
        """The sequences of this batch ended."""
        if self._sum is not None and self._count is not None:
            self.sums += self._sum.tolist()
            self.counts += self._count.tolist()
        self._sum = self._count = None

    def compute(self) -> float:
        frames = sum(self.counts)
        return math.fsum(self.sums) / frames if frames else math.nan

    def by_sequence(self) -> NDArray[np.float64]:
        """(N,) NaN for a sequence with nothing to score."""
        counts = np.array(self.counts, float)
        means: NDArray[np.float64] = np.full(len(counts), np.nan)
        np.divide(self.sums, counts, out=means, where=counts > 0)
        return means

    def reset(self) -> None:
        self.sums, self.counts, self._sum, self._count = [], [], None, None

    def tree(self) -> dict[str, Any]:
        """May only be called between batches."""
        return {"sums": list(self.sums), "counts": list(self.counts)}

    def load_tree(self, tree: Mapping[str, Any]) -> None:
        self.reset()
        self.sums, self.counts = list(tree["sums"]), list(tree["counts"])


class Film:
    """The first sequences of a phase, the predictions of them, and the size of each layer's error."""

    name = "film"

    def __init__(self, sequences: int) -> None:
        self.sequences = sequences
        self._truth: list[Tensor] = []
        self._prediction: list[Tensor] = []
        self._surprise: list[list[float]] = []

    def update(self, step: Step, x: Tensor) -> None:
        self._truth.append(x[: self.sequences])
        self._prediction.append(step.prediction[: self.sequences])
        self._surprise.append([float(e.square().sum(-1).mean()) for e in step.errors])

    def arrays(self) -> dict[str, NDArray[Any]]:
        """(T, N, n) bytes of both, and (T, layers) the mean squared length of the error units."""

        def pixels(frames: list[Tensor]) -> NDArray[np.uint8]:
            return (torch.stack(frames).clamp(0, 1) * 255).round().byte().numpy()

        return {
            "truth": pixels(self._truth),
            "prediction": pixels(self._prediction),
            "surprise": np.array(self._surprise),
        }

    def compute(self) -> float:
        return math.nan

    def reset(self) -> None:
        self._truth, self._prediction, self._surprise = [], [], []

    def tree(self) -> dict[str, Any]:
        return {}

    def load_tree(self, tree: Mapping[str, Any]) -> None:
        self.reset()
