"""A look at any dataset, by name or by path."""

from __future__ import annotations

from pathlib import Path
from typing import cast, get_args

from ptncn.data.arrays import load_sequences
from ptncn.data.catalog import PTB, SRIVASTAVA
from ptncn.data.corpora import TextSplit, penn_treebank, python_reference
from ptncn.data.cosine import NoisyCosine
from ptncn.data.draw import draw
from ptncn.data.errors import DataError
from ptncn.data.load import IMAGE_NAMES, Split, bouncing, srivastava_test
from ptncn.data.sequences import SequenceDataset

EMBEDDED = {
    "digits": ("1,797 handwritten digits of scikit-learn, 28×28", "BSD-3-Clause"),
    "letters": ("7,360 letters A to J in the faces of matplotlib, 28×28", "those of the faces"),
    "shapes": ("7,000 drawn shapes, 28×28", "MIT"),
    "python-reference": ("the language reference inside CPython, 95 symbols", "PSF-2.0"),
    "noisy-cosine": ("an endless stream of one number a step", "MIT"),
}
TEXTS = {PTB.name: penn_treebank, "python-reference": python_reference}
STEPS = 500


def show(name: str, out: Path | None, *, split: str, count: int, objects: int, seed: int) -> list[str]:
    """Write a picture of some sequences to `out`, or give back some text; the lines are for the reader."""
    if name in TEXTS:
        if out is not None:
            raise DataError(f"{name} is text and is printed, not drawn: leave out --out {out}")
        if split not in get_args(TextSplit):
            raise DataError(f"{name} has no split {split!r}; choose one of: {', '.join(get_args(TextSplit))}")
        text = TEXTS[name](cast(TextSplit, split))
        return [text.decode(text[i]) for i in range(min(count, len(text)))]
    shape: tuple[int, ...] = (1,)
    if name == NoisyCosine.name:
        x = next(NoisyCosine(seed).stream(STEPS)).x
    else:
        videos = _find(name, split, objects, seed)
        x, shape = videos.batch(range(min(count, len(videos)))).x, videos.observation_shape
    path = out or Path(f"{Path(name).stem}.{'gif' if len(shape) == 2 else 'png'}")
    draw(x, shape, path)
    return [f"{path}: {x.shape[1]} × {x.shape[0]} steps of {name}"]


def _find(name: str, split: str, objects: int, seed: int) -> SequenceDataset:
    if name in IMAGE_NAMES:
        return bouncing(name, cast(Split, split), objects=objects, seed=seed)
    if name == SRIVASTAVA.name:
        return srivastava_test()
    if Path(name).exists():
        return load_sequences(name)
    raise DataError(f"{name}: neither a dataset of `ptncn data list` nor a file or folder")
