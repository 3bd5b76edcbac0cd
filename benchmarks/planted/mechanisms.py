"""A third family: small simulated systems with faults. Labels mark when a fault begins; the values show it through the
dynamics of the system, immediately or later."""

from __future__ import annotations

import numpy as np

from planted.parts import Draw, Make, Places


def broken(n: int, places: Places, window: int, draw: Draw, low: float = 0.1, high: float = 1.0) -> np.ndarray:
    """(n,) the number of the active fault at each row; 0 for none."""
    fault = np.zeros(n, dtype=int)
    for number, at in enumerate(places, 1):
        fault[at : at + max(3, int(window * draw.uniform(low, high)))] = number
    return fault


def hours(n: int, period: float, draw: Draw, sharp: float) -> np.ndarray:
    """Human activity from 0 to 1, with quiet nights of random length and calmer weekends."""
    t = np.arange(n) / period + draw.random()
    wave = 1 / (1 + np.exp(-sharp * (np.sin(2 * np.pi * t) - draw.uniform(-0.3, 0.5))))
    return wave * np.where(t % 7 >= 5, draw.uniform(0.4, 1.0), 1.0)


def queue(n: int, places: Places, window: int, draw: Draw) -> np.ndarray:
    """Waiting time: work arrives with a daily cycle, is served at a constant rate, and queues up."""
    capacity, load = 100.0, draw.uniform(30, 70)
    arrivals = load * (0.5 + 0.7 * hours(n, 288, draw, draw.uniform(1, 6)))
    fault, kinds = broken(n, places, window, draw), draw.integers(3, size=len(places) + 1)
    y, waiting = np.zeros(n), 0.0
    for t in range(n):
        served, arrived = capacity, draw.poisson(arrivals[t]) * draw.gamma(20, 1 / 20)
        if draw.random() < 0.004:
            arrived += draw.exponential(capacity)
        if fault[t]:
            kind = kinds[fault[t]]
            served *= draw.uniform(0.3, 0.6) if kind == 0 else 1.0
            arrived *= 1.8 if kind == 1 else 0.1 if kind == 2 else 1.0
        waiting = min(max(0.0, 0.6 * waiting + arrived - served), 5000.0)
        y[t] = 5 + 0.3 * arrived + waiting + draw.normal()
    return np.round(np.maximum(y, 0), 1)


def memory(n: int, places: Places, window: int, draw: Draw) -> np.ndarray:
    """Memory in use, which grows and is garbage-collected; a fault makes it leak."""
    fault = broken(n, places, window, draw, 0.3, 1.0)
    grow, used, rest, y = draw.uniform(0.3, 3), 20.0, 20.0, np.zeros(n)
    kinds = draw.integers(3, size=len(places) + 1)
    for t in range(n):
        kind = kinds[fault[t]] if fault[t] else -1
        used += grow * draw.gamma(3, 1 / 3) * (3 if kind == 0 else 1)
        if kind == 1:
            rest = min(rest + 0.4 * grow, 70.0)
        elif not fault[t]:
            rest += 0.05 * (20 - rest)
        if used > (80 if kind != 2 else 50) + 4 * draw.normal():
            used = rest + 2 * draw.normal()
        y[t] = used
    return np.round(np.clip(y, 0, 100), 2)


def thermostat(n: int, places: Places, window: int, draw: Draw) -> np.ndarray:
    """A heated or cooled room with an on-off controller, and a daily cycle outside."""
    lag, power, fault = draw.uniform(0.02, 0.1), draw.uniform(25, 45), broken(n, places, window, draw)
    outside = 5 + 8 * np.sin(2 * np.pi * (np.arange(n) / 288 + draw.random())) + np.cumsum(0.05 * draw.normal(size=n))
    kinds = draw.integers(4, size=len(places) + 1)
    wanted, on, x, y = 20.0, False, 20.0, np.zeros(n)
    for t in range(n):
        kind = kinds[fault[t]] if fault[t] else -1
        on = (x < wanted + (1 if on else -1)) if kind not in (0, 1) else kind == 1
        x += lag * (outside[t] - x + power * on * (0.6 if kind == 2 else 1)) + 0.05 * draw.normal()
        y[t] = y[t - 1] if kind == 3 and t else x + 0.1 * draw.normal()
    return y


