"""Compare the forecaster with simple rules on simulated series of many kinds: results/streams/kinds.json.

    python benchmarks/forecast_kinds.py                  # seeds on which nothing was chosen
    python benchmarks/forecast_kinds.py --seeds 0 1      # seeds on which experts and rates were chosen

The series imitate demand, requests, sales, temperatures and others, and have typical lengths. The forecaster has its
default setting, detects seasons itself, and uses no network here. The rules are the value one true season ago, the last
value, and ridge regression on 48 lags, refitted every 200 rows. The second half of each series is scored.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from ptncn.streaming.forecaster import Forecaster, default_setting

ROOT = Path(__file__).resolve().parents[1]
RECORD = ROOT / "results/streams/kinds.json"
HORIZONS = (1, 12, 24)
LAGS, REFIT = 48, 200
Draw = np.random.Generator
Made = tuple[np.ndarray, tuple[int, ...]]


def cycle(t: np.ndarray, period: float, draw: Draw, waves: int = 3) -> np.ndarray:
    """A smooth cycle of random shape."""
    sizes, phases = draw.uniform(0.3, 1, size=waves) / np.arange(1, waves + 1), draw.uniform(0, 2 * np.pi, size=waves)
    return sum(
        a * np.sin(2 * np.pi * (k + 1) * t / period + p) for k, (a, p) in enumerate(zip(sizes, phases, strict=True))
    )


def slow(n: int, draw: Draw, memory: float = 0.9, size: float = 1.0) -> np.ndarray:
    """An autoregression of order one with the standard deviation `size`."""
    x, shocks = np.zeros(n), draw.normal(size=n) * size * (1 - memory**2) ** 0.5
    for i in range(1, n):
        x[i] = memory * x[i - 1] + shocks[i]
    return x


def week(t: np.ndarray, day: int, draw: Draw) -> np.ndarray:
    """The factor of each day of the week."""
    factors = 1 + 0.05 * draw.normal(size=7)
    factors[5:] *= draw.uniform(0.6, 0.9)
    return factors[t // day % 7]


def demand(draw: Draw, day: int, n: int, noise: float) -> Made:
    t = np.arange(n)
    shape = 1 + 0.25 * cycle(t, day, draw)
    year = 1 + 0.15 * np.sin(2 * np.pi * t / (365 * day) + draw.uniform(0, 6))
    return 1000 * shape * week(t, day, draw) * year * (1 + slow(n, draw, 0.97, noise)), (day, 7 * day)


def counts(draw: Draw, n: int, day: int, mean: float) -> Made:
    t = np.arange(n)
    rate = mean * np.exp(0.6 * cycle(t, day, draw) + slow(n, draw, 0.98, 0.2))
    return draw.poisson(rate).astype(float), (day,)


def yearly(draw: Draw, n: int, noise: float) -> Made:
    t = np.arange(n)
    trend = 300 + 0.03 * t + 5e-6 * t**2
    return trend + 3 * cycle(t, 52.18, draw, 2) + slow(n, draw, 0.8, noise), (52,)


def monthly(draw: Draw, n: int, growth: float, noise: float, multiplicative: bool) -> Made:
    t = np.arange(n)
    level = 100 * np.exp(growth * t + slow(n, draw, 0.95, noise))
    shape = 0.2 * cycle(t, 12, draw, 4)
    return (level * np.exp(shape) if multiplicative else level + 100 * shape) * (1 + 0.02 * draw.normal(size=n)), (12,)


def short(draw: Draw, n: int, season: int, growth: float, multiplicative: bool = True) -> Made:
    """A trend, and a cycle that may grow with it."""
    t = np.arange(n)
    level, shape = (
        100 * np.exp(growth * t + slow(n, draw, 0.95, 0.03)),
        0.2 * cycle(t, season, draw, min(4, season // 2)),
    )
    return (level * np.exp(shape) if multiplicative else level + 100 * shape) * (1 + 0.02 * draw.normal(size=n)), (
        season,
    )


def temperature(draw: Draw, n: int, day: int) -> Made:
    t = np.arange(n)
    weather = slow(n, draw, 0.995, 4)
    return 10 + 8 * np.sin(2 * np.pi * t / (365 * day)) + 4 * cycle(t, day, draw, 2) + weather, (day,)


def sales(draw: Draw, n: int) -> Made:
    t = np.arange(n)
    spikes = np.where(draw.random(n) < 0.02, draw.uniform(1.5, 3, size=n), 1)
    return 50 * week(t, 1, draw) * (1 + 0.0003 * t) * spikes * draw.gamma(40, 1 / 40, size=n), (7,)


def walk(draw: Draw, n: int, tails: float) -> Made:
    return 100 + np.cumsum(draw.standard_t(tails, size=n)), (7,)


def decay(draw: Draw, n: int) -> Made:
    return 40 + slow(n, draw, 0.97, 3), (7,)


def flow(draw: Draw, n: int) -> Made:
    """A daily cycle with bursts that fade."""
    t, burst = np.arange(n), np.zeros(n)
    for i in range(1, n):
        burst[i] = 0.8 * burst[i - 1] + (draw.exponential(20) if draw.random() < 0.01 else 0)
    return 30 + 5 * cycle(t, 24, draw) + burst + draw.normal(size=n), (24,)


def switch(draw: Draw, n: int) -> Made:
    t = np.arange(n)
    return np.where(t // (n // 3) == 1, cycle(t, 13, draw, 2), cycle(t, 24, draw, 2)) + 0.1 * draw.normal(size=n), (24,)


def levels(draw: Draw, n: int) -> Made:
    t = np.arange(n)
    steps = np.cumsum(np.where(draw.random(n) < 0.002, 20 * draw.normal(size=n), 0))
    return 100 + steps + 3 * cycle(t, 24, draw) + draw.normal(size=n), (24,)


def spots(draw: Draw, n: int) -> Made:
    phase = 2 * np.pi * np.cumsum(1 + 0.1 * slow(n, draw, 0.98)) / 131
    return np.maximum(0, 60 + 60 * np.sin(phase)) * np.exp(0.3 * draw.normal(size=n)), (131,)


def solar(draw: Draw, n: int) -> Made:
    t = np.arange(n)
    return np.maximum(0, np.sin(2 * np.pi * (t % 24 - 6) / 24)) * np.repeat(draw.beta(4, 2, n // 24 + 1), 24)[:n], (24,)


def rare(draw: Draw, n: int) -> Made:
    t = np.arange(n)
    return draw.poisson(0.3 * np.exp(cycle(t, 7, draw, 2))).astype(float), (7,)


KINDS: dict[str, Callable[[Draw], Made]] = {
    "half-hourly demand": lambda d: demand(d, 48, 10_000, 0.03),
    "half-hourly demand, noisy": lambda d: demand(d, 48, 10_000, 0.1),
    "hourly load": lambda d: demand(d, 24, 6_000, 0.04),
    "hourly load, noisy": lambda d: demand(d, 24, 6_000, 0.15),
    "requests in 5 minutes": lambda d: counts(d, 4_000, 288, 300),
    "few requests in 5 minutes": lambda d: counts(d, 4_000, 288, 5),
    "requests in an hour": lambda d: counts(d, 2_000, 24, 100),
    "weekly, by the year": lambda d: yearly(d, 2_300, 0.3),
    "weekly, by the year, noisy": lambda d: yearly(d, 2_300, 1.5),
    "monthly, growing": lambda d: monthly(d, 144, 0.01, 0.03, True),
    "monthly, longer": lambda d: monthly(d, 480, 0.004, 0.05, True),
    "monthly, additive": lambda d: monthly(d, 300, 0.002, 0.05, False),
    "monthly, level": lambda d: monthly(d, 240, 0.0, 0.1, True),
    "monthly, 9 years": lambda d: short(d, 108, 12, 0.01),
    "monthly, 9 years, additive": lambda d: short(d, 108, 12, 0.004, False),
    "monthly, 17 years": lambda d: short(d, 200, 12, 0.007),
    "monthly, 33 years": lambda d: short(d, 400, 12, 0.003),
    "quarterly, 30 years": lambda d: short(d, 120, 4, 0.008),
    "daily, 17 weeks": lambda d: short(d, 120, 7, 0.001),
    "hourly, 12 days": lambda d: short(d, 300, 24, 0.0),
    "temperature": lambda d: temperature(d, 6_000, 24),
    "daily sales": lambda d: sales(d, 1_500),
    "random walk": lambda d: walk(d, 1_500, 5),
    "random walk, heavy tails": lambda d: walk(d, 1_500, 2.5),
    "slow return to a mean": lambda d: decay(d, 1_500),
    "flow with bursts": lambda d: flow(d, 2_000),
    "season that switches": lambda d: switch(d, 3_000),
    "levels that jump": lambda d: levels(d, 3_000),
    "sunspots": lambda d: spots(d, 2_500),
    "solar power": lambda d: solar(d, 4_000),
    "rare events": lambda d: rare(d, 1_500),
}


def seasonal(y: np.ndarray, season: int, horizon: int) -> np.ndarray:
    """After each row, the value a whole number of seasons before the forecast step."""
    back = np.arange(len(y)) + horizon - -(-horizon // season) * season
    return np.where(back >= 0, y[np.maximum(back, 0)], y)


def linear(y: np.ndarray, horizon: int) -> np.ndarray:
    """After each row, ridge regression on the last values, relative to the last."""
    made, scale = y.copy(), y[: len(y) // 4].std() or 1.0
    windows = (sliding_window_view(y, LAGS) - y[LAGS - 1 :, None]) / scale
    windows = np.c_[windows, np.ones(len(windows))]
    goals = (y[LAGS - 1 + horizon :] - y[LAGS - 1 : -horizon]) / scale
    square, product, seen = np.eye(LAGS + 1), np.zeros(LAGS + 1), 0
    for t in range(2 * LAGS, len(y), REFIT):
        known = t - horizon - LAGS + 2
        new = windows[seen:known]
        square, product, seen = square + new.T @ new, product + new.T @ goals[seen:known], known
        at = np.arange(t, min(t + REFIT, len(y)))
        made[at] = y[at] + scale * (windows[at - LAGS + 1] @ np.linalg.solve(square, product))
    return made


def measure(y: np.ndarray, seasons: tuple[int, ...]) -> dict[str, dict[str, float]]:
    """Mean absolute errors of the forecaster and of the rules at each horizon."""
    forecaster = Forecaster(default_setting(1, HORIZONS[-1], 0))
    made = forecaster.observe(y[:, None].copy(), rows=np.zeros(len(y), dtype=np.int64)).mean[:, 0]
    results = {}
    for h in HORIZONS:
        rules = {"copy": y, "lags": linear(y, h), **{f"season {m}": seasonal(y, m, h) for m in seasons}}
        at = np.arange(len(y) // 2, len(y) - h)
        results[str(h)] = {
            name: float(np.abs(y[at + h] - said[at]).mean())
            for name, said in {"forecaster": made[:, h - 1], **rules}.items()
        }
    return results


def ratios(errors: dict[str, dict[str, float]]) -> dict[str, float]:
    """The forecaster's error divided by the error of the best rule, at each horizon."""
    return {h: e["forecaster"] / min(v for name, v in e.items() if name != "forecaster") for h, e in errors.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", nargs="+", type=int, default=[10, 11])
    parser.add_argument("--kinds", nargs="+", default=list(KINDS), choices=list(KINDS))
    parser.add_argument("--out", type=Path, default=RECORD)
    options = parser.parse_args()
    results: dict[str, list[dict[str, dict[str, float]]]] = {}
    for name in options.kinds:
        results[name] = [measure(*KINDS[name](np.random.default_rng([seed, *name.encode()]))) for seed in options.seeds]
        shown = [" ".join(f"{ratio:.3f}" for ratio in ratios(run).values()) for run in results[name]]
        print(f"{name:28s}", *shown, sep="   ", flush=True)
    every = [ratio for runs in results.values() for run in runs for ratio in ratios(run).values()]
    print(
        f"above 1.1: {sum(r > 1.1 for r in every)} of {len(every)}; worst {max(every):.3f}; mean {np.mean(every):.3f}"
    )
    record = {"command": "python benchmarks/forecast_kinds.py", "seeds": options.seeds, "results": results}
    options.out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
