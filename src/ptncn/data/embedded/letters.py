"""The letters A to J in the fonts that ship with matplotlib, in several sizes, weights and slants.

Whole fonts are held out: test and validation letters come from fonts that are not in the training split. Fonts of
matplotlib whose A to J are symbols are left out.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from ptncn.data.images import Images

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
"""Extra weight, in pixels of the glyph before it is made small."""
SLANTS = -0.15, 0.0, 0.12, 0.24
FINE = 3
"""Letters are placed on a grid this many times finer, whose mean makes the grey edges."""
GLYPH_SIZE = 100


@lru_cache(maxsize=1)
def letters() -> tuple[Images, Images]:
    """5,760 images of eighteen fonts for development, and 1,600 of five other fonts for the test."""
    return _render(DEVELOPMENT_FACES), _render(TEST_FACES)


def _render(faces: tuple[str, ...]) -> Images:
    import matplotlib  # takes a while, and is seldom needed

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
    """The letter, cut out along its edges."""
    sheet = Image.new("L", (3 * GLYPH_SIZE, 3 * GLYPH_SIZE))
    ImageDraw.Draw(sheet).text((GLYPH_SIZE, GLYPH_SIZE), letter, fill=255, font=font, stroke_width=stroke)
    return sheet.crop(sheet.getbbox())


def _place(glyph: Image.Image, height: int, slant: float) -> NDArray[np.uint8]:
    """(28, 28) the letter in the middle, `height` pixels high unless it would then be too wide."""
    side = 28 * FINE
    widest = 27 * FINE
    scale = max(glyph.height / (height * FINE), (glyph.width + abs(slant) * glyph.height) / widest)
    middle = side / 2
    left = glyph.width / 2 - scale * (1 + slant) * middle
    top = glyph.height / 2 - scale * middle
    placed = glyph.transform(
        (side, side),
        Image.Transform.AFFINE,
        (scale, scale * slant, left, 0, scale, top),
        Image.Resampling.BILINEAR,
    )
    return np.asarray(placed.reduce(FINE))
