"""What is seen: digits, letters and shapes that bounce about on a small canvas, one scene after the other."""

from __future__ import annotations

from typing import Literal

import numpy as np

from ptncn.data import load_images
from ptncn.data.bouncing import BouncingVideo
from ptncn.data.images import Images

WORLDS = ("digits", "letters", "shapes")
LIFE = ("digits", "letters", "shapes", "digits")
"""The parts of the stream; nobody is told where one ends."""
CANVAS, SCENE = 32, 20
"""Pixels of a side, and frames until two other objects take over."""


def scenes(world: str, split: Literal["train", "test"], count: int, *, seed: int, purpose: str) -> BouncingVideo:
    """`count` scenes of one world; another `purpose` has other motions.

    >>> scenes("shapes", "test", 3, seed=0, purpose="look").batch([0, 2]).x.shape
    torch.Size([20, 2, 1024])
    """
    images = halved(load_images(world, split))
    return BouncingVideo(images, size=count, canvas=CANVAS, length=SCENE, seed=seed, stream=f"demo/{purpose}")


def halved(images: Images) -> Images:
    """Half as high and wide: four pixels become their mean, so that a small canvas leaves room to move."""
    count, height, width = images.pixels.shape
    blocks = images.pixels.reshape(count, height // 2, 2, width // 2, 2)
    return Images(images.name, blocks.mean((2, 4)).round().astype(np.uint8), images.labels)
