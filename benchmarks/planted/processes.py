"""A second family with the same kinds of files, from other processes and with other anomalies."""

from __future__ import annotations

import numpy as np

from planted.parts import Draw, Make, Places


def relax(n: int, draw: Draw, pull: float, noise: np.ndarray) -> np.ndarray:
    x, out = 0.0, np.empty(n)
    for t in range(n):
        x += -pull * x + noise[t]
        out[t] = x
    return out


def telegraph(n: int, draw: Draw, stay: float) -> np.ndarray:
    return np.cumsum(draw.random(n) > stay) % 2


def template(n: int, period: int, draw: Draw, harmonics: int = 3) -> np.ndarray:
    """A cycle of random harmonics, from 0 to 1."""
    t = 2 * np.pi * np.arange(n) / period
    wave = sum(draw.normal() / k * np.cos(k * t + draw.uniform(0, 6.3)) for k in range(1, harmonics + 1))
    return (wave - wave.min()) / (np.ptp(wave) + 1e-12)


def shots(n: int, draw: Draw, rate: float, sigma: float, decay: float) -> np.ndarray:
    """Shot noise with lognormal sizes."""
    out, x = np.empty(n), 0.0
    hits = np.where(draw.random(n) < rate, draw.lognormal(0, sigma, n), 0)
    for t in range(n):
        x = decay * x + hits[t]
        out[t] = x
    return out


def end_of(at: int, window: int, n: int, draw: Draw) -> int:
    return min(n, at + max(3, int(window * draw.beta(1.2, 1.8))))


def server(n: int, places: Places, window: int, draw: Draw) -> np.ndarray:
    scale = np.exp(draw.uniform(-2, 4))
    y = scale * (1 + draw.choice([0.03, 0.1]) * relax(n, draw, draw.uniform(0.02, 0.8), draw.standard_t(4, n) * 0.5))
    y += scale * draw.choice([0, 0, 0.2, 0.6]) * template(n, 288, draw)
    y += 0.15 * scale * shots(n, draw, 0.01, 0.7, 0.2)
    for at in places:
        end = end_of(at, window, n, draw)
        size = np.quantile(y, 0.995) - np.quantile(y, 0.005)
        kind = draw.integers(7)
        if kind == 0:
            y[at : at + 2] += size * draw.uniform(0.6, 4)
        elif kind == 1:
            y[at:] += size * draw.uniform(0.3, 1.2) * draw.choice([-1, 1])
        elif kind == 2:
            y[at:end] = y[at]
        elif kind == 3:
            y[at:end] *= draw.uniform(0, 0.3)
        elif kind == 4:
            y[at:end] += size * np.linspace(0, draw.uniform(0.5, 1.5), end - at)
        elif kind == 5:
            y[at:end] = y[at:end].mean() + draw.uniform(2, 5) * (y[at:end] - y[at:end].mean())
        else:
            y[at:end:4] += size * draw.uniform(0.3, 1.1)
    return np.round(np.maximum(y, 0), 3)


def queue(n: int, places: Places, window: int, draw: Draw) -> np.ndarray:
    """Bytes and requests: lognormal, with idle times."""
    idle = telegraph(n, draw, draw.uniform(0.9, 0.99)) * draw.choice([0, 1])
    log = draw.uniform(3, 14) + draw.uniform(0.2, 0.8) * relax(n, draw, 0.3, draw.normal(size=n) * 0.6)
    log += draw.uniform(0, 1) * template(n, 288, draw) + shots(n, draw, 0.004, 0.4, 0.3)
    for at in places:
        end = end_of(at, window, n, draw)
        kind = draw.integers(4)
        if kind == 0:
            log[at : at + 3] += draw.uniform(1.5, 4)
        elif kind == 1:
            log[at:end] += draw.uniform(0.6, 2)
        elif kind == 2:
            log[at:end] -= draw.uniform(0.8, 6)
        else:
            idle[at:end] = 1 - idle[at:end] if idle.any() else telegraph(end - at, draw, 0.8)
    return np.round(np.exp(log) * (1 - idle))


def advert(n: int, places: Places, window: int, draw: Draw) -> np.ndarray:
    y = draw.uniform(0.1, 2) * draw.gamma(draw.uniform(4, 15), 0.1, n) * (1 + template(n, 24, draw))
    y *= 1 + shots(n, draw, 0.015, 0.8, 0.2)
    for at in places:
        if draw.random() < 0.7:
            y[at] *= draw.uniform(3, 15)
        else:
            y[at : end_of(at, window, n, draw)] *= draw.choice([0.3, 0.5, 1.8, 2.5])
    return np.round(y, 3)


def plant_heat(n: int, places: Places, window: int, draw: Draw) -> np.ndarray:
    y = (
        60
        + 4 * relax(n, draw, 0.004, 0.1 * draw.normal(size=n))
        + 2 * template(n, 288, draw)
        + 0.4 * draw.normal(size=n)
    )
    for at in places:
        end = end_of(at, window, n, draw)
        y[at:end] += (
            draw.uniform(4, 30) * draw.choice([-1, -1, 1]) * np.linspace(0, 1, end - at) ** draw.choice([0.2, 1])
        )
    return y


