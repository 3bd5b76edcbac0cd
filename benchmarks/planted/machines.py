"""Loads of machines, disks, networks and databases, every five minutes."""

from __future__ import annotations

import numpy as np

from planted.parts import DAY, Draw, Places, add_spike, day, length, spikes, wander


def low_load(n: int, places: Places, window: int, draw: Draw) -> np.ndarray:
    grain = draw.choice([0.002, 0.02, 0.034])
    level = draw.uniform(0.05, 2.5)
    y = level * (1 + wander(n, draw.uniform(0, 0.6), 0.02, draw)) + 0.1 * level * spikes(n, 0.01, draw)
    for at in places:
        match draw.choice(["spike", "spike", "shift", "many"]):
            case "spike":
                add_spike(y, at, level * draw.uniform(0.8, 12), draw)
            case "shift":
                y[at:] += level * draw.uniform(0.06, 0.3) * draw.choice([-1, 1, 1])
            case _:
                for _ in range(6):
                    add_spike(y, at + int(draw.integers(window // 2)), level * draw.uniform(0.2, 1.5), draw, 2)
    return np.maximum(np.round(y / grain) * grain, 0)


def steady_load(n: int, places: Places, window: int, draw: Draw) -> np.ndarray:
    level = draw.uniform(20, 60)
    y = level + wander(n, draw.uniform(0, 0.9), level * draw.uniform(0.02, 0.08), draw)
    y += level * draw.choice([0, 0, 0.15]) * day(n, DAY, draw) + 0.15 * level * spikes(n, 0.004, draw)
    for at in places:
        end = at + length(window, draw, 0.2, 1)
        match draw.choice(["full", "shift", "drop", "spike", "noise"]):
            case "full":
                y[at:end] = draw.uniform(90, 100) + draw.normal(size=len(y[at:end]))
            case "shift":
                y[at:] += level * draw.uniform(0.1, 0.5) * draw.choice([-1, 1])
            case "drop":
                y[at:end] *= draw.uniform(0, 0.5)
            case "spike":
                add_spike(y, at, level * draw.uniform(0.3, 1), draw)
            case _:
                y[at:end] += level * draw.uniform(0.08, 0.2) * draw.normal(size=len(y[at:end]))
    return np.clip(y, 0, 100)


def high_load(n: int, places: Places, window: int, draw: Draw) -> np.ndarray:
    level = draw.uniform(88, 97)
    y = level - np.abs(wander(n, 0.7, 2.5, draw)) - 8 * spikes(n, 0.02, draw, width=3)
    for at in places:
        if draw.random() < 0.6:
            end = at + length(window, draw, 0.3, 2)
            y[at:end] -= draw.uniform(15, 70) * (1 + 0.05 * draw.normal(size=len(y[at:end])))
        else:
            y[at : at + length(window, draw, 0.02, 0.2)] = draw.uniform(0, 30)
    return np.clip(y, 0, 99.8)


def jobs(n: int, places: Places, window: int, draw: Draw) -> np.ndarray:
    """A low load with a job at regular times."""
    level, height, every = draw.uniform(1, 6), draw.uniform(15, 40), int(draw.choice([36, 48, 72, 144]))
    y = level * (1 + np.abs(wander(n, 0.4, 0.06, draw))) + 0.2 * level * spikes(n, 0.01, draw)
    for at in range(int(draw.integers(every)), n, every):
        start = at + int(draw.integers(-2, 3))
        y[max(start, 0) : start + 2] += height * draw.uniform(0.7, 1.1)
    for at in places:
        end = at + length(window, draw, 0.3, 1)
        match draw.choice(["high", "missing", "more", "shift"]):
            case "high":
                add_spike(y, at, height * draw.uniform(1.3, 3), draw, 6)
            case "missing":
                y[at:end] = np.minimum(y[at:end], level * 1.3)
            case "more":
                y[at : end : int(draw.integers(5, 12))] += height * draw.uniform(0.7, 1.1)
            case _:
                y[at:] += level * draw.uniform(0.5, 2)
    return np.clip(y, 0, 100)


def drifting(n: int, places: Places, window: int, draw: Draw) -> np.ndarray:
    level = draw.uniform(1, 3)
    y = level + 0.1 * level * wander(n, 0.9995, 1.0, draw) + level * 0.015 * draw.normal(size=n)
    y += 0.1 * level * spikes(n, 0.003, draw)
    for at in places:
        if draw.random() < 0.5:
            y[at:] += level * draw.uniform(0.06, 0.4) * draw.choice([-1, 1])
        else:
            add_spike(y, at, level * draw.uniform(0.15, 1), draw, 8)
    return np.round(np.maximum(y, 0), 3)


def disk(n: int, places: Places, window: int, draw: Draw) -> np.ndarray:
    busy = draw.uniform(0.005, 0.3)
    y = np.where(draw.random(n) < busy, draw.gamma(1.5, 1e6, n) * np.where(draw.random(n) < 0.02, 10, 1), 0.0)
    for at in places:
        end = at + length(window, draw, 0.1, 0.8)
        match draw.choice(["huge", "dense", "dense", "stop"]):
            case "huge":
                add_spike(y, at, 1.5e6 * draw.uniform(12, 100), draw, 8)
            case "dense":
                rows = len(y[at:end])
                y[at:end] += (draw.random(rows) < min(1, 4 * busy + 0.1)) * draw.gamma(3, 1.5e6, rows)
            case _:
                y[at:end] = 0
    return np.round(y)


def network(n: int, places: Places, window: int, draw: Draw) -> np.ndarray:
    base = np.exp(draw.uniform(9, 13))
    y = base * np.exp(wander(n, 0.6, draw.uniform(0.1, 0.5), draw) + 0.4 * day(n, DAY, draw))
    batch = draw.choice([0, 5, 20])
    for at in range(int(draw.integers(DAY)), n, DAY):
        y[at : at + int(draw.integers(2, 8))] += batch * base * draw.uniform(0.6, 1.2)
    y += base * spikes(n, 0.008, draw, 2)
    for at in places:
        end = at + length(window, draw)
        match draw.choice(["peak", "peak", "busy", "shift"]):
            case "peak":
                add_spike(y, at, base * max(batch, 5) * draw.uniform(0.8, 4), draw, 10)
            case "busy":
                y[at:end] *= draw.uniform(1.6, 4)
            case _:
                y[at:] *= draw.choice([0.3, 0.5, 1.7, 2.5])
    return np.round(y, 1)


def requests(n: int, places: Places, window: int, draw: Draw) -> np.ndarray:
    mean = draw.uniform(20, 120) * np.exp(draw.uniform(0.2, 1.2) * day(n, DAY, draw))
    mean *= 1 + 1.0 * spikes(n, 0.006, draw, 2.5, 2)
    for at in places:
        end = at + length(window, draw, 0.1, 0.8)
        match draw.choice(["spike", "busy", "none"]):
            case "spike":
                add_spike(mean, at, mean.mean() * draw.uniform(3, 9), draw, 5)
            case "busy":
                mean[at:end] *= draw.uniform(1.6, 3)
            case _:
                mean[at:end] *= draw.uniform(0.02, 0.5)
    return draw.poisson(mean * draw.gamma(8, 1 / 8, n)).astype(float)


def database(n: int, places: Places, window: int, draw: Draw) -> np.ndarray:
    level = draw.uniform(5, 16)
    y = level + wander(n, 0.5, 0.06 * level, draw) + 0.2 * level * spikes(n, 0.01, draw)
    for at in range(int(draw.integers(DAY)), n, DAY):
        y[at : at + int(draw.integers(2, 6))] += level * draw.uniform(0.3, 0.8)
    for at in places:
        end = at + length(window, draw, 0.05, 0.8)
        match draw.choice(["busy", "spike", "shift", "calm"]):
            case "busy":
                y[at:end] += level * draw.uniform(0.4, 2.5)
            case "spike":
                add_spike(y, at, level * draw.uniform(0.9, 3), draw, 5)
            case "shift":
                y[at:] += level * draw.uniform(-0.3, 0.4)
            case _:
                y[at:end] = level * 0.6 + 0.02 * level * draw.normal(size=len(y[at:end]))
    return np.round(np.clip(y, 0, 100), 2)


def scaled_group(n: int, places: Places, window: int, draw: Draw) -> np.ndarray:
    """The load of a group of machines; the group grows and shrinks, so steps are usual."""
    y, at = np.zeros(n), 0
    while at < n:
        rows = int(draw.exponential(120)) + 20
        y[at : at + rows] = draw.choice([25, 30, 35, 40]) + draw.normal(0, 1)
        at += rows
    y += 1.0 * draw.normal(size=n) + 3 * spikes(n, 0.01, draw)
    for at in places:
        end = at + length(window, draw, 0.3, 1)
        if draw.random() < 0.5:
            y[at:end] = draw.choice([0, 3, 60, 75]) + 0.5 * draw.normal(size=len(y[at:end]))
        else:
            y[at:end] += draw.uniform(4, 12) * draw.normal(size=len(y[at:end]))
    return np.clip(y, 0, 100)


def long_load(n: int, places: Places, window: int, draw: Draw) -> np.ndarray:
    y = draw.uniform(25, 45) + 12 * day(n, DAY, draw) + wander(n, 0.9, 3, draw) + 2.5 * draw.normal(size=n)
    y += 8 * spikes(n, 0.004, draw)
    for at in places:
        end = at + length(window, draw, 0.5, 1)
        if draw.random() < 0.6:
            y[at:end] = 85 + 12 * draw.normal(size=len(y[at:end]))
        else:
            y[at:end] += 12 * np.sign(np.sin(np.arange(len(y[at:end])) / 5)) * draw.uniform(0.7, 2)
    return np.clip(y, 0, 100)


def latency(n: int, places: Places, window: int, draw: Draw) -> np.ndarray:
    y = 45 + wander(n, 0.6, 1.4, draw) + 3 * spikes(n, 0.006, draw)
    for at in places:
        match draw.choice(["spike", "spike", "shift", "drop"]):
            case "spike":
                add_spike(y, at, draw.uniform(8, 45), draw, 6)
            case "shift":
                y[at : at + length(window, draw, 0.3, 1)] += draw.uniform(3, 12)
            case _:
                y[at : at + 3] -= draw.uniform(8, 25)
    return y