def pulses(n: int, places: Places, window: int, draw: Draw) -> np.ndarray:
    """A regular pulse of usual height; faults make pulses go missing, come early or change shape."""
    every, height, width = int(draw.integers(12, 150)), np.exp(draw.uniform(0, 6)), int(draw.integers(1, 7))
    fault, kinds = broken(n, places, window, draw, 0.2, 1.0), draw.integers(4, size=len(places) + 1)
    y, at = 0.05 * height * np.abs(draw.normal(size=n)), int(draw.integers(every))
    while at < n:
        kind = kinds[fault[at]] if fault[at] else -1
        size = height * draw.gamma(60, 1 / 60) * {0: 0.0, 1: 1.0, 2: 1.9, 3: 1.0}.get(int(kind), 1.0)
        rows = width * (4 if kind == 3 else 1)
        y[at : at + rows] += size
        at += max(1, int(every * (0.4 if kind == 1 else 1)) + int(draw.integers(-1, 2)))
    return y


def pool(n: int, places: Places, window: int, draw: Draw) -> np.ndarray:
    """The mean load of machines behind a load balancer; the fewer are up, the higher the load on each."""
    machines, work = int(draw.integers(3, 12)), draw.uniform(2, 6)
    demand = work * (0.6 + 0.5 * hours(n, 288, draw, draw.uniform(0.5, 4)))
    fault, kinds = broken(n, places, window, draw, 0.05, 0.8), draw.integers(3, size=len(places) + 1)
    up, y = machines, np.zeros(n)
    for t in range(n):
        kind = kinds[fault[t]] if fault[t] else -1
        lost = {0: machines // 2, 1: 0, 2: machines}.get(int(kind), 0)
        up = max(up - 1, machines - lost) if machines - lost < up else min(up + 1, machines)
        share = demand[t] * draw.gamma(60, 1 / 60) * (1.7 if kind == 1 else 1) / max(up, 1)
        y[t] = 100 * (1 - np.exp(-share)) if up else 0.0
        y[t] += draw.exponential(15) if draw.random() < 0.006 else 0.0
    return np.round(np.clip(y, 0, 100), 1)


def rumours(n: int, places: Places, window: int, draw: Draw) -> np.ndarray:
    """Messages about a topic that trigger further messages; labels mark outside news."""
    base = np.exp(draw.uniform(-0.5, 4)) * (0.3 + hours(n, 288, draw, 2.0))
    branch, tempo = draw.uniform(0.3, 0.75), draw.uniform(0.1, 0.6)
    news = np.zeros(n)
    for at in np.flatnonzero(draw.random(n) < 1 / 1200).tolist():
        news[at] = base.mean() * draw.pareto(1.5) * 2
    for at in places:
        news[at] += base.mean() * draw.uniform(8, 60)
    stock, y = 0.0, np.zeros(n)
    for t in range(n):
        stock += news[t]
        y[t] = draw.poisson(base[t] + tempo * stock)
        stock = (1 - tempo) * stock + branch * tempo * min(max(y[t] - base[t], 0.0), 2 * stock + 5)
    return y


def market(n: int, places: Places, window: int, draw: Draw) -> np.ndarray:
    """A price per thousand views, set by auction: few bidders at night, sometimes a rich one."""
    bidders = 2 + draw.poisson(6 * (0.4 + hours(n, 24, draw, 1.5)))
    fault, kinds = broken(n, places, window, draw, 0.02, 0.4), draw.integers(3, size=len(places) + 1)
    spread, y = draw.uniform(0.3, 0.8), np.zeros(n)
    for t in range(n):
        kind = kinds[fault[t]] if fault[t] else -1
        number = 1 if kind == 0 else int(bidders[t]) * (5 if kind == 2 else 1)
        bids = np.sort(draw.lognormal(-1.5, spread, max(number, 2)))
        y[t] = bids[-2] * (draw.uniform(3, 12) if kind == 1 else 1)
        y[t] *= draw.uniform(2, 4) if draw.random() < 0.008 else 1
    return np.round(y, 4)


def motorway(n: int, places: Places, window: int, draw: Draw) -> np.ndarray:
    """Speed or occupancy at a traffic loop: traffic breaks down above capacity and recovers slowly."""
    flow = 0.35 + 0.6 * hours(n, 190, draw, draw.uniform(1, 5)) * draw.uniform(0.7, 1.3)
    fault, which = broken(n, places, window, draw, 0.05, 0.5), draw.integers(2)
    jam, y = 0.0, np.zeros(n)
    for t in range(n):
        now = flow[t] * draw.gamma(80, 1 / 80)
        limit = draw.uniform(0.2, 0.4) if fault[t] else 1.0
        jam = np.clip(0.85 * jam + 0.8 * (now - limit) * (now > limit), 0, 1.2)
        speed = 68 - 8 * now - 45 * jam + 2 * draw.standard_t(5)
        y[t] = speed if which else 100 * now * 0.13 + 30 * jam + draw.exponential(0.8)
    return np.round(np.clip(y, 0, 100))


def plant(n: int, places: Places, window: int, draw: Draw) -> np.ndarray:
    """The temperature of a large machine, which follows its load and its cooling with a long lag."""
    load, level = np.zeros(n), 0.8
    for t in range(n):
        level = draw.uniform(0.5, 1) if draw.random() < 1 / 700 else level
        load[t] = level
    fault, kinds = broken(n, places, window, draw, 0.1, 0.9), draw.integers(3, size=len(places) + 1)
    x, y = 80.0, np.zeros(n)
    for t in range(n):
        kind = kinds[fault[t]] if fault[t] else -1
        goal = 20 + 75 * load[t] * {0: 0.0, 1: 1.35, 2: 0.6}.get(int(kind), 1.0)
        x += 0.012 * (goal - x) + 0.25 * draw.normal()
        y[t] = x + 0.4 * draw.normal()
    return y


def drawn(n: int, places: Places, window: int, draw: Draw) -> np.ndarray:
    """A wave that is the same every day except one."""
    t, period = np.arange(n), 288
    shape = np.cumsum(draw.normal(size=period))
    shape = np.convolve(np.tile(shape - np.linspace(shape[0], shape[-1], period), 3), np.ones(25) / 25, "same")
    shape = 40 * (shape[period : 2 * period] - shape.min()) / np.ptp(shape) + 10
    y = shape[t % period] + draw.choice([0.2, 1.5]) * draw.normal(size=n)
    for at in places:
        end, kind = min(n, at + int(draw.integers(60, 288))), draw.integers(4)
        if kind == 0:
            y[at:end] = y[at]
        elif kind == 1:
            y[at:end] = shape[(t[at:end] + 90) % period]
        elif kind == 2:
            y[at:end] += draw.choice([-1, 1]) * 15
        else:
            y[at:end] = y[at:end].mean()
    return y


def sound(n: int, places: Places, window: int, draw: Draw) -> np.ndarray:
    """No anomalies."""
    t = np.arange(n)
    kind = draw.integers(4)
    if kind == 0:
        return np.zeros(n)
    if kind == 1:
        return 3 + (t // 48 % 6).astype(float)
    if kind == 2:
        return 40 + 10 * np.sin(2 * np.pi * t / 288) + draw.laplace(size=n)
    return draw.poisson(4, n).astype(float)


SERIES: list[tuple[Make, int, int, list[int], int]] = [
    (queue, 4032, 5, [1, 2], 300),
    (memory, 4032, 4, [1, 2], 300),
    (pulses, 4032, 4, [1, 2], 300),
    (pool, 4032, 5, [1, 2, 3], 300),
    (market, 1600, 6, [1, 2, 3], 3600),
    (thermostat, 7267, 1, [2], 3600),
    (plant, 22695, 1, [4], 300),
    (queue, 18050, 1, [1], 300),
    (pulses, 1882, 1, [2], 300),
    (pool, 5315, 1, [2], 300),
    (thermostat, 4032, 1, [3], 300),
    (motorway, 2400, 7, [1, 2, 3], 0),
    (rumours, 15850, 10, [2, 3, 4], 300),
    (drawn, 4032, 6, [1], 300),
    (sound, 4032, 5, [0], 300),
]
