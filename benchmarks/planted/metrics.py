"""A fifth family: single spikes are usual, and anomalies last for several rows.

Its parameters were chosen so that simple detectors score about the same as on the Numenta Anomaly Benchmark: a windowed
Gaussian 40 points, bursts of surprises 46 to 52, and 59 to 63 if values outside the range count as well.
"""

from __future__ import annotations

import numpy as np

from planted import world
from planted.parts import DAY, Draw, Make, Places, bursts, day, wander


def usual_spikes(n: int, rate: float, draw: Draw) -> np.ndarray:
    """Spikes of one row, up to 1 high."""
    return np.where(draw.random(n) < rate, draw.beta(2, 2, n), 0.0)


def restless(rows: int, draw: Draw) -> np.ndarray:
    """Random changes up and down, up to 1."""
    return draw.beta(0.7, 0.7, rows)


def end_of(at: int, n: int, draw: Draw, least: int, most: int) -> int:
    return min(n, at + int(np.exp(draw.uniform(np.log(least), np.log(most)))))


def spoil(y: np.ndarray, at: int, top: float, bottom: float, draw: Draw) -> None:
    """One anomaly, relative to the usual range from `bottom` to `top`."""
    n, size = len(y), top - bottom
    match draw.choice(["busy", "busy", "busy", "over", "over", "shift", "drop", "noise", "noise"]):
        case "busy":
            end = end_of(at, n, draw, 8, 80)
            y[at:end] += size * draw.uniform(0.4, 1.0) * restless(end - at, draw)
        case "over":
            end = end_of(at, n, draw, 2, 40)
            y[at:end] = top + size * draw.uniform(0.2, 2.0) * draw.uniform(0.5, 1, end - at)
        case "shift":
            y[at:] += size * draw.uniform(0.1, 0.5) * draw.choice([-1, 1])
        case "drop":
            end = end_of(at, n, draw, 3, 60)
            y[at:end] = bottom - size * draw.choice([0.0, 0.1, 0.3]) * draw.uniform(0.8, 1, end - at)
        case _:
            end = end_of(at, n, draw, 20, 150)
            y[at:end] += size * draw.uniform(0.2, 0.5) * draw.normal(size=end - at)


def processor(n: int, places: Places, window: int, draw: Draw) -> np.ndarray:
    """The load of a machine: nearly steady, with spikes of one row."""
    level = np.exp(draw.uniform(-2, 4))
    noise, height = level * draw.choice([0.01, 0.03, 0.08]), level * draw.uniform(0.2, 1.5)
    y = level + wander(n, draw.uniform(0, 0.8), noise, draw) + height * usual_spikes(n, draw.uniform(0.01, 0.06), draw)
    y += noise * draw.choice([0, 0, 5]) * day(n, DAY, draw)
    for at in places:
        spoil(y, at, level + height, max(0.0, level - 4 * noise), draw)
    return np.round(np.maximum(y, 0), 3)


def traffic_in(n: int, places: Places, window: int, draw: Draw) -> np.ndarray:
    """Bytes: mostly few, often many more for one row, and a batch at regular times."""
    base, often = np.exp(draw.uniform(8, 14)), draw.uniform(0.02, 0.2)
    y = base * draw.gamma(draw.uniform(5, 40), 0.05, n) + base * draw.uniform(3, 10) * usual_spikes(n, often, draw)
    every, high = int(draw.choice([72, 144, 288])), base * draw.choice([0, 10, 20])
    for at in range(int(draw.integers(every)), n, every):
        y[at : at + int(draw.integers(1, 4))] += high * draw.uniform(0.7, 1.0)
    top = float(np.quantile(y, 0.998))
    for at in places:
        spoil(y, at, top, 0.0, draw)
    return np.round(np.maximum(y, 0))


def disk(n: int, places: Places, window: int, draw: Draw) -> np.ndarray:
    """Writes: mostly none, and sometimes any amount."""
    y = np.where(draw.random(n) < draw.uniform(0.01, 0.3), draw.gamma(1.0, 1e6, n), 0.0)
    y = np.minimum(y, 4e6 * draw.uniform(0.8, 1, n))
    for at in places:
        end = end_of(at, n, draw, 6, 80)
        y[at:end] = draw.choice([2e6, 6e6, 2e7]) * restless(end - at, draw)
    return np.round(y)


def plateaus(n: int, places: Places, window: int, draw: Draw) -> np.ndarray:
    """Load that jumps between a few levels."""
    levels, y, at = draw.uniform(20, 60, int(draw.integers(2, 5))), np.zeros(n), 0
    while at < n:
        rows = 30 + int(draw.exponential(200))
        y[at : at + rows] = draw.choice(levels)
        at += rows
    y += draw.uniform(0.5, 3) * draw.normal(size=n)
    for at in places:
        spoil(y, at, float(levels.max()) + 8, float(levels.min()) - 8, draw)
    return np.clip(y, 0, 100)


