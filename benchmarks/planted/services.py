"""A family on which nothing was chosen: services, roads and news with daily rhythms. Labels mark events with a cause;
much that looks unusual has no label.

Unlike in the other families, unlabelled spikes are as high as labelled ones in a third of the files, labels mark the
beginning of lasting events as often as brief ones, and the spread of a series grows with its level.
"""

from __future__ import annotations

import numpy as np

from planted import world
from planted.parts import DAY, Draw, Make, Places, wander


def rhythm(n: int, period: float, draw: Draw, depth: float) -> np.ndarray:
    """(n,) a positive cycle around 1 with two random harmonics."""
    t = np.arange(n) / period + draw.random()
    wave = np.cos(2 * np.pi * t) + draw.uniform(0, 0.6) * np.cos(4 * np.pi * t + draw.uniform(0, 6))
    return np.exp(depth * wave)


def jumps(n: int, rate: float, draw: Draw, tail: float) -> np.ndarray:
    """(n,) Pareto-distributed heights of rare rows."""
    return np.where(draw.random(n) < rate, draw.pareto(tail, n) + 0.3, 0.0)


def lasting(n: int, at: int, window: int, draw: Draw) -> slice:
    """The length of an incident in rows: from one row to twice its window."""
    return slice(at, min(n, at + max(1, int(window * np.exp(draw.uniform(-4, 0.7))))))


def cause(y: np.ndarray, at: int, window: int, draw: Draw, unit: float) -> None:
    """One labelled incident in a series whose usual changes are about `unit`."""
    n, here = len(y), lasting(len(y), at, window, draw)
    rows = len(y[here])
    size = unit * np.exp(draw.uniform(np.log(3), np.log(30)))
    match draw.choice(["up", "up", "up", "down", "step", "flat", "rough", "ramp"]):
        case "up":
            y[here] += size * draw.uniform(0.6, 1.0, rows)
        case "down":
            y[here] -= np.minimum(size, 0.9 * y[here])
        case "step":
            y[at:] += draw.choice([-1, 1]) * min(size, 8 * unit)
        case "flat":
            y[at : min(n, at + max(25, rows))] = y[max(at - 1, 0)]
        case "rough":
            end = min(n, at + max(12, rows))
            y[at:end] += 0.4 * size * draw.normal(size=end - at)
        case _:
            end = min(n, at + max(20, rows))
            y[at:end] += size * np.linspace(0, 1, end - at)


def host(n: int, places: Places, window: int, draw: Draw) -> np.ndarray:
    """A host's load in per cent, or its bytes: noise that grows with the level, rounding, spikes of all heights."""
    level = np.exp(draw.uniform(-1, 4.2))
    noise = draw.choice([0.003, 0.02, 0.08, 0.3])
    y = (
        level
        * np.exp(wander(n, draw.choice([0.0, 0.7, 0.95]), noise, draw))
        * rhythm(n, DAY, draw, draw.choice([0, 0, 0.2]))
    )
    usual = level * max(noise, 0.01)
    y += usual * draw.choice([3, 10, 25]) * jumps(n, draw.choice([0.001, 0.006, 0.02]), draw, draw.choice([1.5, 3]))
    for at in places:
        cause(y, at, window, draw, 2 * usual)
    grain = draw.choice([0.0, 0.0, 0.5]) * usual
    y = np.round(y / grain) * grain if grain else y
    return np.maximum(y, 0)


def store(n: int, places: Places, window: int, draw: Draw) -> np.ndarray:
    """Bytes written: zeros between bursts, with or without a nightly backup."""
    share = draw.choice([0.01, 0.05, 0.2])
    y = np.where(draw.random(n) < share, np.exp(draw.normal(13, 1.2, n)), 0.0)
    if draw.random() < 0.5:
        start = int(draw.integers(DAY))
        for at in range(start, n, DAY):
            y[at : at + 3] += np.exp(draw.normal(16, 0.15))
    top = float(np.quantile(y[y > 0], 0.97))
    for at in places:
        here = lasting(n, at, window, draw)
        y[here] = top * np.exp(draw.uniform(-0.5, 1.8)) * draw.uniform(0.3, 1, len(y[here]))
    return np.round(y)


