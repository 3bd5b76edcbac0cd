"""Prices of advertisements, temperatures, demand, traffic, mentions of companies, and artificial days."""

from __future__ import annotations

import numpy as np

from planted.parts import DAY, Draw, Places, add_spike, bursts, day, length, spikes, wander


def prices(n: int, places: Places, window: int, draw: Draw) -> np.ndarray:
    mean = draw.uniform(0.05, 1.0)
    y = mean * np.exp(wander(n, 0.6, draw.uniform(0.15, 0.5), draw) + 0.5 * day(n, 24, draw, "sine"))
    y += mean * draw.uniform(0.5, 1.5) * spikes(n, 0.012, draw, 2.2)
    for at in places:
        match draw.choice(["spike", "spike", "many", "low"]):
            case "spike":
                add_spike(y, at, mean * draw.uniform(2, 12), draw, 3)
            case "many":
                y[at : at + length(window, draw, 0.2, 0.6)] *= draw.uniform(1.5, 3)
            case _:
                y[at : at + length(window, draw, 0.1, 0.5)] *= draw.uniform(0, 0.5)
    return np.round(y, 4)


def room(n: int, places: Places, window: int, draw: Draw) -> np.ndarray:
    y = 70 + wander(n, 0.997, 3.0, draw) + 3 * day(n, 24, draw, "sine") + 0.5 * draw.normal(size=n)
    for at in places:
        end = at + length(window, draw, 0.1, 0.7)
        rows = np.linspace(0, np.pi, len(y[at:end]))
        y[at:end] += draw.choice([-1, 1, -1]) * draw.uniform(4, 14) * np.sin(rows)
    return y


def machine(n: int, places: Places, window: int, draw: Draw) -> np.ndarray:
    y = 88 + wander(n, 0.998, 6.0, draw) + wander(n, 0.8, 1.0, draw)
    y = np.minimum(y, 105 + 0.3 * (y - 105))
    for at in places:
        fall = length(window, draw, 0.1, 0.8)
        depth = draw.uniform(15, 80) if draw.random() < 0.7 else draw.uniform(5, 15)
        end = min(at + fall, n)
        sink = depth * (1 - np.exp(-np.arange(end - at) / draw.uniform(3, 60)))
        y[at:end] -= sink
        back = min(end + 60, n)
        y[end:back] -= sink[-1] * np.exp(-np.arange(back - end) / 20)
    return y


