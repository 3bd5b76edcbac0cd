"""The record of a demo run: plain values from which figures and page are made."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any

import numpy as np

from ptncn.demo.simulate import (
    CANVAS,
    DATASETS,
    PARTS,
    SCENE,
    Array,
    Simulation,
    Size,
    count_weights,
    kept_scenes,
    predictable,
)
from ptncn.learner import Learner
from ptncn.records import pack, versions

SCHEMA = 1
POINTS = 40
"""Points of a curve in each part."""
FIRST, LAST = 10, 50
"""Scenes at the beginning and at the end of a part that are summarised, if there are as many."""


def make_record(
    simulation: Simulation, learners: Mapping[str, Learner], size: Size, seed: int, command: str
) -> dict[str, Any]:
    """Everything that the page shows. Errors are squared, summed over pixels, averaged over frames."""
    frames = len(PARTS) * size.frames
    return {
        "schema": SCHEMA,
        "command": command,
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "versions": versions(),
        "seed": seed,
        "life": list(PARTS),
        "worlds": list(DATASETS),
        "canvas": CANVAS,
        "scene": SCENE,
        "scenes": size.scenes,
        "looked_at": size.test_scenes,
        "first": min(FIRST, size.scenes) * SCENE,
        "last": min(LAST, size.scenes) * SCENE,
        "learners": {
            name: {
                "weights": count_weights(learner),
                "milliseconds": round(1000 * simulation.seconds[name] / frames, 3),
                "options": learner.options(),
            }
            for name, learner in learners.items()
        },
        "parts": [_part(simulation, part) for part in range(len(PARTS))],
        "curve": {
            "frames": _middles(size),
            **{name: _rounded(_blocks(each[..., 1:].mean(-1))) for name, each in simulation.errors.items()},
        },
        "surprise": [_rounded(_blocks(each)) for each in np.moveaxis(simulation.surprise[..., 1:, :].mean(2), -1, 0)],
        "looks": {
            name: [[round(each, 3) for each in row] for row in rows] for name, rows in simulation.evaluations.items()
        },
        "films": {
            "scenes": [[part, scene] for part in range(len(PARTS)) for scene in kept_scenes(size.scenes)],
            **{name: pack(frames) for name, frames in simulation.films.items()},
        },
    }


def _part(simulation: Simulation, part: int) -> dict[str, Any]:
    """Errors in a part, in its first frames and in its last."""

    def means(chosen: slice) -> dict[str, float]:
        return {name: round(predictable(each[part, chosen]), 3) for name, each in simulation.errors.items()}

    return {
        "world": PARTS[part],
        "all": means(slice(None)),
        "first": means(slice(FIRST)),
        "last": means(slice(-LAST, None)),
    }


def _blocks(values: Array) -> Array:
    """(parts, scenes) → (parts · points,) means over neighbouring scenes of the same part."""
    points = min(POINTS, values.shape[1])
    return np.array([block.mean() for part in values for block in np.array_split(part, points)])


def _middles(size: Size) -> list[int]:
    """The frame in the middle of each block."""
    scenes: Array = np.arange(len(PARTS) * size.scenes, dtype=float).reshape(len(PARTS), size.scenes) + 0.5
    return [round(middle * SCENE) for middle in _blocks(scenes).tolist()]


def _rounded(values: Array) -> list[float]:
    return [round(value, 3) for value in values.tolist()]
