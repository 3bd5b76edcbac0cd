"""The figures of the demo, from its record alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ptncn.demo.contestants import LSTM, NAMES, PTNCN
from ptncn.demo.film import film
from ptncn.demo.words import part_names
from ptncn.records import unpack
from ptncn.report.curves import Curve, error_curves, surprise_over_time
from ptncn.report.films import filmstrip
from ptncn.report.matrices import task_matrices
from ptncn.report.parts import Picture

Record = Mapping[str, Any]
AROUND = 5
"""Frames on either side of a change that a filmstrip shows."""


def pictures(record: Record) -> dict[str, Picture]:
    """The film and all figures, by name."""
    strips = [strip(record, part) for part in range(1, len(record["life"]))]
    return {
        picture.name: picture for picture in (film(record), curves(record), surprise(record), *strips, looks(record))
    }


def curves(record: Record) -> Picture:
    """Errors as shares of that of repeating the last frame, which takes out what makes a scene easy or hard."""
    curve = record["curve"]
    copy = np.array(curve["copy"])
    shares = {name: (100 * np.array(curve[name]) / copy).tolist() for name in (PTNCN, LSTM, "copy")}
    return error_curves(
        "curves",
        [Curve(name, curve["frames"], values, name=NAMES[name]) for name, values in shares.items()],
        title="Error while learning",
        error="% of repeating the last frame",
        steps="frame",
        changes=_marks(record),
    )


def surprise(record: Record) -> Picture:
    """Of each layer of the P-TNCN."""
    return surprise_over_time(
        "surprise",
        np.array(record["surprise"]).T,
        title=f"Surprise of the {NAMES[PTNCN]}'s layers",
        times=record["curve"]["frames"],
        changes=_marks(record),
    )


def looks(record: Record) -> Picture:
    """Heat maps of what frozen weights make of unseen scenes."""
    return task_matrices(
        "looks",
        record["worlds"],
        {name: record["looks"][name] for name in (PTNCN, LSTM)},
        title="Unseen scenes, frozen weights: squared error",
        learnt=part_names(record),
    )


def strip(record: Record, part: int) -> Picture:
    """The last frames of the world before a part, and the first of the part."""
    scenes, side = record["films"]["scenes"], record["canvas"]
    before, after = scenes.index([part - 1, record["scenes"] - 1]), scenes.index([part, 0])
    rows = {}
    for name, label in (("truth", "what came"), (PTNCN, NAMES[PTNCN]), (LSTM, NAMES[LSTM])):
        frames = unpack(record["films"][name])
        both = np.concatenate([frames[before, -AROUND:], frames[after, :AROUND]])
        rows[label] = both.reshape(-1, side, side)
    times = [*(f"−{n}" for n in range(AROUND, 0, -1)), *(str(n) for n in range(1, AROUND + 1))]
    return filmstrip(f"change-{part}", rows, times=times)


def _marks(record: Record) -> list[tuple[float, str]]:
    """Where each part begins."""
    frames = record["scenes"] * record["scene"]
    return [(part * frames, name) for part, name in enumerate(part_names(record))]