def requests(n: int, places: Places, window: int, draw: Draw) -> np.ndarray:
    """Counts or latencies with a daily cycle."""
    mean = draw.uniform(20, 200) * (1 + draw.uniform(0, 1.5) * day(n, DAY, draw))
    mean *= 1 + draw.uniform(0.5, 1.5) * usual_spikes(n, draw.uniform(0.005, 0.03), draw)
    top, bottom = float(np.quantile(mean, 0.998)), float(mean.min()) / 2
    for at in places:
        spoil(mean, at, top, bottom, draw)
    return draw.poisson(np.maximum(mean, 0) * draw.gamma(30, 1 / 30, n)).astype(float)


def prices(n: int, places: Places, window: int, draw: Draw) -> np.ndarray:
    mean = draw.uniform(0.05, 1.5)
    y = mean * draw.gamma(draw.uniform(6, 20), 0.1, n) * (1 + 0.5 * day(n, 24, draw, "sine"))
    y += mean * draw.uniform(1, 4) * usual_spikes(n, draw.uniform(0.02, 0.06), draw)
    top = float(np.quantile(y, 0.997))
    for at in places:
        spoil(y, at, top, 0.0, draw)
    return np.round(np.maximum(y, 0), 4)


def road(n: int, places: Places, window: int, draw: Draw) -> np.ndarray:
    """Speed, occupancy or travel time at one point of a road, as integers."""
    rush = np.maximum(day(n, 190, draw, "double") - 0.5, 0)
    noisy = draw.gamma(4, 0.25, n)
    match draw.choice(["speed", "occupancy", "time"]):
        case "speed":
            y = 68 - draw.uniform(0, 50) * rush * noisy - 3 * noisy - 15 * usual_spikes(n, 0.02, draw)
            top, bottom = 75.0, float(np.quantile(y, 0.003))
            y, top, bottom = -y, -bottom, -top
            for at in places:
                spoil(y, at, top, bottom, draw)
            return np.round(np.clip(-y, 3, 90))
        case "occupancy":
            y = 2 + draw.uniform(5, 20) * rush * noisy + 2 * noisy + 10 * usual_spikes(n, 0.02, draw)
        case _:
            y = draw.uniform(80, 300) * (0.5 + 0.5 * noisy + rush + 2 * usual_spikes(n, 0.04, draw))
    top = float(np.quantile(y, 0.997))
    for at in places:
        spoil(y, at, top, 0.0, draw)
    return np.round(np.maximum(y, 0))


def mentions(n: int, places: Places, window: int, draw: Draw) -> np.ndarray:
    """Counts with heavy tails: a daily cycle, weekends, short crowds, and lasting news."""
    mean = np.exp(draw.uniform(0.5, 4.5))
    usual = np.exp(wander(n, 0.98, 0.2, draw) + draw.uniform(0.3, 1.0) * day(n, DAY, draw, "sine"))
    usual += draw.uniform(2, 10) * usual_spikes(n, draw.uniform(0.003, 0.015), draw)
    usual += bursts(n, 0.0005, draw, 2.0, 0.7)
    for at in places:
        rows = min(n - at, 400)
        height, decay = draw.uniform(4, 40), draw.uniform(0.8, 0.99)
        usual[at : at + rows] += height * decay ** np.arange(rows) * draw.gamma(3, 1 / 3, rows)
    return draw.poisson(mean * usual * draw.gamma(8, 1 / 8, n)).astype(float)


SERIES: list[tuple[Make, int, int, list[int], int]] = [
    (processor, 4032, 9, [1, 2], 300),
    (plateaus, 4621, 2, [1, 2], 300),
    (disk, 4730, 2, [1, 2], 300),
    (traffic_in, 4032, 2, [1, 2], 300),
    (traffic_in, 1243, 1, [1, 2], 300),
    (requests, 4032, 2, [2, 3], 300),
    (prices, 1600, 6, [0, 1, 2, 3], 3600),
    (world.room, 7267, 1, [2], 3600),
    (world.machine, 22695, 1, [4], 300),
    (world.demand, 10320, 1, [5], 1800),
    (processor, 18050, 1, [1], 300),
    (world.keys, 1882, 1, [2], 300),
    (world.keys, 5315, 1, [2], 300),
    (road, 2500, 7, [1, 2, 3], 0),
    (mentions, 15850, 10, [2, 3, 4], 300),
    (world.artificial, 4032, 6, [1], 300),
    (world.harmless, 4032, 5, [0], 300),
]
