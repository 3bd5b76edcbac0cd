"""What a life comes to: one tree of plain values, from which the page is made and nothing else."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any

import numpy as np

from ptncn.demo.contestants import count_weights
from ptncn.demo.life import Array, Life, Size, foreseeable, kept_scenes
from ptncn.demo.worlds import CANVAS, LIFE, SCENE, WORLDS
from ptncn.learner import Learner
from ptncn.records import pack
from ptncn.records.record import versions

SCHEMA = 1
POINTS = 40
"""Of a curve, in each part."""
FIRST, LAST = 10, 50
"""Scenes that are summed up at the beginning and at the end of a part, where there are as many."""


def findings(life: Life, learners: Mapping[str, Learner], size: Size, seed: int, command: str) -> dict[str, Any]:
    """Everything worth keeping; errors are squared, summed over a frame's pixels, means over frames."""
    frames = len(LIFE) * size.frames
    return {
        "schema": SCHEMA,
        "command": command,
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "versions": versions(),
        "seed": seed,
        "life": list(LIFE),
        "worlds": list(WORLDS),
        "canvas": CANVAS,
        "scene": SCENE,
        "scenes": size.scenes,
        "looked_at": size.looks,
        "first": min(FIRST, size.scenes) * SCENE,
        "last": min(LAST, size.scenes) * SCENE,
        "learners": {
            name: {
                "weights": count_weights(learner),
                "milliseconds": round(1000 * life.seconds[name] / frames, 3),
                "options": learner.options(),
            }
            for name, learner in learners.items()
        },
        "parts": [_part(life, part) for part in range(len(LIFE))],
        "curve": {
            "frames": _middles(size),
            **{name: _rounded(_blocks(each[..., 1:].mean(-1))) for name, each in life.errors.items()},
        },
        "surprise": [_rounded(_blocks(each)) for each in np.moveaxis(life.surprise[..., 1:, :].mean(2), -1, 0)],
        "looks": {name: [[round(each, 3) for each in row] for row in rows] for name, rows in life.looks.items()},
        "films": {
            "scenes": [[part, scene] for part in range(len(LIFE)) for scene in kept_scenes(size.scenes)],
            **{name: pack(frames) for name, frames in life.films.items()},
        },
    }


def _part(life: Life, part: int) -> dict[str, Any]:
    """The error in a part, in its first frames and in its last."""

    def means(chosen: slice) -> dict[str, float]:
        return {name: round(foreseeable(each[part, chosen]), 3) for name, each in life.errors.items()}

    return {
        "world": LIFE[part],
        "all": means(slice(None)),
        "first": means(slice(FIRST)),
        "last": means(slice(-LAST, None)),
    }


def _blocks(values: Array) -> Array:
    """(parts, scenes) → (parts · points,) means of neighbouring scenes, none of which reaches over a border."""
    points = min(POINTS, values.shape[1])
    return np.array([block.mean() for part in values for block in np.array_split(part, points)])


def _middles(size: Size) -> list[int]:
    """The frame in the middle of each block."""
    scenes: Array = np.arange(len(LIFE) * size.scenes, dtype=float).reshape(len(LIFE), size.scenes) + 0.5
    return [round(middle * SCENE) for middle in _blocks(scenes).tolist()]


def _rounded(values: Array) -> list[float]:
    return [round(value, 3) for value in values.tolist()]
