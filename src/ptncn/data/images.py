"""Small grey images with labels: the objects of the bouncing videos.

The last sixth of a training file is the validation split: hyper-parameters are chosen on objects that are neither
learnt from nor tested on.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ptncn.data.download import RemoteFile, parse_idx, read_checked
from ptncn.data.sequences import DataError

if TYPE_CHECKING:
    from ptncn.data.registry import Dataset


@dataclass(frozen=True, eq=False)
class Images:
    """Images of one size, bright on black. The arrays are read-only: datasets share them.

    >>> Images("mine", np.zeros((3, 28, 28), np.uint8), np.zeros(3, np.uint8))[:2].pixels.shape
    (2, 28, 28)
    """

    name: str
    pixels: NDArray[np.uint8]
    """(N, height, width) from 0, black, to 255."""
    labels: NDArray[np.uint8]
    """(N,)"""

    def __post_init__(self) -> None:
        if self.pixels.ndim != 3 or self.pixels.dtype != np.uint8 or len(self.pixels) == 0:
            raise ValueError(
                f"images {self.name}: expected (N, height, width) of uint8 with N of at least 1, got "
                f"{self.pixels.shape} of {self.pixels.dtype}"
            )
        if self.labels.shape != self.pixels.shape[:1]:
            raise ValueError(f"images {self.name}: expected {len(self.pixels)} labels, got {self.labels.shape}")
        for field in ("pixels", "labels"):
            view = getattr(self, field).view()  # the caller's own array stays writable
            view.setflags(write=False)
            object.__setattr__(self, field, view)

    def __len__(self) -> int:
        return len(self.pixels)

    def __getitem__(self, part: slice) -> Images:
        """Some of them, without a copy."""
        return Images(self.name, self.pixels[part], self.labels[part])

    @cached_property
    def sha256(self) -> str:
        """64 hexadecimal digits for records: equal where pixels and labels are equal."""
        digest = hashlib.sha256(f"{self.pixels.shape}".encode())
        digest.update(np.ascontiguousarray(self.pixels).data)
        digest.update(np.ascontiguousarray(self.labels).data)
        return digest.hexdigest()


def load_idx(dataset: Dataset, split: str) -> Images:
    """The images of a dataset in the four idx files of MNIST, checked against their checksums."""
    images, labels = dataset.files[2:] if split == "test" else dataset.files[:2]
    return choose_split(_read_pair(dataset.name, images, labels), split)


def choose_split(whole: Images, split: str) -> Images:
    """A split of the images that are not for the test: "train+valid" is all of them."""
    if split in ("test", "train+valid"):
        return whole
    boundary = len(whole) - len(whole) // 6
    valid = whole[boundary:]
    return valid if split == "valid" else _without(whole[:boundary], valid)


def _without(images: Images, others: Images) -> Images:
    """The images that are not, pixel for pixel, among the others: NotMNIST has some letters twice."""
    known = {image.tobytes() for image in others.pixels}
    fresh = np.array([image.tobytes() not in known for image in images.pixels])
    return images if fresh.all() else Images(images.name, images.pixels[fresh], images.labels[fresh])


def _read_pair(name: str, images_file: RemoteFile, labels_file: RemoteFile) -> Images:
    pixels = parse_idx(read_checked(images_file), images_file.place, axes=3)
    labels = parse_idx(read_checked(labels_file), labels_file.place, axes=1)
    if pixels.shape[1:] != (28, 28):
        raise DataError(f"{images_file.place}: expected images of (28, 28) pixels, got {pixels.shape[1:]}")
    if len(pixels) != len(labels):
        raise DataError(f"{labels_file.place}: expected {len(pixels)} labels, one for each image, got {len(labels)}")
    return Images(name, pixels, labels)
