"""Images that need no download: drawn here, or taken from installed packages.

Digits are the 1,797 handwritten ones of scikit-learn, scaled from 8×8 to 28×28 pixels. Letters are A to J in the fonts
of matplotlib, in several sizes, weights and slants; whole fonts are held out, so that validation and test letters come
from fonts that are not in the training split, and fonts whose A to J are symbols are left out. Shapes are drawn
with random size, proportions, thickness, direction and position.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from ptncn.data.images import Images, choose_split
from ptncn.data.sequences import random_words, stream_key, to_unit

if TYPE_CHECKING:
    from ptncn.data.registry import Dataset

TEST_DIGITS = 297
INK = 20
"""Width and height of the digit in pixels, with a margin of 4 as in MNIST."""


@lru_cache(maxsize=1)
def digits() -> tuple[Images, Images]:
    """1,500 images for development and the last 297 for the test, because neighbouring digits share a writer."""
    from sklearn.datasets import load_digits  # slow to import and seldom needed

    small = load_digits()
    pixels = np.zeros((len(small.images), 28, 28), np.uint8)
    margin = (28 - INK) // 2
    for image, target in zip(small.images, pixels, strict=True):
        grey = Image.fromarray((image * (255 / 16)).astype(np.float32))
        smooth = np.asarray(grey.resize((INK, INK), Image.Resampling.BICUBIC))
        target[margin:-margin, margin:-margin] = smooth.clip(0, 255).round()
    images = Images("digits", pixels, small.target.astype(np.uint8))
    return images[:-TEST_DIGITS], images[-TEST_DIGITS:]


LETTERS = "ABCDEFGHIJ"
DEVELOPMENT_FACES = (
    "DejaVuSans",
    "DejaVuSans-Bold",
    "DejaVuSans-Oblique",
    "DejaVuSansMono-Bold",
    "DejaVuSansMono-Oblique",
    "DejaVuSansMono-BoldOblique",
    "DejaVuSerif",
    "DejaVuSerif-Bold",
    "DejaVuSerif-BoldItalic",
    "STIXGeneral",
    "STIXGeneralItalic",
    "cmr10",
    "cmb10",
    "cmmi10",
    "cmsy10",
    "DejaVuSans-BoldOblique",  # these last three of eighteen are the last sixth: `valid`
    "STIXGeneralBolIta",
    "cmti10",
)
TEST_FACES = "DejaVuSansMono", "DejaVuSerif-Italic", "STIXGeneralBol", "cmss10", "cmtt10"
HEIGHTS = 16, 19, 22, 25
"""Height of the letter in pixels."""
STROKES = 0, 3
"""Extra stroke width, in pixels of the glyph before it is scaled down."""
SLANTS = -0.15, 0.0, 0.12, 0.24
LETTER_GRID = 3
"""Letters are drawn at this many times the resolution and averaged, for smooth edges."""
GLYPH_SIZE = 100


@lru_cache(maxsize=1)
def letters() -> tuple[Images, Images]:
    """5,760 images of eighteen fonts for development, and 1,600 of five other fonts for the test."""
    return _render(DEVELOPMENT_FACES), _render(TEST_FACES)


def _render(faces: tuple[str, ...]) -> Images:
    import matplotlib  # slow to import and seldom needed

    folder = Path(matplotlib.get_data_path()) / "fonts" / "ttf"
    pixels: list[NDArray[np.uint8]] = []
    labels: list[int] = []
    for face, stroke in product(faces, STROKES):
        font = ImageFont.truetype(folder / f"{face}.ttf", GLYPH_SIZE, layout_engine=ImageFont.Layout.BASIC)
        glyphs = [_glyph(font, letter, stroke) for letter in LETTERS]
        for height, slant in product(HEIGHTS, SLANTS):
            pixels += [_place(glyph, height, slant) for glyph in glyphs]
            labels += range(len(LETTERS))
    return Images("letters", np.stack(pixels), np.array(labels, np.uint8))


def _glyph(font: ImageFont.FreeTypeFont, letter: str, stroke: int) -> Image.Image:
    """The letter, cropped to its bounding box."""
    sheet = Image.new("L", (3 * GLYPH_SIZE, 3 * GLYPH_SIZE))
    ImageDraw.Draw(sheet).text((GLYPH_SIZE, GLYPH_SIZE), letter, fill=255, font=font, stroke_width=stroke)
    return sheet.crop(sheet.getbbox())


def _place(glyph: Image.Image, height: int, slant: float) -> NDArray[np.uint8]:
    """(28, 28) the letter in the centre, `height` pixels high, or less if it would be too wide."""
    side = 28 * LETTER_GRID
    widest = 27 * LETTER_GRID
    scale = max(glyph.height / (height * LETTER_GRID), (glyph.width + abs(slant) * glyph.height) / widest)
    middle = side / 2
    left = glyph.width / 2 - scale * (1 + slant) * middle
    top = glyph.height / 2 - scale * middle
    placed = glyph.transform(
        (side, side),
        Image.Transform.AFFINE,
        (scale, scale * slant, left, 0, scale, top),
        Image.Resampling.BILINEAR,
    )
    return np.asarray(placed.reduce(LETTER_GRID))


KINDS = "disc", "ring", "square", "frame", "triangle", "delta", "star", "cross", "bar", "half"
HOLLOW = "ring", "frame", "delta"
SHAPE_GRID = 4
"""Shapes are drawn at this many times the resolution and averaged, for smooth edges."""

Outline = NDArray[np.float64]
"""(corners, 2) x and y around the origin, at most 1 away from it."""


@lru_cache(maxsize=1)
def shapes() -> tuple[Images, Images]:
    """6,000 images for development and 1,000 for the test."""
    return _draw_all("development", 6_000), _draw_all("test", 1_000)


def _draw_all(stream: str, count: int) -> Images:
    index = np.arange(count)[:, None]
    words = random_words(stream_key(0, f"shapes/{stream}"), index, np.arange(2))
    random = to_unit(words).reshape(count, 8)
    labels = np.arange(count) % len(KINDS)
    pixels = [_draw(KINDS[label], row) for label, row in zip(labels, random, strict=True)]
    return Images("shapes", np.stack(pixels), labels.astype(np.uint8))


def _draw(kind: str, random: NDArray[np.float64]) -> NDArray[np.uint8]:
    """(28, 28) one shape, determined by eight random numbers from 0 to 1."""
    radius = 8 + 4.5 * random[0]  # pixels
    stretch = np.array([1, 0.75 + 0.25 * random[1]])
    thickness = 0.25 + 0.25 * random[2]
    angle = 2 * np.pi * random[3]
    middle = 14 + (random[4:6] - 0.5) * 2 * (13.5 - radius)
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])

    sheet = Image.new("L", (28 * SHAPE_GRID, 28 * SHAPE_GRID))
    pen = ImageDraw.Draw(sheet)
    outlines = [(_outline(kind, thickness), 255)]
    if kind in HOLLOW:
        outlines.append((_outline(kind, thickness) * (1 - thickness), 0))
    for outline, shade in outlines:
        corners = (outline * stretch * radius) @ turn.T + middle
        pen.polygon([(x, y) for x, y in (corners * SHAPE_GRID).tolist()], fill=shade)
    return np.asarray(sheet.reduce(SHAPE_GRID))


def _outline(kind: str, thickness: float) -> Outline:
    if kind in ("disc", "ring"):
        return _regular(40)
    if kind in ("square", "frame"):
        return _regular(4)
    if kind in ("triangle", "delta"):
        return _regular(3)
    if kind == "star":
        return np.tile([1.0, 0.5], 5)[:, None] * _regular(10)
    if kind == "bar":
        return np.array([[-1, -thickness], [1, -thickness], [1, thickness], [-1, thickness]]) * 0.92
    if kind == "half":
        return _regular(40)[:21] - [0, 0.4]
    arm = thickness * 0.8
    quarter = np.array([[1, -arm], [1, arm], [arm, arm]])
    turns = [np.array([[0, -1], [1, 0]]), np.array([[-1, 0], [0, -1]]), np.array([[0, 1], [-1, 0]])]
    return np.vstack([quarter, *(quarter @ turn.T for turn in turns)])


def _regular(corners: int) -> Outline:
    angles = 2 * np.pi * np.arange(corners) / corners
    return np.stack([np.cos(angles), np.sin(angles)], axis=-1)


EMBEDDED_IMAGES = {"digits": digits, "letters": letters, "shapes": shapes}


def load(dataset: Dataset, split: str) -> Images:
    """A split of the embedded images of that name."""
    development, test = EMBEDDED_IMAGES[dataset.name]()
    return test if split == "test" else choose_split(development, split)
