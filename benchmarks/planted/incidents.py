"""A family for the final evaluation: incidents of all sizes; labels mark the large ones, and sometimes nothing.

Like those of `metrics`, its parameters were chosen using only simple detectors; nothing of ours was tuned on it.
"""

from __future__ import annotations

import numpy as np

from planted import world
from planted.parts import Draw, Make, Places

NOTHING = 0.08
"""The share of labels that mark nothing."""


def clicks(n: int, rate: float, draw: Draw) -> np.ndarray:
    """Single outlying rows, up to 1 high."""
    return (draw.random(n) < rate) * draw.triangular(0.2, 0.8, 1.0, n)


def incident(n: int, at: int, draw: Draw, size: float) -> np.ndarray:
    """(n,) the contribution of an incident: a noisy plateau, a burst, a rise with a long decay, or a step."""
    out, rows = np.zeros(n), int(draw.geometric(1 / 30)) + 4
    here = out[at : at + rows]
    kind = draw.integers(5)
    if kind == 0:
        here += size * draw.uniform(0.6, 1.1, len(here))
    elif kind == 1:
        here += size * (draw.random(len(here)) < 0.5) * draw.uniform(0.5, 1.2, len(here))
    elif kind == 2:
        rest = np.arange(n - at)
        out[at:] += size * 1.2 * np.exp(-rest / rows) * draw.uniform(0.7, 1.1, n - at)
    elif kind == 3:
        here += 0.7 * size * draw.normal(size=len(here))
    else:
        out[at:] += draw.choice([-0.2, 0.3]) * size
    return out


def happenings(n: int, places: Places, draw: Draw, minor: float) -> np.ndarray:
    """(n,) all incidents in a file, relative to its usual range; unlabelled ones are small and rare."""
    out = np.zeros(n)
    for at in places:
        if draw.random() > NOTHING:
            out += incident(n, at, draw, float(np.exp(draw.uniform(np.log(0.7), np.log(4)))))
    for at in np.flatnonzero(draw.random(n) < minor / n).tolist():
        out += incident(n, at, draw, draw.uniform(0.2, 0.7))
    return out


def gauge(n: int, places: Places, window: int, draw: Draw) -> np.ndarray:
    """A generic measurement: autocorrelated noise, a cycle, and single outliers."""
    memory, noise = draw.choice([0.0, 0.5, 0.9]), draw.uniform(0.02, 0.12)
    x, last = np.empty(n), 0.0
    for t, step in enumerate((draw.standard_t(8, n) * np.sqrt(1 - memory**2)).tolist()):
        x[t] = last = memory * last + step
    t = np.arange(n) / draw.choice([24, 144, 288])
    cycle = draw.choice([0, 0, 0.3]) * np.abs(np.sin(np.pi * (t + draw.random()))) ** draw.choice([1, 3])
    y = noise * x + cycle + clicks(n, draw.choice([0.0, 0.01, 0.05]), draw) + happenings(n, places, draw, 0.7)
    y = draw.choice([0.2, 1, 3]) + y
    y = np.maximum(y, 0) * np.exp(draw.uniform(-1, 8))
    return np.round(y, 2)


def idle(n: int, places: Places, window: int, draw: Draw) -> np.ndarray:
    """Constant except for some rows."""
    y = clicks(n, draw.uniform(0.02, 0.3), draw) + np.maximum(happenings(n, places, draw, 0.5), 0)
    return np.round(1e5 * y)


def tally(n: int, places: Places, window: int, draw: Draw) -> np.ndarray:
    """Counts with a daily cycle and crowds."""
    t = np.arange(n) / 288 + draw.random()
    rate = 1 + draw.uniform(0.2, 0.9) * np.sin(2 * np.pi * t)
    rate += draw.uniform(3, 8) * (clicks(n, draw.uniform(0.002, 0.012), draw) + happenings(n, places, draw, 1.0))
    return draw.negative_binomial(6, 6 / (6 + np.exp(draw.uniform(1, 4.5)) * np.maximum(rate, 0.05))).astype(float)


SERIES: list[tuple[Make, int, int, list[int], int]] = [
    (gauge, 4032, 16, [1, 2], 300),
    (idle, 4730, 3, [1, 2], 300),
    (gauge, 1600, 6, [0, 1, 2, 3], 3600),
    (gauge, 7267, 1, [2], 3600),
    (gauge, 22695, 1, [4], 300),
    (world.demand, 10320, 1, [5], 1800),
    (gauge, 18050, 1, [1], 300),
    (idle, 1882, 1, [2], 300),
    (gauge, 2500, 7, [1, 2, 3], 0),
    (tally, 15850, 10, [2, 3, 4], 300),
    (world.artificial, 4032, 6, [1], 300),
    (world.harmless, 4032, 5, [0], 300),
]
