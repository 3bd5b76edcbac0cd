"""The film of a life: what came beside what each learner expected, at its beginning, at every change, at its end."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageColor, ImageDraw, ImageFont

from ptncn.demo.contestants import LSTM, NAMES, PTNCN
from ptncn.records import unpack
from ptncn.report.drawing import ORANGE, SKY
from ptncn.report.parts import Picture

Frames = NDArray[np.uint8]
"""(T, height, width)"""
NIGHT, LIGHT, DIM = "#171717", "#e8e8e8", "#a2a2a2"
COLOURS = {"truth": DIM, PTNCN: SKY, LSTM: ORANGE}
"""Those of the figures, a little lighter: this is a cinema."""
LABELS = {"truth": "what came", PTNCN: f"{NAMES[PTNCN]} expected", LSTM: f"{NAMES[LSTM]} expected"}
SIDE, GAP, TOP, BOTTOM = 160, 10, 64, 40
MILLISECONDS = 140
LONG, BEFORE = 13, 6
"""Frames of a scene at either end of the life, and of the one before a change."""


@dataclass(frozen=True)
class Shot:
    """Some frames of one scene."""

    heading: str
    place: float
    """In the life, from 0 to 1."""
    rows: Mapping[str, Frames]
    """By "truth" and learner."""


def shots(record: Mapping[str, Any]) -> list[Shot]:
    """What is shown, from the record alone."""
    side, life, scenes = record["canvas"], record["life"], record["films"]["scenes"]
    films = {name: unpack(record["films"][name]) for name in LABELS}
    frames = record["scenes"] * record["scene"]

    def shot(part: int, scene: int, chosen: slice, heading: str) -> Shot:
        number = scenes.index([part, scene])
        rows = {name: each[number].reshape(-1, side, side)[chosen] for name, each in films.items()}
        return Shot(heading, (part + scene / record["scenes"]) / len(life), rows)

    last, told = record["scenes"] - 1, f"after {frames:,} frames of them"
    made = [shot(0, 0, slice(0, LONG), f"{life[0]}: the very first frames")]
    for part, world in enumerate(life[1:], start=1):
        how = "are back" if world in life[:part] else "for the first time"
        made.append(shot(part - 1, last, slice(-BEFORE, None), f"{life[part - 1]}, {told}"))
        made.append(shot(part, 0, slice(0, LONG), f"the world changes: {world} {how}"))
    made.append(shot(len(life) - 1, last, slice(0, LONG), f"{life[-1]}, at the end"))
    return made


def film(record: Mapping[str, Any]) -> Picture:
    """A moving picture of a few seconds; its still is the one after the first change."""
    told = shots(record)
    stills = [_still(shot, moment, record["life"]) for shot in told for moment in range(len(shot.rows["truth"]))]
    gif, png = io.BytesIO(), io.BytesIO()
    stills[0].save(gif, "GIF", save_all=True, append_images=stills[1:], duration=MILLISECONDS, loop=0)
    stills[sum(len(shot.rows["truth"]) for shot in told[:2]) + LONG - 1].save(png, "PNG", optimize=True)
    return Picture("film", *stills[0].size, png.getvalue(), gif=gif.getvalue())


def frame_errors(rows: Mapping[str, Frames], name: str) -> list[float]:
    """Squared error of each frame; of "truth", that of repeating the last frame, 0 at first."""
    truth = rows["truth"] / 255
    expected = np.concatenate([truth[:1], truth[:-1]]) if name == "truth" else rows[name] / 255
    errors: list[float] = np.square(expected - truth).sum((1, 2)).tolist()
    return errors


def _still(shot: Shot, moment: int, life: Sequence[str]) -> Image.Image:
    width = len(shot.rows) * (SIDE + GAP) + GAP
    sheet = Image.new("RGB", (width, TOP + SIDE + BOTTOM), NIGHT)
    pen, small, large = ImageDraw.Draw(sheet), ImageFont.load_default(14), ImageFont.load_default(18)
    _timeline(pen, shot.place, life, width)
    pen.text((width // 2, 31), shot.heading, LIGHT, large, anchor="mm")
    for column, (name, frames) in enumerate(shot.rows.items()):
        x, colour = GAP + column * (SIDE + GAP), COLOURS[name]
        pen.text((x + SIDE // 2, TOP - 11), LABELS[name], LIGHT if name == "truth" else colour, small, anchor="mm")
        picture = Image.fromarray(frames[moment]).resize((SIDE, SIDE), Image.Resampling.NEAREST)
        sheet.paste(picture, (x, TOP))
        pen.rectangle((x - 1, TOP - 1, x + SIDE, TOP + SIDE), outline=colour)
        error = frame_errors(shot.rows, name)[moment]
        if name == "truth" and moment == 0:
            continue  # there was no last frame to repeat
        pen.rectangle((x, TOP + SIDE + 8, x + min(SIDE, round(error / 80 * SIDE)), TOP + SIDE + 14), fill=colour)
        whose = "last frame again:" if name == "truth" else "error"
        pen.text((x, TOP + SIDE + 27), f"{whose} {error:.0f}", colour, small, anchor="lm")
    return sheet.quantize(palette=_palette(), dither=Image.Dither.NONE)


def _timeline(pen: ImageDraw.ImageDraw, place: float, life: Sequence[str], width: int) -> None:
    """The whole life along the top, the part that is over in light."""
    long = (width - GAP) / len(life)
    for part in range(len(life)):
        left, right = GAP + part * long, part * long + long
        pen.rectangle((left, 8, right, 11), fill="#444444")
        lived = min(1.0, max(0.0, place * len(life) - part))
        if lived > 0:
            pen.rectangle((left, 8, left + lived * (right - left), 11), fill=LIGHT)


def _palette() -> Image.Image:
    """12 greys, which make a small file, and the colours in two strengths."""
    colours = [(round(level * 255 / 11),) * 3 for level in range(12)]
    for colour in (SKY, ORANGE):
        full = ImageColor.getrgb(colour)[:3]
        colours += [full, tuple((part + 17) // 2 for part in full)]  # type: ignore[list-item]
    holder = Image.new("P", (1, 1))
    holder.putpalette([part for colour in colours for part in colour])
    return holder