def calls(n: int, places: Places, window: int, draw: Draw) -> np.ndarray:
    """Counts of requests: negative binomial around a rhythm, with crowds."""
    mean = np.exp(draw.uniform(1, 5)) * rhythm(n, DAY, draw, draw.uniform(0.1, 0.8))
    mean *= 1 + draw.choice([0.5, 2]) * jumps(n, 0.004, draw, 2)
    for at in places:
        cause(mean, at, window, draw, float(np.median(mean)) * 0.25)
    return draw.negative_binomial(7, 7 / (7 + np.maximum(mean, 0.01))).astype(float)


def rates(n: int, places: Places, window: int, draw: Draw) -> np.ndarray:
    """Hourly prices: lognormal, a weak rhythm, spikes."""
    mean = draw.uniform(0.05, 2)
    y = mean * np.exp(wander(n, 0.8, draw.uniform(0.1, 0.35), draw)) * rhythm(n, 24, draw, draw.uniform(0, 0.3))
    y *= 1 + jumps(n, 0.01, draw, 2)
    for at in places:
        cause(y, at, window, draw, 0.4 * mean)
    return np.round(np.maximum(y, 0), 3)


def road(n: int, places: Places, window: int, draw: Draw) -> np.ndarray:
    """Speed or travel time, in whole numbers, with jams at rush hours of some days."""
    t = np.arange(n) / 210 + draw.random()
    open_days = np.repeat(draw.random(n // 210 + 2) < 0.7, 210)[:n]
    jam = np.exp(-(((t % 1) - 0.35) ** 2) / 0.002) * open_days * draw.uniform(5, 30)
    y = 64 - jam * draw.uniform(0.5, 1.2, n) + 3.0 * draw.standard_t(4, n)
    for at in places:
        here = lasting(n, at, window // 2, draw)
        y[here] -= draw.uniform(15, 45)
    y = np.clip(y, 4, 95)
    return np.round(y if draw.random() < 0.5 else 12_000 / y)


def news(n: int, places: Places, window: int, draw: Draw) -> np.ndarray:
    """Mentions with daily and weekly cycles: heavy-tailed chatter that fades at any pace, and labelled news."""
    mean = np.exp(draw.uniform(0, 4)) * rhythm(n, DAY, draw, 0.6) * rhythm(n, 7 * DAY, draw, 0.15)
    talk, last, fade = jumps(n, 0.002, draw, 1.6), 0.0, draw.uniform(0.3, 0.9)
    for at in places:
        talk[at] += np.exp(draw.uniform(np.log(3), np.log(40)))
    heard = np.empty(n)
    for t in range(n):
        heard[t] = last = fade * last + talk[t]
    return draw.negative_binomial(4, 4 / (4 + mean * (1 + heard))).astype(float)


def sensor(n: int, places: Places, window: int, draw: Draw) -> np.ndarray:
    """A slow temperature with a rhythm; incidents are long excursions."""
    y = 60 + 8 * wander(n, 0.9985, 1.0, draw) + 2 * np.log(rhythm(n, DAY, draw, 1.0)) + 0.4 * draw.normal(size=n)
    for at in places:
        rows = min(n - at, max(30, int(window * draw.uniform(0.2, 0.9))))
        course = np.sin(np.linspace(0, np.pi, rows)) ** draw.choice([0.3, 1, 2])
        y[at : at + rows] -= draw.choice([-1, 1, 1]) * draw.uniform(8, 50) * course
    return np.round(y, 3)


SERIES: list[tuple[Make, int, int, list[int], int]] = [
    (host, 4032, 12, [1, 2], 300),
    (store, 4730, 3, [1, 2], 300),
    (calls, 4032, 2, [2, 3], 300),
    (rates, 1600, 6, [0, 1, 2, 3], 3600),
    (sensor, 7267, 1, [2], 3600),
    (sensor, 22695, 1, [4], 300),
    (world.demand, 10320, 1, [5], 1800),
    (host, 18050, 1, [1], 300),
    (calls, 4032, 1, [3], 300),
    (store, 1882, 1, [2], 300),
    (calls, 5315, 1, [2], 300),
    (road, 2500, 7, [1, 2, 3], 0),
    (news, 15850, 10, [2, 3, 4], 300),
    (world.artificial, 4032, 6, [1], 300),
    (world.harmless, 4032, 5, [0], 300),
]
