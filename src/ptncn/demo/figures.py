"""The plots of the demo, from its record."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ptncn.demo.animation import animate
from ptncn.demo.learners import LSTM, NAMES, PTNCN
from ptncn.demo.narrative import part_names
from ptncn.records import unpack
from ptncn.report.labels import line_style
from ptncn.report.model import Picture
from ptncn.report.plots import Curve, error_curves, surprise_over_time, task_matrices
from ptncn.report.video import filmstrip

Record = Mapping[str, Any]
AROUND = 5
"""Frames on either side of a change in a filmstrip."""


def make_pictures(record: Record) -> dict[str, Picture]:
    """The animation and all plots, by name."""
    strips = [change_strip(record, part) for part in range(1, len(record["life"]))]
    pictures = (animate(record), error_plot(record), surprise_plot(record), *strips, evaluation_plot(record))
    return {picture.name: picture for picture in pictures}


def error_plot(record: Record) -> Picture:
    """Errors relative to repeating the last frame, which accounts for scenes being easier or harder."""
    curve = record["curve"]
    copy = np.array(curve["copy"])
    shares = {name: (100 * np.array(curve[name]) / copy).tolist() for name in (PTNCN, LSTM, "copy")}
    return error_curves(
        "curves",
        [Curve(NAMES[name], curve["frames"], values, line_style(name)) for name, values in shares.items()],
        title="Error while learning",
        error="% of repeating the last frame",
        steps="frame",
        changes=_changes(record),
    )


def surprise_plot(record: Record) -> Picture:
    """Surprise of each layer of the P-TNCN."""
    return surprise_over_time(
        "surprise",
        np.array(record["surprise"]).T,
        title=f"Surprise of the {NAMES[PTNCN]}'s layers",
        times=record["curve"]["frames"],
        changes=_changes(record),
    )


def evaluation_plot(record: Record) -> Picture:
    """Errors of frozen weights on unseen scenes, as heat maps."""
    return task_matrices(
        "looks",
        record["worlds"],
        {NAMES[name]: record["looks"][name] for name in (PTNCN, LSTM)},
        title="Unseen scenes, frozen weights: squared error",
        learnt=part_names(record),
    )


def change_strip(record: Record, part: int) -> Picture:
    """The last frames before a part and its first frames."""
    scenes, side = record["films"]["scenes"], record["canvas"]
    before, after = scenes.index([part - 1, record["scenes"] - 1]), scenes.index([part, 0])
    rows = {}
    for name, label in (("truth", "truth"), (PTNCN, NAMES[PTNCN]), (LSTM, NAMES[LSTM])):
        frames = unpack(record["films"][name])
        both = np.concatenate([frames[before, -AROUND:], frames[after, :AROUND]])
        rows[label] = both.reshape(-1, side, side)
    times = [*(f"−{n}" for n in range(AROUND, 0, -1)), *(str(n) for n in range(1, AROUND + 1))]
    return filmstrip(f"change-{part}", rows, times=times)


def _changes(record: Record) -> list[tuple[float, str]]:
    """The first frame and the name of each part."""
    frames = record["scenes"] * record["scene"]
    return [(part * frames, name) for part, name in enumerate(part_names(record))]
