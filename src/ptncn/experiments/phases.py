"""The phases of a run, each one pass over some data, and meters per sequence."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ptncn.data.registry import describe_used
from ptncn.data.sequences import Batch, SequenceDataset
from ptncn.experiments.run import RunSpec
from ptncn.learner import Learner, Step
from ptncn.metrics import make_metric
from ptncn.records import RENAMED


@dataclass(frozen=True, kw_only=True)
class Phase:
    """One pass over a dataset, or over its first sequences."""

    name: str
    """Unique within the run, such as "valid/2"."""
    data: SequenceDataset
    metrics: tuple[str, ...]
    batch_size: int
    learn: bool = False
    limit: int | None = None
    """Maximum number of sequences; None for all."""
    shuffle_seed: int | None = None
    epoch: int = 0
    select: bool = False
    """Keep the current learner if this phase has the smallest error so far, by the first metric."""
    keep_errors: bool = False
    """Whether the record keeps the error of each sequence."""
    film: int = 0
    """Number of sequences to record with their predictions."""

    def __len__(self) -> int:
        """Number of batches."""
        return self.data.count_batches(self.batch_size, self.limit)

    def batches(self, start: int) -> Iterator[Batch]:
        every = self.data.batches(self.batch_size, shuffle_seed=self.shuffle_seed, epoch=self.epoch, start=start)
        for _, batch in zip(range(start, len(self)), every, strict=False):
            yield batch


@dataclass(frozen=True, kw_only=True)
class PhasedRun:
    """A learner and its phases. Checkpoints are in a folder named after `name` and `key`."""

    name: str
    config: Mapping[str, Any]
    """Every value that determines the results, except the data."""
    start: Callable[[], Learner]
    phases: tuple[Phase, ...]
    curve_metric: str
    """The metric of the learning curve."""
    decay: float = 1.0
    """The step size falls linearly to this share over the learning phases."""
    patience: int | None = None
    """Stop after this many consecutive selecting phases without a smaller error."""
    after_phase: Callable[[str, Mapping[str, float]], None] | None = None
    """Called with the name and the metrics of each finished phase."""
    keep: bool = False
    """Whether to keep the trained learner, so that the same run returns it at once next time."""

    @property
    def datasets(self) -> dict[str, Any]:
        return {each.name: describe_used(each.data, each.limit) for each in self.phases}

    @property
    def key(self) -> str:
        """Equal if config and data are equal."""
        text = json.dumps([stable(self.config), self.datasets], sort_keys=True, default=str)
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    @property
    def folder(self) -> str:
        return f"{self.name.replace('/', '-')}-{self.key}"


def stable(config: Any) -> Any:
    """The config with the names of the first version, so that checkpoints of any version are found.

    >>> stable({"row": "ptncn", "tuned": "tuned/ptncn-mnist.json"})
    {'model': 'ptncn', 'tuned': 'configs/ptncn-mnist.json'}
    """
    if not isinstance(config, Mapping):
        return config
    former = {new: old for old, new in RENAMED.items()}
    plain = {former.get(name, name): stable(value) for name, value in config.items()}
    if isinstance(plain.get("tuned"), str):
        plain["tuned"] = f"configs/{PurePosixPath(plain['tuned']).name}"
    return plain


def epoch_phases(spec: RunSpec, number: int) -> tuple[Phase, Phase]:
    """One epoch: learn from the training data, then validate."""
    config, splits = spec.config, spec.splits
    learn = Phase(
        name=f"train/{number}",
        data=splits.train,
        metrics=splits.metrics,
        batch_size=config.batch_size,
        learn=True,
        limit=config.sequences,
        shuffle_seed=spec.seed,
        epoch=number,
    )
    valid = Phase(
        name=f"valid/{number}",
        data=splits.valid,
        metrics=splits.metrics,
        batch_size=max(config.batch_size, 20),
        limit=config.valid,
        select=True,
    )
    return learn, valid


def final_phase(spec: RunSpec, name: str = "test", *, film: int = 0) -> Phase:
    """A pass over the test set of a spec; for text, errors are in the order of the batches."""
    return Phase(
        name=name,
        data=spec.splits.test,
        metrics=spec.splits.metrics,
        batch_size=max(spec.config.batch_size, 20),
        limit=spec.config.test,
        keep_errors=True,
        film=film,
    )


def training_run(spec: RunSpec) -> PhasedRun:
    """The training of a spec's learner with selection by validation; tables share its result."""
    return PhasedRun(
        name=f"training-{spec.row}-{spec.data.replace('/', '-')}-{spec.seed}",
        config=spec.values(),
        start=spec.make_learner,
        phases=tuple(phase for epoch in range(spec.config.epochs) for phase in epoch_phases(spec, epoch)),
        curve_metric="se" if spec.splits.kind == "video" else spec.splits.metrics[0],
        decay=spec.config.decay,
        patience=spec.config.patience,
        keep=True,
    )


class SequenceErrors:
    """The sum of one error over the scored frames of each sequence, and their number.

    Tables show the mean over all frames of all sequences; paired tests use the mean of each sequence.
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
        """End the sequences of this batch."""
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
        """Call this only between batches."""
        return {"sums": list(self.sums), "counts": list(self.counts)}

    def load_tree(self, tree: Mapping[str, Any]) -> None:
        self.reset()
        self.sums, self.counts = list(tree["sums"]), list(tree["counts"])


class Film:
    """The first sequences of a phase, their predictions, and the surprise of each layer."""

    name = "film"

    def __init__(self, sequences: int) -> None:
        self.sequences = sequences
        self._truth: list[Tensor] = []
        self._prediction: list[Tensor] = []
        self._squares: list[list[float]] = []

    def update(self, step: Step, x: Tensor) -> None:
        self._truth.append(x[: self.sequences])
        self._prediction.append(step.prediction[: self.sequences])
        self._squares.append([float(e.square().sum(-1).mean()) for e in step.errors])

    def arrays(self) -> dict[str, NDArray[Any]]:
        """(T, N, n) bytes of both, and (T, layers) ‖e‖² of the error units, mean over rows: twice the surprise."""

        def pixels(frames: list[Tensor]) -> NDArray[np.uint8]:
            return (torch.stack(frames).clamp(0, 1) * 255).round().byte().numpy()

        return {
            "truth": pixels(self._truth),
            "prediction": pixels(self._prediction),
            "surprise": np.array(self._squares),
        }

    def compute(self) -> float:
        return math.nan

    def reset(self) -> None:
        self._truth, self._prediction, self._squares = [], [], []

    def tree(self) -> dict[str, Any]:
        return {}

    def load_tree(self, tree: Mapping[str, Any]) -> None:
        self.reset()
