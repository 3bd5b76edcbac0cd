"""Frames of video, from picture files and to them."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageSequence, UnidentifiedImageError

from ptncn.data.errors import DataError

Frames = NDArray[np.uint8]
"""(T, height, width)"""
PICTURES = ".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp", ".pgm"


def read_gif(path: Path, size: tuple[int, int] | None = None) -> Frames:
    """The frames of a GIF, in grey."""
    return np.stack(_read(path, size))


def read_folder(folder: Path, size: tuple[int, int] | None = None) -> list[Frames]:
    """One sequence from a folder of images, or one from each folder in it."""
    folders = sorted((entry for entry in folder.iterdir() if entry.is_dir()), key=_natural)
    images = [entry for entry in folder.iterdir() if entry.suffix.lower() in PICTURES and entry.is_file()]
    if folders and images:
        raise DataError(f"{folder}: holds both images and folders; one sequence, or a folder for each, would be right")
    if folders:
        return [sequence for entry in folders for sequence in read_folder(entry, size)]
    if not images:
        raise DataError(f"{folder}: no images in it; looked for {', '.join(PICTURES)}")
    frames: list[Frames] = []
    for image in sorted(images, key=_natural):
        frame = _read(image, size)[0]
        if frames and frame.shape != frames[0].shape:
            raise DataError(f"{image}: {frame.shape} pixels, the first image {frames[0].shape}; give a size for all")
        frames.append(frame)
    return [np.stack(frames)]


def _read(path: Path, size: tuple[int, int] | None) -> list[Frames]:
    """(height, width) each frame of a picture."""
    try:
        with warnings.catch_warnings(), Image.open(path) as picture:
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            grey = [frame.convert("L") for frame in ImageSequence.Iterator(picture)]
    except (OSError, ValueError, SyntaxError, EOFError, UnidentifiedImageError) as error:
        raise DataError(f"{path}: not a picture that can be read, or cut short: {error}") from error
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise DataError(f"{path}: too large a picture: {error}") from error
    if size is not None:
        grey = [frame.resize((size[1], size[0]), Image.Resampling.BOX) for frame in grey]
    return [np.asarray(frame) for frame in grey]


def _natural(path: Path) -> list[tuple[int, str]]:
    """Sorts frame2 before frame10."""
    return [(int(piece), "") if piece.isdigit() else (-1, piece) for piece in re.split(r"(\d+)", path.name.lower())]
