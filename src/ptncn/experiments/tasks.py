"""The data of an experiment: the real where it is found, and what is embedded in its place where it is not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ptncn.data import MissingDataError, NoisyCosine, SequenceDataset, load_images, load_sequences
from ptncn.data.catalog import IMAGE_DATASETS
from ptncn.data.embedded import EMBEDDED_IMAGES
from ptncn.data.load import bouncing, bouncing_test
from ptncn.data.sequences import Batch
from ptncn.data.show import TEXTS
from ptncn.distributions import DISTRIBUTIONS

STAND_INS = {"mnist": "digits", "notmnist": "letters", "fashion-mnist": "shapes", "ptb": "python-reference"}
NAMES = (*STAND_INS, *STAND_INS.values())
KINDS = {"video": "bernoulli", "text": "categorical", "other": "gaussian"}
"""The distribution of the observations, by kind of data."""


@dataclass(frozen=True)
class Task:
    """Sequences to learn from, to choose by, and to be tested on."""

    name: str
    """What was asked for."""
    source: str
    """What it is made of."""
    kind: str
    train: SequenceDataset
    valid: SequenceDataset
    test: SequenceDataset

    @property
    def output(self) -> str:
        return KINDS[self.kind]

    @property
    def metrics(self) -> tuple[str, ...]:
        return DISTRIBUTIONS.find(self.output).metrics

    @property
    def notes(self) -> list[str]:
        if self.source == self.name:
            return []
        return [f"{self.name} was not used: the embedded {self.source} stand in for it"]


def check_name(name: str) -> str:
    """The name of a dataset, or of a file of one's own."""
    if name in NAMES or Path(name).exists():
        return name
    raise ValueError(f"unknown data {name!r}; choose one of: {', '.join(NAMES)}; or a .npy file, a GIF or a folder")


def find_source(name: str, *, embedded: bool = False) -> str:
    """The dataset itself if it is in the cache, else its stand-in; always the latter with `embedded`."""
    if name not in STAND_INS:
        return name
    if embedded:
        return STAND_INS[name]
    try:
        if name in IMAGE_DATASETS:
            load_images(name, "test")
        else:
            TEXTS[name]("test")
    except MissingDataError:
        return STAND_INS[name]
    return name


def open_task(
    name: str,
    *,
    embedded: bool = False,
    canvas: int = 64,
    sequences: int = 10_000,
    valid: int = 1_000,
    test: int = 10_000,
    objects: int = 2,
) -> Task:
    """The three splits of a dataset by name. The numbers are those of videos, which are made when asked for.

    >>> task = open_task("mnist", embedded=True, sequences=100)
    >>> task.source, len(task.train), task.output
    ('digits', 100, 'bernoulli')
    """
    source = find_source(check_name(name), embedded=embedded)
    if source in (*IMAGE_DATASETS, *EMBEDDED_IMAGES):
        if (source, canvas, objects) == ("mnist", 64, 2):
            tests: SequenceDataset = bouncing_test(source)  # the file of Srivastava et al. if it is there
        else:
            tests = bouncing(source, "test", size=test, canvas=canvas, objects=objects)
        return Task(
            name,
            source,
            "video",
            bouncing(source, "train", size=sequences, canvas=canvas, objects=objects),
            bouncing(source, "valid", size=valid, canvas=canvas, objects=objects),
            tests,
        )
    if source in TEXTS:
        return Task(name, source, "text", *(TEXTS[source](split) for split in ("train", "valid", "test")))
    own = load_sequences(source)
    x = own.batch([0]).x
    kind = "video" if x.min() >= 0 and x.max() <= 1 else "other"
    return Task(name, source, kind, own, own, own)


def describe(data: Any, used: int | None = None) -> dict[str, Any]:
    """What a record says of a dataset; `used` is how many of its sequences a pass goes through."""
    return {"name": data.name, "sha256": data.sha256, "sequences": len(data) if used is None else min(used, len(data))}


class Cosine:
    """The noisy cosine in pieces of `chunk` steps: one sequence, to be gone through with `carry`."""

    def __init__(self, steps: int, *, chunk: int = 1000, seed: int = 0) -> None:
        self.steps, self.chunk, self.cosine = steps, chunk, NoisyCosine(seed)
        self.name, self.input_size, self.sha256 = self.cosine.name, 1, self.cosine.sha256

    def __len__(self) -> int:
        return -(-self.steps // self.chunk)

    def batches(
        self, batch_size: int = 1, *, shuffle_seed: int | None = None, epoch: int = 0, start: int = 0
    ) -> Iterator[Batch]:
        pieces = self.cosine.stream(self.chunk, start=start * self.chunk)
        for piece, first in zip(pieces, range(start * self.chunk, self.steps, self.chunk), strict=False):
            yield Batch(piece.x[: self.steps - first], None)
