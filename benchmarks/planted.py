"""Series like those that operators watch, with planted anomalies: loads, requests, temperatures, traffic, counts."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from nab_score import File, probation

Draw = np.random.Generator


def wander(rows: int, memory: float, size: float, draw: Draw) -> np.ndarray:
    """An autoregression of order 1."""
    values, noise = np.zeros(rows), size * draw.normal(size=rows)
    for t in range(1, rows):
        values[t] = memory * values[t - 1] + noise[t]
    return values


def cycle(rows: int, period: int, draw: Draw, size: float, shape: str | None = None) -> np.ndarray:
    t = np.arange(rows) / period + draw.random()
    shape = shape or draw.choice(["sine", "work", "double"])
    if shape == "sine":
        return size * np.sin(2 * np.pi * t)
    if shape == "work":
        return size * (1 / (1 + np.exp(-30 * (t % 1 - 0.3))) - 1 / (1 + np.exp(-30 * (t % 1 - 0.8))))
    return size * (np.sin(2 * np.pi * t) + 0.5 * np.sin(4 * np.pi * t + 1))


def spikes(rows: int, rate: float, size: float, draw: Draw, width: int = 1) -> np.ndarray:
    """Ordinary ones, which are no anomalies."""
    values = np.zeros(rows)
    for t in np.flatnonzero(draw.random(rows) < rate):
        values[t : t + 1 + draw.integers(width)] += size * (0.5 + draw.pareto(3))
    return values


def cpu(n: int, draw: Draw) -> np.ndarray:
    level = draw.uniform(1, 60)
    noise = wander(n, draw.uniform(0, 0.9), 0.04 * level, draw) + spikes(n, 0.005, 0.2 * level, draw)
    return np.maximum(level + noise + cycle(n, 288, draw, level * draw.choice([0, 0.1, 0.3])), 0)


def requests(n: int, draw: Draw) -> np.ndarray:
    mean = draw.uniform(3, 200) * np.exp(cycle(n, 288, draw, draw.uniform(0, 0.8)))
    return draw.poisson(mean * draw.gamma(6, 1 / 6, n)).astype(float)


def disk(n: int, draw: Draw) -> np.ndarray:
    return np.where(draw.random(n) < draw.uniform(0.01, 0.05), draw.gamma(2, 1e6, n), 0.0)


def network(n: int, draw: Draw) -> np.ndarray:
    return np.exp(wander(n, 0.7, 0.3, draw) + 11 + cycle(n, 288, draw, 0.2)) + spikes(n, 0.01, 1e5, draw, 2)


def room(n: int, draw: Draw) -> np.ndarray:
    return 70 + wander(n, 0.998, 0.15, draw) + cycle(n, 24, draw, 2.0) + 0.3 * draw.normal(size=n)


def machine(n: int, draw: Draw) -> np.ndarray:
    return 85 + wander(n, 0.995, 0.7, draw) + wander(n, 0.9, 0.5, draw)


def demand(n: int, draw: Draw) -> np.ndarray:
    weekend = np.where(np.arange(n) // 48 % 7 >= 5, 0.75, 1.0)
    return np.abs(15_000 * (1.1 + cycle(n, 48, draw, 0.6, "double")) * weekend * np.exp(wander(n, 0.95, 0.02, draw)))


def speed(n: int, draw: Draw) -> np.ndarray:
    values = 60 - 15 * np.maximum(cycle(n, 288, draw, 1.0, "work"), 0) + wander(n, 0.8, 2.0, draw)
    return values + 2.5 * draw.normal(size=n) - np.where(draw.random(n) < 0.01, draw.uniform(5, 20, n), 0)


def travel(n: int, draw: Draw) -> np.ndarray:
    return 100 * np.exp(wander(n, 0.5, 0.25, draw) + 0.3 * cycle(n, 150, draw, 1.0)) + spikes(n, 0.01, 150, draw)


def mentions(n: int, draw: Draw) -> np.ndarray:
    mean = np.exp(1.5 + wander(n, 0.95, 0.12, draw) + cycle(n, 288, draw, 0.5))
    return draw.poisson(mean) + np.round(spikes(n, 0.004, 12, draw, 3))


def prices(n: int, draw: Draw) -> np.ndarray:
    return 0.1 * np.exp(wander(n, 0.3, 0.25, draw) + 0.2 * cycle(n, 24, draw, 1.0)) + spikes(n, 0.006, 0.15, draw)


def keystrokes(n: int, draw: Draw) -> np.ndarray:
    return (draw.random(n) < 0.15) * draw.gamma(1.5, 0.1, n) * np.maximum(cycle(n, 48, draw, 1.0, "work"), 0.05)


def shifts(n: int, draw: Draw) -> np.ndarray:
    busy = cycle(n, 288, draw, 1.0, "work") > 0.5
    return 20 + 60.0 * busy + draw.uniform(-5, 5, n) * (1 + busy)


def latency(n: int, draw: Draw) -> np.ndarray:
    return 45 + wander(n, 0.6, 1.2, draw) + spikes(n, 0.004, 6, draw)


def flat(n: int, draw: Draw) -> np.ndarray:
    return np.full(n, draw.uniform(0, 60))


def noise(n: int, draw: Draw) -> np.ndarray:
    return 20 + draw.uniform(-1, 1, n) * draw.choice([0.1, 5.0])


def plant(y: np.ndarray, kind: str, at: int, window: int, draw: Draw) -> None:
    """An anomaly that begins at row `at` and ends within the window, or stays."""
    low, high = np.quantile(y, [0.01, 0.99])
    size, jitter = high - low + 1e-9, np.std(np.diff(y)) / 1.4 + 1e-9
    end = at + int(draw.integers(max(window // 3, 2), max(window, 3)))
    part = y[at:end]
    match kind:
        case "spike":
            y[at : at + int(draw.integers(1, 5))] += draw.uniform(0.5, 2.5) * size * draw.choice([1, 1, 1, -1])
        case "zero":
            y[at : at + int(draw.integers(3, max(window // 2, 4)))] = min(0.0, low)
        case "shift":
            y[at:] += draw.choice([-1, 1, 1]) * draw.uniform(0.35, 1.5) * max(0.6 * size, 2 * jitter)
        case "step":
            part += draw.choice([-1, 1]) * draw.uniform(0.4, 1.5) * size
        case "noise":
            part += draw.normal(size=len(part)) * jitter * draw.uniform(1.5, 4)
        case "burst":
            part[:: int(draw.integers(2, 8))] += draw.uniform(0.3, 1.0) * size
        case "no cycle":
            part[:] = part.mean() + (part - part.mean()) * draw.uniform(0, 0.3)
        case "ramp":
            part += np.linspace(0, draw.uniform(0.6, 1.5) * size, len(part))


SERIES: list[tuple[Callable[[int, Draw], np.ndarray], int, int, list[str]]] = [
    (cpu, 4032, 9, ["spike", "shift", "step", "zero", "noise"]),
    (cpu, 18050, 1, ["spike", "shift", "step", "zero", "noise"]),
    (requests, 4032, 3, ["spike", "step", "burst", "zero"]),
    (disk, 4032, 3, ["burst", "spike", "step"]),
    (network, 4032, 4, ["spike", "step", "shift"]),
    (latency, 4032, 1, ["shift", "spike", "noise"]),
    (room, 7267, 1, ["ramp", "step", "zero", "noise"]),
    (machine, 22695, 1, ["ramp", "zero", "step"]),
    (demand, 10320, 1, ["step", "zero", "no cycle", "spike"]),
    (keystrokes, 1882, 1, ["burst", "step", "spike"]),
    (keystrokes, 5315, 1, ["burst", "step", "spike"]),
    (speed, 2500, 4, ["spike", "step", "zero"]),
    (travel, 2500, 3, ["spike", "burst", "noise"]),
    (mentions, 15850, 8, ["spike", "burst", "step"]),
    (prices, 1600, 5, ["spike", "burst"]),
    (shifts, 4032, 7, ["no cycle", "step", "zero", "burst", "shift"]),
    (flat, 4032, 1, []),
    (noise, 4032, 2, []),
]


def corpus(seed: int) -> list[File]:
    """56 files, most with one to four anomalies; windows hold a tenth of a file's rows."""
    draw, files = np.random.default_rng(seed), []
    for make, rows, count, kinds in SERIES:
        for number in range(count):
            y = make(rows, draw).astype(float)
            wanted = int(draw.choice([0, 1, 1, 2, 2, 3] if rows < 6000 else [1, 2, 3, 4])) if kinds else 0
            window, places = int(0.1 * rows / max(wanted, 1)), []
            for at in draw.integers(probation(rows) + window, rows - window, size=50).tolist():
                if len(places) < wanted and all(abs(at - other) > 1.5 * window for other in places):
                    places.append(at)
            for at in sorted(places):
                plant(y, str(draw.choice(kinds)), at, window, draw)
            windows = [(at - window // 2, min(at + window // 2, rows - 1)) for at in sorted(places)]
            files.append(File(f"{make.__name__}-{number}", y, windows))
    return files
