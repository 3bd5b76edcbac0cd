"""Sequences from your own data: a `.npy` file, an animated GIF, a folder of images, or arrays in memory.

Bytes are treated as pixels and divided by 255; other numbers are not scaled.
"""

from __future__ import annotations

import hashlib
import re
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image, ImageSequence, UnidentifiedImageError

from ptncn.data.sequences import Batch, DataError, SequenceDataset
from ptncn.registry import unknown

if TYPE_CHECKING:
    from ptncn.data.registry import Dataset

Layout = Literal["NT", "TN", "T"]
Array = NDArray[Any]
Frames = NDArray[np.uint8]
"""(T, height, width)"""
SRIVASTAVA_SHAPE = 10_000, 20, 64, 64
PICTURES = ".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp", ".pgm"


class ArraySequences(SequenceDataset):
    """Sequences (T, …) of any length; all axes but the first are flattened to n.

    >>> walks = ArraySequences("walks", [np.zeros((5, 2)), np.ones((3, 2))])
    >>> x, mask = walks.batch([0, 1])
    >>> x.shape, mask.sum(0).tolist()
    (torch.Size([5, 2, 2]), [5, 3])
    """

    def __init__(self, name: str, sequences: Sequence[Array] | Array) -> None:
        if len(sequences) == 0:
            raise DataError(f"{name}: no sequences")
        for i, sequence in enumerate(sequences):
            if sequence.dtype.kind not in "buif":
                raise DataError(f"{name}: sequence {i} holds {sequence.dtype}; expected numbers")
            if sequence.ndim < 1 or sequence.size == 0:
                raise DataError(f"{name}: sequence {i} has shape {sequence.shape}; expected (time, …), not empty")
            if sequence.shape[1:] != sequences[0].shape[1:]:
                raise DataError(
                    f"{name}: sequence {i}: expected observations of shape {sequences[0].shape[1:]}, as in the first, "
                    f"got {sequence.shape[1:]}"
                )
        self.name = name
        self.sequences = sequences
        self.observation_shape = sequences[0].shape[1:]

    def __len__(self) -> int:
        return len(self.sequences)

    def _batch(self, indices: NDArray[np.int64]) -> Batch:
        chosen = [self.sequences[i] for i in indices]
        lengths = np.array([len(sequence) for sequence in chosen])
        x = torch.zeros(int(lengths.max()), len(chosen), self.input_size)
        for row, (i, sequence) in enumerate(zip(indices, chosen, strict=True)):
            values = torch.from_numpy(np.array(sequence, np.float32)).reshape(len(sequence), -1)
            x[: len(sequence), row] = values.div_(255) if sequence.dtype == np.uint8 else values
            if not torch.isfinite(values).all():
                raise DataError(f"{self.name}: sequence {i} holds values that are not finite numbers")
        if (lengths == lengths[0]).all():
            return Batch(x, None)
        return Batch(x, torch.from_numpy(np.arange(lengths.max())[:, None] < lengths))

    def _digest(self) -> str:
        digest = hashlib.sha256(b"arrays 1")
        for sequence in self.sequences:
            digest.update(f"{sequence.dtype.str}{sequence.shape}".encode())
            digest.update(np.ascontiguousarray(sequence).data)
        return digest.hexdigest()


