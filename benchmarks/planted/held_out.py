"""A family on which nothing was chosen: regimes alternate, and labels mark a regime that has not occurred before."""

from __future__ import annotations

import numpy as np

from planted.parts import Draw, Make, Places

Regime = tuple[float, float, float, float]
"""Mean, spread, memory and the share of rows with a jump."""


def new_regime(draw: Draw) -> Regime:
    return (
        draw.uniform(0.5, 1.5),
        float(np.exp(draw.uniform(-4.5, -1.5))),
        draw.uniform(0, 0.95),
        draw.choice([0, 0.002, 0.02]),
    )


def odd_one(usual: list[Regime], draw: Draw) -> Regime:
    """A regime that differs from all usual ones in its mean, spread, jumps or memory."""
    mean, spread, memory, jumps = usual[int(draw.integers(len(usual)))]
    means, spreads = [r[0] for r in usual], [r[1] for r in usual]
    kind = draw.integers(5)
    if kind == 0:
        return max(means) + draw.uniform(4, 12) * max(spreads), spread, memory, jumps
    if kind == 1:
        return max(0.0, min(means) - draw.uniform(4, 12) * max(spreads)), spread, memory, jumps
    if kind == 2:
        return mean, draw.uniform(2.5, 5) * max(spreads), memory, jumps
    if kind == 3:
        return mean, 0.0, 0.0, 0.0
    return mean, spread, memory, 0.3


def walk(path: list[tuple[int, Regime]], draw: Draw, jump: float) -> np.ndarray:
    """(T,) the values of regimes with these numbers of rows."""
    parts, x = [], 0.0
    for rows, (mean, spread, memory, jumps) in path:
        noise, out = draw.standard_t(6, rows) * np.sqrt(1 - memory**2), np.empty(rows)
        for t in range(rows):
            x = memory * x + noise[t]
            out[t] = mean + spread * x
        parts.append(out + (draw.random(rows) < jumps) * jump * draw.gamma(2, 0.5, rows))
    return np.concatenate(parts)


def regimes(n: int, places: Places, window: int, draw: Draw) -> np.ndarray:
    usual = [new_regime(draw) for _ in range(int(draw.integers(1, 4)))]
    lengths = draw.integers(max(window, 40), 4 * window + 80, size=n)
    path: list[tuple[int, Regime]] = []
    starts = [*places, n]
    at = 0
    for place in starts:
        while at < place:
            rows = min(int(lengths[len(path)]), place - at)
            path.append((rows, usual[int(draw.integers(len(usual)))]))
            at += rows
        if place < n:
            rows = min(max(2, int(window * draw.beta(0.6, 2))), n - at)
            path.append((rows, odd_one(usual, draw)))
            at += rows
    y = walk(path, draw, draw.uniform(0.3, 2))
    cycle = 1 + draw.choice([0, 0, 0.3]) * np.sin(2 * np.pi * np.arange(n) / draw.choice([24, 96, 288]))
    y = np.maximum(y, 0) * cycle * np.exp(draw.uniform(-2, 9))
    return np.round(y, int(draw.integers(0, 5)))


def arrivals(n: int, places: Places, window: int, draw: Draw) -> np.ndarray:
    """Counts from a renewal process with a daily cycle; groups of arrivals are usual, crowds are anomalies."""
    clock = np.exp(draw.uniform(0.5, 4) + draw.uniform(0, 1) * np.sin(2 * np.pi * np.arange(n) / 288))
    groups = np.zeros(n)
    for at in np.flatnonzero(draw.random(n) < draw.uniform(0.002, 0.02)).tolist():
        groups[at : at + int(draw.integers(1, 12))] += draw.gamma(1.5, 1.0)
    for at in places:
        groups[at : at + int(draw.integers(2, 60))] += draw.uniform(5, 25)
    return draw.negative_binomial(8, 8 / (8 + clock * (1 + groups))).astype(float)


def still(n: int, places: Places, window: int, draw: Draw) -> np.ndarray:
    """No anomalies: two regimes at regular times, or a constant."""
    if draw.random() < 0.25:
        return np.full(n, 12.0)
    one, other = new_regime(draw), new_regime(draw)
    return 50 * walk([(144, one if k % 2 else other) for k in range(n // 144 + 1)], draw, 0.0)[:n]


SERIES: list[tuple[Make, int, int, list[int], int]] = [
    (regimes, 4032, 17, [1, 2], 300),
    (regimes, 1600, 6, [1, 2, 3], 3600),
    (regimes, 7267, 1, [2], 3600),
    (regimes, 22695, 1, [4], 300),
    (regimes, 10320, 1, [5], 1800),
    (regimes, 18050, 1, [1], 300),
    (regimes, 1882, 1, [2], 300),
    (regimes, 5315, 1, [2], 300),
    (regimes, 2400, 7, [1, 2, 3], 0),
    (arrivals, 15850, 10, [2, 3, 4], 300),
    (regimes, 4032, 7, [1], 300),
    (still, 4032, 5, [0], 300),
]
