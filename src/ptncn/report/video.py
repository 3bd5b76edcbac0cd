"""Video: filmstrips and animations of true frames with their predictions."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure as Canvas
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from ptncn.report.model import Picture
from ptncn.report.theme import INK, save, theme

Frames = NDArray[np.uint8]
"""(T, height, width)"""
GAP = 3
"""Pixels between frames."""
BACKGROUND, LABEL, FONT_SIZE = 68, 255, 13
"""In animations: a grey that is distinct from both a white page and a black frame; the labels and their size."""


def filmstrip(
    name: str, rows: Mapping[str, Frames], *, columns: int = 10, times: Sequence[str] | None = None
) -> Picture:
    """Frames side by side, one row per label, as in the paper's figures: the truth, then the predictions.

    The first frame is left out, since it cannot be predicted. With a label per frame in `times`, all are shown.
    """
    count, height, width = check_frames(rows)
    first = min(1, count - 1) if times is None else 0
    shown = min(columns, count - first) if times is None else count
    moments = np.unique(np.linspace(first, count - 1, shown).round().astype(int))
    names = [str(moment + 1) for moment in moments] if times is None else list(times)
    sheet = np.zeros((len(rows) * (height + GAP) - GAP, len(moments) * (width + GAP) - GAP, 4), np.uint8)
    for row, frames in enumerate(rows.values()):
        for column, moment in enumerate(moments):
            y, x = row * (height + GAP), column * (width + GAP)
            sheet[y : y + height, x : x + width, :3] = frames[moment][..., None]
            sheet[y : y + height, x : x + width, 3] = 255  # the gaps stay transparent
    left, top, across = 0.95, 0.3, 7.6
    down = across * sheet.shape[0] / sheet.shape[1]
    with theme():
        figure = Canvas(figsize=(left + across + 0.05, top + down + 0.05))
        size = figure.get_size_inches()
        axes = figure.add_axes((left / size[0], 0.05 / size[1], across / size[0], down / size[1]))
        axes.imshow(sheet, interpolation="none", aspect="auto")
        axes.grid(visible=False)
        for spine in axes.spines.values():
            spine.set_visible(False)
        centres = np.arange(len(moments)) * (width + GAP) + width / 2
        axes.set_xticks(centres, names, size=9)
        axes.set_yticks(np.arange(len(rows)) * (height + GAP) + height / 2, list(rows), size=9, color=INK)
        axes.tick_params(length=0, top=True, labeltop=True, bottom=False, labelbottom=False)
        return save(figure, name, dpi=110, grey=True)


def animation(name: str, rows: Mapping[str, list[Frames]], *, enlarge: int = 2, milliseconds: int = 200) -> Picture:
    """A GIF with one column per label and one row per sequence."""
    flat = {f"{label} {n}": each for label, sequences in rows.items() for n, each in enumerate(sequences)}
    times, height, width = check_frames(flat)
    stills = [_still(rows, moment, height * enlarge, width * enlarge) for moment in range(times)]
    gif, png = io.BytesIO(), io.BytesIO()
    stills[0].save(gif, "GIF", save_all=True, append_images=stills[1:], duration=milliseconds, loop=0, optimize=True)
    stills[times // 2].save(png, "PNG", optimize=True)
    return Picture(name, *stills[0].size, png.getvalue(), gif=gif.getvalue())


def _still(rows: Mapping[str, list[Frames]], moment: int, height: int, width: int) -> Image.Image:
    """One frame of the animation in 16 greys, which make a small file and hardly differ from 256."""
    count = max(len(sequences) for sequences in rows.values())
    top = FONT_SIZE + 9
    sheet = Image.new("L", (len(rows) * (width + GAP) - GAP, top + count * (height + GAP) - GAP), BACKGROUND)
    pen, font = ImageDraw.Draw(sheet), ImageFont.load_default(FONT_SIZE)
    for column, (label, sequences) in enumerate(rows.items()):
        x = column * (width + GAP)
        pen.text((x + width // 2, 3), label, LABEL, font, anchor="ma")
        for row, frames in enumerate(sequences):
            still = Image.fromarray(frames[moment]).resize((width, height), Image.Resampling.NEAREST)
            sheet.paste(still, (x, top + row * (height + GAP)))
    levels = (np.asarray(sheet, np.float32) / 17).round() * 17
    return Image.fromarray(levels.astype(np.uint8))


def check_frames(rows: Mapping[str, Frames]) -> tuple[int, int, int]:
    """The shape that all rows share."""
    shapes = {label: frames.shape for label, frames in rows.items()}
    if not shapes or len(set(shapes.values())) > 1 or len(next(iter(shapes.values()))) != 3:
        raise ValueError(f"frames: expected equal shapes (times, height, width), got {shapes or 'none'}")
    times, height, width = next(iter(shapes.values()))
    if not times * height * width:
        raise ValueError(f"frames: expected at least one pixel, got shape {(times, height, width)}")
    return times, height, width
