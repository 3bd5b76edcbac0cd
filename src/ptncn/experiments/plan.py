"""What a run consists of: passes over data, one after the other, each with learning or without."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ptncn.data.sequences import Batch
from ptncn.experiments.tasks import describe
from ptncn.learner import Learner


@dataclass(frozen=True, kw_only=True)
class Pass:
    """Once over a dataset, or over its first sequences."""

    name: str
    """Within the run, such as "valid/2"."""
    data: Any
    """A dataset with `batches`, a length and a `sha256`."""
    metrics: tuple[str, ...]
    batch_size: int
    learn: bool = False
    limit: int | None = None
    """Sequences at most; None for all."""
    shuffle_seed: int | None = None
    epoch: int = 0
    carry: bool = False
    """The batches are pieces of one sequence: the state goes on from one to the next."""
    select: bool = False
    """The learner as it is now is kept if no earlier selecting pass had a smaller error (the first metric)."""
    from_best: bool = False
    """Go on with the learner that was selected."""
    keep_errors: bool = False
    """The record gets the error of each sequence."""
    film: int = 0
    """How many sequences to keep with their predictions."""

    def __len__(self) -> int:
        """Batches."""
        used = len(self.data) if self.limit is None else min(self.limit, len(self.data))
        return -(-used // self.batch_size)

    def batches(self, start: int) -> Iterator[Batch]:
        every = self.data.batches(self.batch_size, shuffle_seed=self.shuffle_seed, epoch=self.epoch, start=start)
        for _, batch in zip(range(start, len(self)), every, strict=False):
            yield batch


@dataclass(frozen=True, kw_only=True)
class Plan:
    """All of a run; what it leaves behind lies in a folder of its name and key."""

    name: str
    config: Mapping[str, Any]
    """Every value that decides the numbers, the data aside."""
    start: Callable[[], Learner]
    passes: tuple[Pass, ...]
    curve_metric: str
    """What the course of learning shows."""
    decay: float = 1.0
    """The step size falls to this share in the course of the learning passes."""
    told: Callable[[str, Mapping[str, float]], None] | None = None
    """Called with the name and the metrics of each pass that is over."""
    keep: bool = False
    """The learner is kept at the end: whoever makes the same plan again gets it at once."""

    @property
    def datasets(self) -> dict[str, Any]:
        return {each.name: describe(each.data, each.limit) for each in self.passes}

    @property
    def key(self) -> str:
        """Equal where config and data are equal."""
        text = json.dumps([self.config, self.datasets], sort_keys=True, default=str)
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    @property
    def folder(self) -> str:
        return f"{self.name.replace('/', '-')}-{self.key}"
