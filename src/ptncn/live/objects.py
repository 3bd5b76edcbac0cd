"""The moving world: scenes of bouncing objects that a visitor can change while they run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image, ImageDraw
from torch import Tensor

from ptncn.data import load_images
from ptncn.data.images import BouncingVideo, Images
from ptncn.data.registry import DATASETS
from ptncn.data.sequences import random_words, stream_key, to_unit
from ptncn.demo.simulate import CANVAS, halved

SCENE = 60
"""Frames of a scene; the next scene has other objects."""
SCENES = 1_000_000
PAD = 28
"""Pixels along an edge of a visitor's drawing."""
DRAWING = "drawing"

GARMENTS = 500
FINE = 8
HALVES: dict[str, tuple[tuple[float, float], ...]] = {
    "T-shirt": ((0, 5), (4, 4), (12, 8), (10, 13), (7, 11), (7, 25), (0, 25)),
    "trousers": ((0, 3), (6, 3), (8, 26), (3, 26), (1, 10), (0, 10)),
    "pullover": ((0, 5), (4, 4), (9, 7), (12, 23), (9, 24), (7, 13), (7, 25), (0, 25)),
    "dress": ((0, 4), (4, 2), (4, 9), (3, 12), (9, 26), (0, 26)),
    "coat": ((0.6, 6), (4, 3), (9, 6), (12, 22), (9, 23), (8, 13), (9, 27), (0.6, 27)),
    "skirt": ((0, 6), (5, 6), (10, 23), (0, 23)),
    "hat": ((0, 8), (5, 8), (6, 17), (12, 19), (12, 21), (0, 21)),
    "bag": ((0, 13), (3, 13), (4, 6), (0, 6), (0, 4), (6, 4), (6, 12), (11, 12), (11, 25), (0, 25)),
}
"""The right halves, which are mirrored; x from the middle and y from the top, in pixels of a 28 × 28 image."""
WHOLES: dict[str, tuple[tuple[float, float], ...]] = {
    "boot": ((8, 3), (16, 3), (16, 15), (24, 19), (25, 25), (8, 25)),
    "sneaker": ((3, 12), (11, 12), (15, 16), (25, 18), (26, 22), (3, 22)),
}

KINDS: dict[str, Callable[[], Images]] = {
    "digits": lambda: load_images("digits", "train"),
    "letters": lambda: load_images("letters", "train"),
    "shapes": lambda: load_images("shapes", "train"),
    "clothes": lambda: load_clothes()[0],
}


@dataclass(frozen=True)
class Settings:
    """Settings of the world that a visitor can change."""

    kind: str = "digits"
    objects: int = 2
    speed: float = 0.1
    """Share of the range that an object moves per frame."""
    occlusion: int = 0
    """Width in pixels of the vertical bar that hides the middle."""


class World:
    """An endless video, generated frame by frame; the same seed and the same changes give the same frames."""

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed
        self.settings = Settings()
        self.scene, self.frame = 0, 0
        self.drawing: Images | None = None
        self._begin()

    def change(self, **changes: object) -> None:
        """Change the settings; a new scene starts with them."""
        self.settings = replace(self.settings, **changes)  # type: ignore[arg-type]
        self.scene, self.frame = self.scene + 1, 0
        self._begin()

    def draw(self, pixels: bytes) -> None:
        """Use the visitor's drawing as the object of the world."""
        image = np.frombuffer(pixels, np.uint8).reshape(1, PAD, PAD)
        self.drawing = Images(DRAWING, image, np.zeros(1, np.uint8))
        self.change(kind=DRAWING)

    @property
    def begins(self) -> bool:
        """Whether the next frame is the first of a scene."""
        return self.frame == 0

    def next(self) -> Tensor:
        """The next frame, (1, pixels)."""
        x = self._frames[self.frame]
        self.frame += 1
        if self.frame == SCENE:
            self.scene, self.frame = self.scene + 1, 0
            self._film()
        return x

    def state(self) -> tuple[Settings, int, int, Images | None]:
        """Everything that `go_back` needs."""
        return self.settings, self.scene, self.frame, self.drawing

    def go_back(self, state: tuple[Settings, int, int, Images | None]) -> None:
        self.settings, self.scene, self.frame, self.drawing = state
        self._begin()

    def _begin(self) -> None:
        settings = self.settings
        images = self.drawing if settings.kind == DRAWING else KINDS[settings.kind]()
        assert images is not None
        self._video = BouncingVideo(
            halved(images),
            size=SCENES,
            objects=settings.objects,
            canvas=CANVAS,
            length=SCENE,
            speed=settings.speed,
            seed=self.seed,
            stream="live",
        )
        self._film()

    def _film(self) -> None:
        frames = self._video.frames([self.scene % SCENES])[:, 0]  # (SCENE, canvas, canvas)
        left, right = bar(self.settings.occlusion)
        frames[:, :, left:right] = 0
        self._frames = torch.from_numpy(frames.reshape(SCENE, 1, -1).astype(np.float32)) / 255


def bar(width: int) -> tuple[int, int]:
    """The range of columns hidden by a bar of this width; the end is exclusive.

    >>> bar(8)
    (12, 20)
    """
    left = (CANVAS - width) // 2
    return left, left + width


def grey(frame: Tensor) -> NDArray[np.uint8]:
    """(pixels,) from 0 to 255 of a frame (1, pixels)."""
    pixels: NDArray[np.uint8] = (frame[0].clamp(0, 1) * 255).round().byte().numpy()
    return pixels


def load_clothes() -> tuple[Images, str]:
    """Fashion-MNIST if it is in the cache, otherwise drawn garments; and a description for the page."""
    if DATASETS["fashion-mnist"].cached:
        return load_images("fashion-mnist", "train"), "Fashion-MNIST"
    return drawn_clothes(), "drawn garments; `ptncn data fetch fashion-mnist` downloads photographs"


@lru_cache(maxsize=1)
def drawn_clothes() -> Images:
    """Images of random width, height and shade.

    >>> drawn_clothes().pixels.shape
    (500, 28, 28)
    """
    outlines = [[(14 + x, y) for x, y in half] + [(14 - x, y) for x, y in reversed(half)] for half in HALVES.values()]
    outlines += [list(whole) for whole in WHOLES.values()]
    words = random_words(stream_key(0, "clothes"), np.arange(GARMENTS)[:, None], np.arange(1))
    pixels, labels = [], []
    for number, random in enumerate(to_unit(words)[:, 0]):
        labels.append(number % len(outlines))
        scale = 0.8 + 0.2 * random[:2]
        corners = (np.array(outlines[labels[-1]]) - 14) * scale + 14
        sheet = Image.new("L", (28 * FINE, 28 * FINE))
        shade = round(150 + 105 * float(random[2]))
        ImageDraw.Draw(sheet).polygon([(x, y) for x, y in (corners * FINE).tolist()], fill=shade)
        pixels.append(np.asarray(sheet.reduce(FINE)))
    return Images("clothes", np.stack(pixels), np.array(labels, np.uint8))