def riders(n: int, places: Places, window: int, draw: Draw) -> np.ndarray:
    weekly = template(n, 48 * 7, draw, 4)
    y = 1000 * (0.2 + template(n, 48, draw) + 0.3 * weekly) * np.exp(0.05 * draw.normal(size=n))
    for at in places:
        end = min(n, at + int(draw.choice([16, 32, 48])))
        y[at:end] *= draw.choice([0.1, 0.5, 0.65, 1.35, 1.7])
    return np.round(y)


def group(n: int, places: Places, window: int, draw: Draw) -> np.ndarray:
    y = 30 + 25 * telegraph(n, draw, 0.99) + 3 * draw.standard_t(5, n) + 8 * template(n, 288, draw)
    for at in places:
        end = end_of(at, 2 * window, n, draw)
        y[at:end] = draw.choice([5, 90]) + draw.uniform(1, 8) * draw.normal(size=end - at)
    return np.clip(y, 0, 100)


def reply(n: int, places: Places, window: int, draw: Draw) -> np.ndarray:
    y = 20 * draw.lognormal(0, draw.uniform(0.05, 0.3), n) * (1 + shots(n, draw, 0.01, 0.5, 0.3) * 0.3)
    for at in places:
        y[at : at + int(draw.integers(1, 30))] *= draw.uniform(1.7, 5)
    return np.round(y, 2)


def typing(n: int, places: Places, window: int, draw: Draw) -> np.ndarray:
    on = telegraph(n, draw, 0.97) * (draw.random(n) < 0.7)
    y = on * draw.lognormal(0, 0.5, n)
    for at in places:
        end = end_of(at, window, n, draw)
        y[at:end] = draw.lognormal(draw.choice([0, 1.2]), 0.3, end - at)
    return y


def road(n: int, places: Places, window: int, draw: Draw) -> np.ndarray:
    rush = template(n, 180, draw) ** 3
    kind = draw.integers(3)
    if kind == 0:
        y = 70 - 25 * rush * draw.uniform(0.3, 1.2, n) - 4 * np.abs(draw.standard_t(3, n))
        factor, low, high = [0.3, 0.5, 0.6], 3.0, 90.0
    elif kind == 1:
        y = 3 + 10 * rush * draw.gamma(4, 0.25, n) + 3 * np.abs(draw.standard_t(3, n))
        factor, low, high = [2.5, 4, 6], 0.0, 100.0
    else:
        y = 200 * draw.lognormal(0, 0.35, n) * (1 + rush) * (1 + shots(n, draw, 0.02, 0.8, 0.1))
        factor, low, high = [2.5, 5, 10], 10.0, 20_000.0
    for at in places:
        y[at : end_of(at, window // 3, n, draw)] *= draw.choice(factor)
    return np.round(np.clip(y, low, high))


def posts(n: int, places: Places, window: int, draw: Draw) -> np.ndarray:
    """Counts that excite themselves."""
    base = np.exp(draw.uniform(0, 3.5)) * (0.4 + template(n, 288, draw, 2))
    push = np.where(draw.random(n) < draw.uniform(0.001, 0.004), draw.lognormal(0.5, 1.1, n), 0) * base.mean()
    for at in places:
        push[at : at + int(draw.integers(1, 6))] += base.mean() * draw.lognormal(2.0, 0.7)
    excited, follow, y = 0.0, draw.uniform(0.4, 0.8), np.empty(n)
    for t in range(n):
        y[t] = draw.poisson((base[t] + excited + push[t]) * draw.gamma(6, 1 / 6))
        excited = follow * min(excited + max(y[t] - base[t], 0) * 0.5 + push[t], 1e5)
    return y


def drawn_days(n: int, places: Places, window: int, draw: Draw) -> np.ndarray:
    shape = template(288, 288, draw, 5) * 60 + 20
    y = np.tile(shape, n // 288 + 1)[:n] + draw.choice([0.5, 3]) * draw.normal(size=n)
    for at in places:
        end = min(n, at + 144)
        kind = draw.integers(4)
        if kind == 0:
            y[at:end] = 20
        elif kind == 1:
            y[at:end] = 50 + draw.choice([0.3, 1.6]) * (y[at:end] - 50)
        elif kind == 2:
            y[at:end] = y[at:end][::-1]
        else:
            y[at:end] += draw.choice([-25, 40])
    return y


def calm(n: int, places: Places, window: int, draw: Draw) -> np.ndarray:
    t = np.arange(n)
    kind = draw.integers(4)
    if kind == 0:
        return np.full(n, 7.25)
    if kind == 1:
        return np.where(t % 288 < 100, 5.0, 1.0)
    if kind == 2:
        return 10 + draw.normal(size=n)
    return 20 * template(n, 288, draw) + 0.5 * draw.uniform(-1, 1, n)


SERIES: list[tuple[Make, int, int, list[int], int]] = [
    (server, 4032, 10, [1, 2], 300),
    (queue, 4032, 6, [1, 2], 300),
    (queue, 1243, 1, [1], 300),
    (advert, 1600, 6, [1, 2, 3], 3600),
    (plant_heat, 7267, 1, [2], 3600),
    (plant_heat, 22695, 1, [4], 300),
    (riders, 10320, 1, [5], 1800),
    (group, 18050, 1, [1], 300),
    (reply, 4032, 1, [3], 300),
    (typing, 1882, 1, [2], 300),
    (typing, 5315, 1, [2], 300),
    (road, 2400, 7, [1, 2, 3], 0),
    (posts, 15850, 10, [2, 3, 4], 300),
    (drawn_days, 4032, 6, [1], 300),
    (calm, 4032, 5, [0], 300),
]