def demand(n: int, places: Places, window: int, draw: Draw) -> np.ndarray:
    weekday = 1 + 0.12 * draw.normal(size=7)
    y = 25_000 * (0.15 + day(n, 48, draw, "double")) * weekday[np.arange(n) // 48 % 7]
    y *= np.exp(wander(n, 0.97, 0.04, draw)) + 0.015 * draw.normal(size=n)
    for at in places:
        end = min(n, at + int(draw.choice([10, 24, 48, 48, 96])))
        match draw.choice(["low", "low", "gone", "high", "flat"]):
            case "low":
                y[at:end] *= draw.uniform(0.4, 0.75)
            case "gone":
                y[at:end] *= draw.uniform(0.02, 0.2)
            case "high":
                y[at:end] *= draw.uniform(1.2, 1.5)
            case _:
                y[at:end] = y[at:end].mean() + 0.3 * (y[at:end] - y[at:end].mean())
    return np.round(y)


def keys(n: int, places: Places, window: int, draw: Draw) -> np.ndarray:
    """Keystrokes: mostly none, some in working hours."""
    awake = day(n, 48 if n < 3000 else 144, draw, "office") > 0.5
    busy = awake & (draw.random(n) < draw.uniform(0.3, 0.8))
    y = np.where(busy, draw.gamma(1.5, 0.1, n), 0.0)
    for at in places:
        end = at + length(window, draw, 0.1, 0.6)
        match draw.choice(["other", "high", "night"]):
            case "other":
                y[at:end] = np.where(busy[at:end], draw.gamma(6, 0.1, len(y[at:end])), 0)
            case "high":
                add_spike(y, at, draw.uniform(0.8, 3), draw, 6)
            case _:
                y[at:end] = draw.gamma(2, 0.1, len(y[at:end]))
    return y


def speed(n: int, places: Places, window: int, draw: Draw) -> np.ndarray:
    jam = np.maximum(day(n, 200, draw, "double") - 0.6, 0) * draw.choice([0, 30, 50])
    y = 64 - jam * draw.uniform(0.6, 1.2, n) + wander(n, 0.6, 2.5, draw) + 2.5 * draw.normal(size=n)
    y -= 7 * spikes(n, 0.01, draw, 2.5, 2)
    for at in places:
        end = at + length(window, draw, 0.03, 0.5)
        if draw.random() < 0.75:
            y[at:end] -= draw.uniform(15, 45)
        else:
            y[at:end] += draw.uniform(8, 20)
    return np.round(np.clip(y, 5, 110))


def occupancy(n: int, places: Places, window: int, draw: Draw) -> np.ndarray:
    y = (2 + draw.uniform(5, 12) * day(n, 220, draw)) * np.exp(wander(n, 0.6, 0.25, draw))
    y += 5 * spikes(n, 0.015, draw, 2.5, 2)
    for at in places:
        end = at + length(window, draw, 0.02, 0.5)
        if draw.random() < 0.8:
            y[at:end] += draw.uniform(10, 35)
        else:
            y[at:end] = 0
    return np.round(y, 2)


def travel(n: int, places: Places, window: int, draw: Draw) -> np.ndarray:
    base = draw.uniform(80, 300)
    y = base * np.exp(np.abs(wander(n, 0.7, 0.25, draw)) + 0.5 * np.maximum(day(n, 150, draw) - 0.5, 0))
    y += base * spikes(n, 0.02, draw, 2.0, 2)
    for at in places:
        if draw.random() < 0.6:
            add_spike(y, at, base * draw.uniform(3, 20), draw, 4)
        else:
            y[at : at + length(window, draw, 0.1, 0.5)] *= draw.uniform(1.6, 3.5)
    return np.round(y)


def mentions(n: int, places: Places, window: int, draw: Draw) -> np.ndarray:
    mean = np.exp(draw.uniform(0.5, 4.2))
    usual = np.exp(wander(n, 0.98, draw.uniform(0.15, 0.4), draw) + draw.uniform(0.3, 1.2) * day(n, DAY, draw, "sine"))
    usual *= np.where((np.arange(n) // DAY + int(draw.integers(7))) % 7 >= 5, draw.uniform(0.6, 1), 1.0)
    talk = 1.2 * bursts(n, draw.uniform(0.001, 0.006), draw, 1.8, draw.uniform(0.5, 0.85))
    for at in places:
        rise, decay = draw.uniform(2, 40), draw.uniform(0.5, 0.99)
        rows = min(n - at, 600)
        talk[at : at + rows] += rise * decay ** np.arange(rows)
    return draw.poisson(mean * usual * (1 + talk) * draw.gamma(5, 1 / 5, n)).astype(float)


def artificial(n: int, places: Places, window: int, draw: Draw) -> np.ndarray:
    """Identical days except one, or spikes that become more frequent."""
    if draw.random() < 0.35:
        y = np.where(draw.random(n) < 0.02, draw.uniform(10, 40) * draw.uniform(0.8, 1.2, n), 0.0)
        y += draw.choice([0, 1]) * draw.uniform(0, 2, n)
        for at in places:
            end = at + window
            y[at:end] = np.where(draw.random(len(y[at:end])) < 0.12, y.max() * draw.uniform(0.7, 1), y[at:end])
        return y
    rows = np.arange(n)
    begin = int(draw.integers(DAY))
    busy = ((rows + begin) % DAY > 108) & ((rows + begin) % DAY < 216)
    noise = draw.uniform(1, 5)
    y = np.where(busy, draw.uniform(60, 90), 20.0) + noise * draw.uniform(-1, 1, n) * (1 + busy)
    for at in places:
        first = at + int(np.argmax(busy[at:])) if busy[at:].any() else at
        while first and busy[first - 1]:
            first -= 1
        part = slice(first, first + 108)
        match draw.choice(["up", "down", "none", "flat"]):
            case "up":
                y[part] += draw.uniform(0.3, 1) * 80
            case "down":
                y[part] -= draw.uniform(0.3, 0.7) * 50
            case "none":
                y[part] = 20 + noise * draw.uniform(-1, 1, len(y[part]))
            case _:
                y[part] = 20
    return y


def harmless(n: int, places: Places, window: int, draw: Draw) -> np.ndarray:
    t = np.arange(n) + int(draw.integers(DAY))
    match draw.choice(["flat", "noise", "days", "exact days", "square"]):
        case "flat":
            return np.full(n, draw.uniform(0, 60))
        case "noise":
            return 20 + draw.uniform(-2.5, 2.5, n)
        case "days":
            return np.where((t % DAY > 108) & (t % DAY < 216), 80.0, 20.0) + draw.uniform(-1, 1, n)
        case "exact days":
            return 50 + 30 * np.sin(2 * np.pi * t / DAY)
        case _:
            return np.where(t % DAY < 144, 80.0, 20.0)
