"""The 1,797 handwritten digits that ship with scikit-learn, brought from 8×8 to 28×28 pixels."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from PIL import Image

from ptncn.data.images import Images

TEST = 297
INK = 20
"""Pixels a side that hold the digit: as in MNIST, a margin of 4 surrounds it."""


@lru_cache(maxsize=1)
def digits() -> tuple[Images, Images]:
    """1,500 images for development and 297 for the test: the last ones, because neighbours share a writer."""
    from sklearn.datasets import load_digits  # takes a second, and is seldom needed

    small = load_digits()
    pixels = np.zeros((len(small.images), 28, 28), np.uint8)
    margin = (28 - INK) // 2
    for image, target in zip(small.images, pixels, strict=True):
        grey = Image.fromarray((image * (255 / 16)).astype(np.float32))
        smooth = np.asarray(grey.resize((INK, INK), Image.Resampling.BICUBIC))
        target[margin:-margin, margin:-margin] = smooth.clip(0, 255).round()
    everything = Images("digits", pixels, small.target.astype(np.uint8))
    return everything[:-TEST], everything[-TEST:]
