"""Parts of series: slow changes, days, spikes, bursts."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Draw = np.random.Generator
Places = list[int]
"""Rows where anomalies begin."""
Make = Callable[[int, Places, int, Draw], np.ndarray]
"""A generator of (T,) values with anomalies at these rows; it also gets the number of rows of a window."""
DAY = 288


def wander(rows: int, memory: float, size: float, draw: Draw) -> np.ndarray:
    """An autoregression of order 1 with standard deviation `size`."""
    values, noise = np.zeros(rows), size * np.sqrt(1 - memory**2) * draw.normal(size=rows)
    last = size * draw.normal()
    for t in range(rows):
        values[t] = last = memory * last + noise[t]
    return values


def day(rows: int, period: float, draw: Draw, shape: str | None = None) -> np.ndarray:
    """A cycle from 0 to 1."""
    t = np.arange(rows) / period + draw.random()
    shape = shape or str(draw.choice(["sine", "office", "double"]))
    if shape == "sine":
        return 0.5 + 0.5 * np.sin(2 * np.pi * t)
    if shape == "office":
        return 1 / (1 + np.exp(-25 * (t % 1 - 0.3))) - 1 / (1 + np.exp(-25 * (t % 1 - 0.75)))
    wave = np.sin(2 * np.pi * t) + 0.6 * np.sin(4 * np.pi * t + 1)
    return (wave + 1.4) / 2.9


def spikes(rows: int, rate: float, draw: Draw, shape: float = 2.5, width: int = 1) -> np.ndarray:
    """Ordinary spikes: Pareto-distributed heights, a few rows wide."""
    values = np.zeros(rows)
    for t in np.flatnonzero(draw.random(rows) < rate):
        length = 1 + int(draw.integers(width))
        values[t : t + length] += (0.3 + draw.pareto(shape)) * draw.uniform(0.5, 1, length)[: rows - t]
    return values


def bursts(rows: int, rate: float, draw: Draw, shape: float, decay: float) -> np.ndarray:
    """A sudden rise that decays."""
    pushes = np.where(draw.random(rows) < rate, draw.pareto(shape, rows) + 0.2, 0.0)
    values, last = np.zeros(rows), 0.0
    for t in range(rows):
        values[t] = last = decay * last + pushes[t]
    return values


def length(window: int, draw: Draw, low: float = 0.1, high: float = 1.0) -> int:
    return max(2, int(window * draw.uniform(low, high)))


def add_spike(y: np.ndarray, at: int, size: float, draw: Draw, width: int = 4) -> None:
    rows = int(draw.integers(1, width + 1))
    y[at : at + rows] += size * draw.uniform(0.6, 1, min(rows, len(y) - at))
