"""Preview a dataset as an animated GIF, a filmstrip, a curve or text."""

from __future__ import annotations

import io
import math
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from ptncn.data.arrays import load_sequences
from ptncn.data.images import Images
from ptncn.data.registry import DATASETS, make_videos
from ptncn.data.sequences import DataError, SequenceDataset
from ptncn.data.text import Text, TextStream
from ptncn.system import write_atomically

GAP = 2
"""Pixels between pictures."""


def preview(name: str, out: Path | None, *, split: str, count: int, objects: int, seed: int) -> list[str]:
    """Write a picture of some sequences to `out`, or return sample text; returns lines to print."""
    data = _find(name, split, objects, seed)
    if isinstance(data, Text | TextStream):
        if out is not None:
            raise DataError(f"{name} is text, which is printed; leave out --out {out}")
        text = data.text if isinstance(data, TextStream) else data
        return [text.decode(text[i]) for i in range(min(count, len(text)))]
    shown = 1 if data.continuous else min(count, len(data))
    x, shape = data.batch(range(shown)).x, data.observation_shape
    path = out or Path(f"{Path(name).stem}.{'gif' if len(shape) == 2 else 'png'}")
    draw(x, shape, path)
    return [f"{path}: {x.shape[1]} × {x.shape[0]} steps of {name}"]


def _find(name: str, split: str, objects: int, seed: int) -> SequenceDataset:
    if name not in DATASETS:
        if Path(name).exists():
            return load_sequences(name)
        raise DataError(f"{name}: neither a dataset of `ptncn data list` nor a file or folder")
    entry = DATASETS[name]
    if split == "train" and "train" not in entry.splits:
        split = entry.splits[0]
    found = entry.open(split)
    return make_videos(found, name, split, objects=objects, seed=seed) if isinstance(found, Images) else found


def draw(x: Tensor, shape: tuple[int, ...], path: Path, *, enlarge: int = 2, milliseconds: int = 100) -> None:
    """Write sequences (T, B, n) as a picture, `x.gif` or `x.png`; `shape` is that of one observation.

    Observations with two axes are frames of numbers from 0 to 1: the GIF shows all sequences at once, the PNG has a
    row for each and a column for each time. Those with one axis are drawn as curves, of the first sequence, as PNG.
    """
    suffix = path.suffix.lower()
    if suffix not in (".gif", ".png"):
        raise DataError(f"{path}: pictures are written as .gif or .png")
    if len(shape) > 2 or (len(shape) < 2 and suffix == ".gif"):
        raise DataError(f"{path}: observations of shape {shape} cannot be drawn as {suffix}")
    if len(shape) < 2:
        _draw_curves(x[:, 0].numpy(), path)
        return
    frames = (x.reshape(*x.shape[:2], *shape).clamp(0, 1) * 255).round().byte().numpy()  # (T, B, height, width)
    if suffix == ".gif":
        columns = math.ceil(math.sqrt(frames.shape[1]))
        stills = [_picture(_grid(moment, columns), enlarge) for moment in frames]
        _save(path, "GIF", stills, duration=milliseconds, loop=0)
    else:
        strip = _grid(frames.swapaxes(0, 1).reshape(-1, *shape), columns=len(frames))
        _save(path, "PNG", [_picture(strip, enlarge)])


def _draw_curves(values: NDArray[np.float32], path: Path) -> None:
    from matplotlib.figure import Figure  # slow to import and seldom needed

    figure = Figure(figsize=(10, 3), layout="constrained")
    axes = figure.subplots()
    axes.plot(values, linewidth=1)
    axes.set_xlabel("step")
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png")
    _write(path, buffer.getvalue())


def _grid(pictures: NDArray[np.uint8], columns: int) -> NDArray[np.uint8]:
    """(N, height, width) side by side, row after row, on grey."""
    count, height, width = pictures.shape
    rows = math.ceil(count / columns)
    sheet = np.full((rows * (height + GAP) + GAP, columns * (width + GAP) + GAP), 96, np.uint8)
    for i, picture in enumerate(pictures):
        top, left = GAP + i // columns * (height + GAP), GAP + i % columns * (width + GAP)
        sheet[top : top + height, left : left + width] = picture
    return sheet


def _picture(sheet: NDArray[np.uint8], enlarge: int) -> Image.Image:
    return Image.fromarray(sheet.repeat(enlarge, axis=0).repeat(enlarge, axis=1))


def _save(path: Path, kind: str, pictures: list[Image.Image], **options: int) -> None:
    buffer = io.BytesIO()
    pictures[0].save(buffer, kind, save_all=len(pictures) > 1, append_images=pictures[1:], **options)
    _write(path, buffer.getvalue())


def _write(path: Path, content: bytes) -> None:
    try:
        write_atomically(path, content)
    except OSError as error:
        raise DataError(f"{path}: cannot be written: {error.strerror or error}") from error
