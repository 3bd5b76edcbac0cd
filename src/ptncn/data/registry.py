"""Datasets by name: `DATASETS` is the one list. A new dataset is a file with a `Dataset` and a line here.

>>> splits = open_splits("mnist", embedded=True, sequences=100)
>>> splits.source, len(splits.train), splits.output
('digits', 100, 'bernoulli')
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, cast, get_args

from ptncn.data.arrays import load_sequences
from ptncn.data.download import RemoteFile
from ptncn.data.images import BouncingVideo, Images
from ptncn.data.sequences import DataError, SequenceDataset
from ptncn.data.text import Text
from ptncn.distributions import DISTRIBUTIONS
from ptncn.registry import Lazy, Registry, load_object, unknown

Split = Literal["train", "valid", "test"]
SPLITS: tuple[Split, ...] = get_args(Split)
IMAGE_SPLITS = (*SPLITS, "train+valid")


KINDS = {"video": "bernoulli", "text": "categorical", "other": "gaussian"}
"""The distribution of observations, by kind of data."""


@dataclass(frozen=True, kw_only=True)
class Dataset:
    """The registry entry of a dataset."""

    name: str
    label: str
    """The name in reports."""
    about: str
    """One line for `ptncn data list`."""
    kind: str
    """"video", "text" or "other": it decides sizes, default options and, by `KINDS`, the distribution."""
    output: str = ""
    """The distribution of observations; empty: that of its kind."""
    load: str | Callable[[Dataset, str], Images | SequenceDataset]
    """Called with this entry and a split. Images become bouncing videos, sequences are used directly. A
    "module:function" is imported when it is first called."""
    licence: str = ""
    files: tuple[RemoteFile, ...] = ()
    """Files to download; empty for an embedded dataset."""
    megabytes: int = 0
    """Approximate size of the download."""
    splits: tuple[str, ...] = SPLITS
    stand_in: str | None = None
    """The embedded dataset that replaces this one if its files are not in the cache."""
    test_videos: str | None = None
    """A dataset of ready-made test videos, used where it is in the cache."""
    continuous: bool = False
    """The batches are pieces of one sequence: the state is carried from one to the next."""

    def open(self, split: str) -> Images | SequenceDataset:
        """The images or sequences of a split."""
        if split not in self.splits:
            raise DataError(unknown(f"split of {self.name}", split, self.splits))
        load = load_object(self.load) if isinstance(self.load, str) else self.load
        return cast("Images | SequenceDataset", load(self, split))

    @property
    def cached(self) -> bool:
        """Whether every file is in the cache; the files are not read."""
        return all(file.place.is_file() for file in self.files)


DATASETS: Registry[Dataset] = Registry(
    "dataset",
    "ptncn.datasets",
    {
        "mnist": Lazy("ptncn.data.catalog:MNIST"),
        "notmnist": Lazy("ptncn.data.catalog:NOTMNIST"),
        "fashion-mnist": Lazy("ptncn.data.catalog:FASHION_MNIST"),
        "ptb": Lazy("ptncn.data.catalog:PTB"),
        "ptb-stream": Lazy("ptncn.data.catalog:PTB_STREAM"),
        "bouncing-mnist": Lazy("ptncn.data.catalog:SRIVASTAVA"),
        "digits": Lazy("ptncn.data.catalog:DIGITS"),
        "letters": Lazy("ptncn.data.catalog:LETTERS"),
        "shapes": Lazy("ptncn.data.catalog:SHAPES"),
        "python-reference": Lazy("ptncn.data.catalog:PYTHON_REFERENCE"),
        "python-stream": Lazy("ptncn.data.catalog:PYTHON_STREAM"),
        "noisy-cosine": Lazy("ptncn.data.catalog:NOISY_COSINE"),
    },
)


def trainable() -> list[str]:
    """The names of datasets that have a training, a validation and a test split."""
    return [name for name, entry in DATASETS.items() if set(SPLITS) <= set(entry.splits)]


def describe_data(name: str) -> Dataset:
    """The entry of a dataset, or a new one for a file or folder of the user."""
    if name in DATASETS:
        return DATASETS[name]
    if not Path(name).exists():
        raise ValueError(unknown("data", name, trainable()) + "; or a .npy file, a GIF or a folder")
    frames = load_sequences(name).batch([0]).x
    kind = "video" if frames.min() >= 0 and frames.max() <= 1 else "other"
    return Dataset(name=name, label=Path(name).name, about="your own file", kind=kind, load=_load_user_file)


def _load_user_file(dataset: Dataset, split: str) -> SequenceDataset:
    return load_sequences(dataset.name)


def load_images(name: str, split: str = "train") -> Images:
    """The images of a split: "train", "valid" (the last sixth of the training file), "train+valid" or "test".

    >>> load_images("digits", "test").pixels.shape
    (297, 28, 28)
    """
    content = DATASETS.find(name).open(split)
    if not isinstance(content, Images):
        raise ValueError(f"dataset: expected one of images, got {name!r}")
    return content


def bouncing(
    name: str,
    split: str = "train",
    *,
    size: int = 10_000,
    objects: int = 2,
    canvas: int = 64,
    length: int = 20,
    speed: float = 0.1,
    seed: int = 0,
) -> BouncingVideo:
    """Bouncing video of the images `load_images(name, split)`; splits share neither objects nor motions.

    >>> video = bouncing("letters", "valid", size=50, objects=3)
    >>> x, mask = next(video.batches(20, shuffle_seed=1))
    >>> x.shape, mask
    (torch.Size([20, 20, 4096]), None)
    """
    return make_videos(
        load_images(name, split),
        name,
        split,
        size=size,
        objects=objects,
        canvas=canvas,
        length=length,
        speed=speed,
        seed=seed,
    )


def make_videos(images: Images, name: str, split: str, **options: Any) -> BouncingVideo:
    """Videos of the images of a split. Name and split choose the motions."""
    return BouncingVideo(images, stream=f"{name}/{split}", **options)


def bouncing_test(name: str) -> SequenceDataset:
    """The 10,000 test videos of an experiment: generated, or for `mnist` the file of Srivastava et al. if it is in
    the cache. `name` and `sha256` of the result identify them.

    >>> len(bouncing_test("shapes"))
    10000
    """
    ready = DATASETS.find(name).test_videos
    if ready is not None and DATASETS[ready].cached:
        return cast(SequenceDataset, DATASETS[ready].open("test"))
    return bouncing(name, "test")


def penn_treebank(split: str = "train") -> Text:
    """The characters of Mikolov's word-level splits: 42,068, 3,370 and 3,761 sentences of 49 symbols. A space is
    written as `_`; the end of a sentence is not a symbol."""
    return cast(Text, DATASETS["ptb"].open(split))


def python_reference(split: str = "train") -> Text:
    """The language reference that ships with CPython, one sequence per line; no download.

    >>> python_reference("test").input_size
    95
    """
    return cast(Text, DATASETS["python-reference"].open(split))


@dataclass(frozen=True)
class Splits:
    """The training, validation and test split, each opened when it is first used."""

    name: str
    """The dataset asked for."""
    entry: Dataset
    """The dataset used: that one, or its stand-in."""
    canvas: int
    objects: int
    sizes: tuple[int, int, int]
    """Number of videos in each split, where videos are generated."""

    @property
    def source(self) -> str:
        return self.entry.name

    @property
    def kind(self) -> str:
        return self.entry.kind

    @property
    def output(self) -> str:
        """The distribution of an observation."""
        return self.entry.output or KINDS[self.kind]

    @property
    def metrics(self) -> tuple[str, ...]:
        """The metrics; the first one selects the best epoch."""
        return DISTRIBUTIONS.find(self.output).metrics

    @property
    def stand_ins(self) -> dict[str, str]:
        """{dataset asked for: dataset used} where they differ."""
        return {} if self.source == self.name else {self.name: self.source}

    @cached_property
    def train(self) -> SequenceDataset:
        return self._open("train")

    @cached_property
    def valid(self) -> SequenceDataset:
        return self._open("valid")

    @cached_property
    def test(self) -> SequenceDataset:
        if self.entry.test_videos is not None and (self.canvas, self.objects) == (64, 2):
            return bouncing_test(self.source)
        return self._open("test")

    def _open(self, split: Split) -> SequenceDataset:
        content = self.entry.open(split)
        if not isinstance(content, Images):
            return content
        size = self.sizes[SPLITS.index(split)]
        return make_videos(content, self.source, split, size=size, objects=self.objects, canvas=self.canvas)


def open_splits(
    name: str,
    *,
    embedded: bool = False,
    canvas: int = 64,
    sequences: int = 10_000,
    valid: int = 1_000,
    test: int = 10_000,
    objects: int = 2,
) -> Splits:
    """The splits of a dataset, or of its stand-in if it is not in the cache or `embedded` is set.

    The numbers of sequences, the canvas and the objects apply to generated videos.
    """
    entry = describe_data(name)
    if entry.stand_in is not None and (embedded or not entry.cached):
        entry = DATASETS.find(entry.stand_in)
    missing = set(SPLITS) - set(entry.splits)
    if missing:
        raise DataError(f"{name} has no split {sorted(missing)[0]!r}; it cannot be trained on")
    return Splits(name, entry, canvas, objects, (sequences, valid, test))


def describe_used(data: Any, used: int | None = None) -> dict[str, Any]:
    """The description of a dataset in a record; `used` is the number of sequences used."""
    return {"name": data.name, "sha256": data.sha256, "sequences": len(data) if used is None else min(used, len(data))}
