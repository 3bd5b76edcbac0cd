"""Small grey images with labels, and the bouncing videos made of them.

The last sixth of a training file is the validation split, so hyper-parameters are chosen on objects that are used
neither for training nor for testing.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from ptncn.data.download import RemoteFile, parse_idx, read_checked
from ptncn.data.sequences import (
    Batch,
    DataError,
    Indices,
    SequenceDataset,
    check_count,
    random_words,
    stream_key,
    to_below,
    to_unit,
)

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
            view = getattr(self, field).view()  # the caller's array stays writable
            view.setflags(write=False)
            object.__setattr__(self, field, view)

    def __len__(self) -> int:
        return len(self.pixels)

    def __getitem__(self, part: slice) -> Images:
        """A part of the images, without a copy."""
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
    """A split of the development images; "train+valid" is all of them."""
    if split in ("test", "train+valid"):
        return whole
    boundary = len(whole) - len(whole) // 6
    valid = whole[boundary:]
    return valid if split == "valid" else _exclude(whole[:boundary], valid)


def _exclude(images: Images, others: Images) -> Images:
    """The images that are not identical to any of the others: NotMNIST contains duplicates."""
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


class BouncingVideo(SequenceDataset):
    """Objects that move over a canvas and bounce off its edges, as in Srivastava et al. (2015), generated on demand.

    An object starts at a random position inside the canvas and moves in a random direction, by 0.1 of its range per
    frame. At an edge it stays for one frame, and its velocity along that axis is reversed. Positions are truncated to
    whole pixels; where objects overlap, the brighter pixel shows. As in the original generator, the first frame is the
    one after the first move.

    Sequence i depends only on the arguments and on i; object k of sequence i does not depend on the number of objects.
    `stream` names the purpose: videos of another stream have other motions and objects, so that a test set does not
    repeat the motions of a training set with the same seed.

    >>> from ptncn.data import load_images
    >>> video = BouncingVideo(load_images("shapes", "train"), size=100, seed=0)
    >>> video.batch([3, 50]).x.shape
    torch.Size([20, 2, 4096])
    """

    def __init__(
        self,
        images: Images,
        *,
        size: int = 10_000,
        objects: int = 2,
        canvas: int = 64,
        length: int = 20,
        speed: float = 0.1,
        seed: int = 0,
        stream: str = "",
    ) -> None:
        for argument, value in {"size": size, "objects": objects, "canvas": canvas, "length": length}.items():
            check_count(argument, value, 1)
        if not 0 <= speed < float("inf"):
            raise ValueError(f"speed: expected a share of the range per frame, such as 0.1, got {speed!r}")
        height, width = images.pixels.shape[1:]
        if canvas < max(height, width):
            raise ValueError(f"objects of {height}×{width} pixels do not fit on a canvas of {canvas}×{canvas}")
        self.images, self.size, self.objects, self.canvas = images, size, objects, canvas
        self.length, self.speed, self.seed, self.stream = length, speed, seed, stream
        self.name = f"bouncing-{images.name}"
        self.observation_shape = canvas, canvas
        self._key = stream_key(seed, f"bouncing/{stream}")

    def __len__(self) -> int:
        return self.size

    def trajectories(self, indices: Indices) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The images (B, objects), and the row and column (T, B, objects, 2) of their upper left corners."""
        address = self._check(indices)[:, None]
        words = random_words(self._key, address, np.arange(self.objects))  # (B, objects, 4)
        chosen = to_below(words[..., 0], len(self.images))
        start = to_unit(words[..., 1:3])
        angle = 2 * np.pi * to_unit(words[..., 3])
        velocity = self.speed * np.stack([np.sin(angle), np.cos(angle)], axis=-1)
        room = self.canvas - np.array(self.images.pixels.shape[1:])
        return chosen, (room * move(start, velocity, self.length)).astype(np.int64)

    def frames(self, indices: Indices) -> NDArray[np.uint8]:
        """(T, B, canvas, canvas) pixels from 0 to 255."""
        chosen, corners = self.trajectories(indices)
        rows, columns = corners[..., 0], corners[..., 1]  # (T, B, objects)
        video = np.zeros((self.length, len(chosen), self.canvas, self.canvas), np.uint8)
        windows = sliding_window_view(video, self.images.pixels.shape[1:], axis=(2, 3), writeable=True)
        frame, sequence = np.ogrid[: self.length, : len(chosen)]
        for k in range(self.objects):
            position = frame, sequence, rows[..., k], columns[..., k]
            windows[position] = np.maximum(windows[position], self.images.pixels[chosen[:, k]])
        return video

    def _batch(self, indices: NDArray[np.int64]) -> Batch:
        x = self.frames(indices).reshape(self.length, len(indices), -1).astype(np.float32)
        x /= np.float32(255)  # in NumPy, because waiting for torch's threads would take longer than the division
        return Batch(torch.from_numpy(x), None)

    def _digest(self) -> str:
        parameters = {
            "generator": "bouncing video 1",
            "images": self.images.sha256,
            "key": self._key,
            "size": self.size,
            "objects": self.objects,
            "canvas": self.canvas,
            "length": self.length,
            "speed": self.speed,
        }
        return hashlib.sha256(json.dumps(parameters, sort_keys=True).encode()).hexdigest()


def move(start: NDArray[np.float64], velocity: NDArray[np.float64], length: int) -> NDArray[np.float64]:
    """(length, …) positions on the unit range after each move from `start` (…), bouncing off 0 and 1."""
    positions = np.empty((length, *start.shape))
    position = start
    for frame in range(length):
        position = position + velocity
        velocity = np.where((position <= 0) | (position >= 1), -velocity, velocity)
        position = np.clip(position, 0, 1)
        positions[frame] = position
    return positions
