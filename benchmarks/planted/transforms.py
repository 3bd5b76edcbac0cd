"""A fourth family: stationary processes of many kinds, passed through random transforms; anomalies change the
underlying process, its noise, its clock or the transform."""

from __future__ import annotations

import numpy as np

from planted.parts import Draw, Make, Places


def process(n: int, draw: Draw) -> np.ndarray:
    """(n,) roughly standardised: an autoregression with random poles, noise of any tail, and perhaps a cycle."""
    tails = draw.choice([3.0, 5.0, 50.0])
    noise = draw.standard_t(tails, n)
    radius, angle = draw.uniform(0.0, 0.97), draw.choice([0.0, draw.uniform(0, 1.5)])
    a, b = 2 * radius * np.cos(angle), -(radius**2)
    x = np.zeros(n)
    for t in range(2, n):
        x[t] = a * x[t - 1] + b * x[t - 2] + noise[t]
    x = (x - x.mean()) / (x.std() + 1e-9)
    t = 2 * np.pi * np.arange(n) / draw.choice([24, 144, 288, 288])
    cycle = sum(draw.normal() * np.cos(k * t + draw.uniform(0, 6)) for k in (1, 2, 3)) * draw.choice([0, 0.4, 1.2])
    volatility = np.exp(draw.choice([0, 0, 0.5]) * np.sin(t + draw.uniform(0, 6)))
    return x * volatility + cycle


def damage(x: np.ndarray, places: Places, window: int, draw: Draw) -> np.ndarray:
    """Add the anomaly to the underlying process, before the transform."""
    x = x.copy()
    for at in places:
        end = min(len(x), at + max(2, int(window * draw.beta(1, 2))))
        kind = draw.integers(8)
        size = draw.choice([-1, 1, 1]) * draw.uniform(2.5, 7)
        if kind <= 1:
            x[at : at + int(draw.integers(1, 4))] += 1.5 * size
        elif kind == 2:
            x[at:end] += 0.7 * size
        elif kind == 3:
            x[at:] += 0.5 * size
        elif kind == 4:
            x[at:end] *= draw.uniform(2, 4)
        elif kind == 5:
            x[at:end] = x[at]
        elif kind == 6:
            x[at:end] = size * np.sqrt(np.linspace(0, 1, end - at)) + x[at:end]
        else:
            x[at:end] = np.interp(np.linspace(at, at + 3 * (end - at), end - at), np.arange(len(x)), x)
    return x


def transformed(n: int, places: Places, window: int, draw: Draw) -> np.ndarray:
    x = damage(process(n, draw), places, window, draw)
    kind = draw.integers(7)
    if kind == 0:
        y = 50 + 12 * x
    elif kind == 1:
        y = np.exp(draw.uniform(0, 8) + draw.uniform(0.3, 0.8) * x)
    elif kind == 2:
        y = 100 / (1 + np.exp(-x - draw.uniform(-3, 3)))
    elif kind == 3:
        y = draw.poisson(np.exp(np.clip(draw.uniform(0, 4) + 0.5 * x, -9, 9))).astype(float)
    elif kind == 4:
        y = np.where(x > draw.uniform(0.5, 1.8), np.exp(x), 0.0)
    elif kind == 5:
        y = np.cumsum(0.02 * x) + 30 + 0.3 * x
    else:
        y = np.round(3 * x) / 3 * 5 + 20
    spiky = draw.random(n) < draw.choice([0, 0.003, 0.01])
    usual = np.quantile(y, 0.9) - np.quantile(y, 0.1) + 1e-9
    return np.round(y + spiky * usual * draw.pareto(2.5, n), 4)


def quick(n: int, places: Places, window: int, draw: Draw) -> np.ndarray:
    """Irregular rows with few levels, as from traffic loops."""
    x = damage(process(n, draw), places, max(6, window // 3), draw)
    return np.round(np.clip(draw.uniform(10, 60) + 6 * x, 0, 110))


def counted(n: int, places: Places, window: int, draw: Draw) -> np.ndarray:
    """Counts with long bursts that are usual, and rare larger ones that are anomalies."""
    x = process(n, draw)
    usual = np.where(draw.random(n) < draw.uniform(0.001, 0.004), draw.pareto(1.7, n) * 3, 0.0)
    for at in places:
        usual[at] += draw.uniform(6, 50)
    fade, talk = draw.uniform(0.5, 0.97), np.zeros(n)
    for t in range(1, n):
        talk[t] = fade * talk[t - 1] + usual[t]
    rate = np.exp(np.clip(draw.uniform(0, 3.5) + 0.35 * x, -9, 9)) * (1 + talk)
    return draw.poisson(rate * draw.gamma(7, 1 / 7, n)).astype(float)


def clean(n: int, places: Places, window: int, draw: Draw) -> np.ndarray:
    if draw.random() < 0.3:
        return np.full(n, draw.normal())
    return np.round(20 + 3 * process(n, draw), 2)


SERIES: list[tuple[Make, int, int, list[int], int]] = [
    (transformed, 4032, 18, [1, 2], 300),
    (transformed, 1600, 6, [1, 2, 3], 3600),
    (transformed, 7267, 1, [2], 3600),
    (transformed, 22695, 1, [4], 300),
    (transformed, 10320, 1, [5], 1800),
    (transformed, 18050, 1, [1], 300),
    (transformed, 1882, 1, [2], 300),
    (transformed, 5315, 1, [2], 300),
    (quick, 2400, 7, [1, 2, 3], 0),
    (counted, 15850, 10, [2, 3, 4], 300),
    (transformed, 4032, 6, [1], 300),
    (clean, 4032, 5, [0], 300),
]
