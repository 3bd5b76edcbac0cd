"""Ten drawn shapes, each image with a size, proportions, thickness, direction and place of its own."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from ptncn.data.counter import random_words, stream_key, to_unit
from ptncn.data.images import Images

KINDS = "disc", "ring", "square", "frame", "triangle", "delta", "star", "cross", "bar", "half"
HOLLOW = "ring", "frame", "delta"
FINE = 4
"""Shapes are drawn this many times finer, and the mean makes the grey edges."""

Outline = NDArray[np.float64]
"""(corners, 2) x and y around the origin, at most 1 away from it."""


@lru_cache(maxsize=1)
def shapes() -> tuple[Images, Images]:
    """6,000 images for development and 1,000 for the test."""
    return _draw_all("development", 6_000), _draw_all("test", 1_000)


def _draw_all(stream: str, count: int) -> Images:
    index = np.arange(count)[:, None]
    words = random_words(stream_key(0, f"shapes/{stream}"), index, np.arange(2))
    chance = to_unit(words).reshape(count, 8)
    labels = np.arange(count) % len(KINDS)
    pixels = [_draw(KINDS[label], row) for label, row in zip(labels, chance, strict=True)]
    return Images("shapes", np.stack(pixels), labels.astype(np.uint8))


def _draw(kind: str, chance: NDArray[np.float64]) -> NDArray[np.uint8]:
    """(28, 28) one shape; eight random numbers from 0 to 1 determine everything about it."""
    radius = 8 + 4.5 * chance[0]  # pixels
    stretch = np.array([1, 0.75 + 0.25 * chance[1]])
    thickness = 0.25 + 0.25 * chance[2]
    angle = 2 * np.pi * chance[3]
    middle = 14 + (chance[4:6] - 0.5) * 2 * (13.5 - radius)
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])

    sheet = Image.new("L", (28 * FINE, 28 * FINE))
    pen = ImageDraw.Draw(sheet)
    outlines = [(_outline(kind, thickness), 255)]
    if kind in HOLLOW:
        outlines.append((_outline(kind, thickness) * (1 - thickness), 0))
    for outline, shade in outlines:
        corners = (outline * stretch * radius) @ turn.T + middle
        pen.polygon([(x, y) for x, y in (corners * FINE).tolist()], fill=shade)
    return np.asarray(sheet.reduce(FINE))


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