def load_sequences(path: str | Path, *, layout: Layout = "NT", size: tuple[int, int] | None = None) -> ArraySequences:
    """Sequences from your own file or folder, which is only read; nothing in it is executed.

    - `x.npy`: `layout` names the first axes: `NT`, sequences then time; `TN`, time then sequences; `T`, time of the
      only sequence. All further axes are one observation. The file is memory-mapped.
    - `x.gif`: the frames of one sequence, in grey.
    - a folder: its images, in the order of their names (frame2 before frame10), are the frames of one sequence; if
      it holds folders instead, each of them is a sequence.

    `size`, height and width, scales the frames of a GIF or a folder.
    """
    source = Path(path)
    if layout not in get_args(Layout):
        raise ValueError(unknown("layout", layout, get_args(Layout)))
    if source.is_dir():
        return ArraySequences(str(path), read_folder(source, size))
    if not source.is_file():
        raise DataError(f"{source}: no such file or folder")
    if source.suffix.lower() == ".gif":
        return ArraySequences(str(path), [read_gif(source, size)])
    if source.suffix.lower() == ".npy":
        return ArraySequences(str(path), read_npy(source, layout))
    raise DataError(f"{source}: sequences come from a .npy file, an animated .gif or a folder of images")


def read_npy(path: Path, layout: Layout) -> Array:
    """(N, T, …) a view of the file."""
    try:
        array: Array = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise DataError(f"{path}: not a .npy file of plain numbers, or truncated: {error}") from error
    if array.ndim < len(layout):
        raise DataError(f"{path}: shape {array.shape}, but the layout {layout} needs {len(layout)} axes or more")
    if layout == "T":
        return array[None]
    return array.swapaxes(0, 1) if layout == "TN" else array


def srivastava_test(dataset: Dataset, split: str = "test") -> ArraySequences:
    """The test file of Srivastava et al., `mnist_test_seq.npy`, memory-mapped."""
    (file,) = dataset.files
    if not file.place.is_file():
        raise file.missing()
    videos = read_npy(file.place, "TN")
    if videos.shape != SRIVASTAVA_SHAPE or videos.dtype != np.uint8:
        raise DataError(
            f"{file.place}: expected the test videos of Srivastava et al., uint8 of {SRIVASTAVA_SHAPE}, got "
            f"{videos.dtype} of {videos.shape}"
        )
    return ArraySequences("bouncing-mnist (Srivastava et al.)", videos)


def read_gif(path: Path, size: tuple[int, int] | None = None) -> Frames:
    """The frames of a GIF, in grey."""
    return np.stack(_read(path, size))


def read_folder(folder: Path, size: tuple[int, int] | None = None) -> list[Frames]:
    """One sequence from a folder of images, or one from each folder in it."""
    folders = sorted((entry for entry in folder.iterdir() if entry.is_dir()), key=_natural)
    images = [entry for entry in folder.iterdir() if entry.suffix.lower() in PICTURES and entry.is_file()]
    if folders and images:
        raise DataError(f"{folder}: expected images or folders, got both")
    if folders:
        return [sequence for entry in folders for sequence in read_folder(entry, size)]
    if not images:
        raise DataError(f"{folder}: no images in it; looked for {', '.join(PICTURES)}")
    frames: list[Frames] = []
    for image in sorted(images, key=_natural):
        frame = _read(image, size)[0]
        if frames and frame.shape != frames[0].shape:
            raise DataError(f"{image}: expected {frames[0].shape} pixels as in the first image, got {frame.shape}")
        frames.append(frame)
    return [np.stack(frames)]


def _read(path: Path, size: tuple[int, int] | None) -> list[Frames]:
    """(height, width) each frame of a picture."""
    try:
        with warnings.catch_warnings(), Image.open(path) as picture:
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            grey = [frame.convert("L") for frame in ImageSequence.Iterator(picture)]
    except (OSError, ValueError, SyntaxError, EOFError, UnidentifiedImageError) as error:
        raise DataError(f"{path}: not a readable picture, or truncated: {error}") from error
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise DataError(f"{path}: the picture is too large: {error}") from error
    if size is not None:
        grey = [frame.resize((size[1], size[0]), Image.Resampling.BOX) for frame in grey]
    return [np.asarray(frame) for frame in grey]


def _natural(path: Path) -> list[tuple[int, str]]:
    """Sorts frame2 before frame10."""
    return [(int(piece), "") if piece.isdigit() else (-1, piece) for piece in re.split(r"(\d+)", path.name.lower())]
