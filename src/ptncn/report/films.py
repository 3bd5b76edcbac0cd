"""Filmstrips and moving pictures: what came, and below it what was expected."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure as Canvas
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from ptncn.report.drawing import INK, finish, rules
from ptncn.report.parts import Picture

Frames = NDArray[np.uint8]
"""(T, height, width)"""
GAP = 3
"""Pixels between frames."""
SHADE, CHALK, LETTERS = 68, 255, 13
"""Of films: a ground that is dark beside a page and bright beside a black frame; the labels on it, and their size."""


def filmstrip(
    name: str, rows: Mapping[str, Frames], *, columns: int = 10, times: Sequence[str] | None = None
) -> Picture:
    """Frames side by side, one row a label, as in the paper's figures: the truth, and below it the predictions.

    They begin with the second frame: nothing came before the first by which it could be expected. With a name for
    each of `times`, all frames are shown.
    """
    count, height, width = check(rows)
    first = min(1, count - 1) if times is None else 0
    shown = min(columns, count - first) if times is None else count
    moments = np.unique(np.linspace(first, count - 1, shown).round().astype(int))
    names = [str(moment + 1) for moment in moments] if times is None else list(times)
    sheet = np.zeros((len(rows) * (height + GAP) - GAP, len(moments) * (width + GAP) - GAP, 4), np.uint8)
    for row, frames in enumerate(rows.values()):
        for column, moment in enumerate(moments):
            y, x = row * (height + GAP), column * (width + GAP)
            sheet[y : y + height, x : x + width, :3] = frames[moment][..., None]
            sheet[y : y + height, x : x + width, 3] = 255  # what lies between frames stays clear
    left, top, across = 0.95, 0.3, 7.6
    down = across * sheet.shape[0] / sheet.shape[1]
    with rules():
        figure = Canvas(figsize=(left + across + 0.05, top + down + 0.05))
        size = figure.get_size_inches()
        axes = figure.add_axes((left / size[0], 0.05 / size[1], across / size[0], down / size[1]))
        axes.imshow(sheet, interpolation="none", aspect="auto")
        axes.grid(visible=False)
        for spine in axes.spines.values():
            spine.set_visible(False)
        middles = np.arange(len(moments)) * (width + GAP) + width / 2
        axes.set_xticks(middles, names, size=9)
        axes.set_yticks(np.arange(len(rows)) * (height + GAP) + height / 2, list(rows), size=9, color=INK)
        axes.tick_params(length=0, top=True, labeltop=True, bottom=False, labelbottom=False)
        return finish(figure, name, dpi=110, grey=True)


def film(name: str, rows: Mapping[str, list[Frames]], *, enlarge: int = 2, milliseconds: int = 200) -> Picture:
    """A moving picture: one column a label, one row a sequence, so that all that came is beside what was expected."""
    times, height, width = check({f"{label} {n}": each for label, many in rows.items() for n, each in enumerate(many)})
    stills = [_moment(rows, moment, height * enlarge, width * enlarge) for moment in range(times)]
    gif, png = io.BytesIO(), io.BytesIO()
    stills[0].save(gif, "GIF", save_all=True, append_images=stills[1:], duration=milliseconds, loop=0, optimize=True)
    stills[times // 2].save(png, "PNG", optimize=True)
    return Picture(name, *stills[0].size, png.getvalue(), gif=gif.getvalue())


def _moment(rows: Mapping[str, list[Frames]], moment: int, height: int, width: int) -> Image.Image:
    """On 16 greys, which make a small file and hardly differ from 256."""
    count = max(len(many) for many in rows.values())
    top = LETTERS + 9
    sheet = Image.new("L", (len(rows) * (width + GAP) - GAP, top + count * (height + GAP) - GAP), SHADE)
    pen, font = ImageDraw.Draw(sheet), ImageFont.load_default(LETTERS)
    for column, (label, many) in enumerate(rows.items()):
        x = column * (width + GAP)
        pen.text((x + width // 2, 3), label, CHALK, font, anchor="ma")
        for row, frames in enumerate(many):
            still = Image.fromarray(frames[moment]).resize((width, height), Image.Resampling.NEAREST)
            sheet.paste(still, (x, top + row * (height + GAP)))
    levels = (np.asarray(sheet, np.float32) / 17).round() * 17
    return Image.fromarray(levels.astype(np.uint8))


def check(rows: Mapping[str, Frames]) -> tuple[int, int, int]:
    """The one shape of all of them."""
    shapes = {label: frames.shape for label, frames in rows.items()}
    if not shapes or len(set(shapes.values())) > 1 or len(next(iter(shapes.values()))) != 3:
        raise ValueError(f"frames of {shapes or 'nothing'}; (times, height, width), all alike, would be right")
    times, height, width = next(iter(shapes.values()))
    if not times * height * width:
        raise ValueError(f"frames of shape {(times, height, width)}: there is nothing to show")
    return times, height, width
