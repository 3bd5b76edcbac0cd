"""Measure detections and false alarms of a stream on planted anomalies, at a chosen alarm rate."""

from __future__ import annotations

from typing import Any

import numpy as np
from rich.progress import track
from river import datasets

from ptncn.streaming import Stream
from ptncn.streaming.anomaly import Anomaly, AnomalySetting

RATES = (0.001, 0.01, 0.05)
SKIPPED = 1000
"""Observations at the beginning that are not counted, because the learner has learnt too little."""
SHORT = 300
"""The same for River's stream, which is short."""
EVERY, EVERY_SHORT = 500, 100
"""Number of observations per anomaly."""
SEEDS, SEEDS_SHORT = range(2), range(10)
"""Each seed draws a different stream, or different positions of the anomalies."""
ECHO = 5
"""Observations after an anomaly that are not counted, because the return to normal is also a surprise."""


def waves(count: int, draw: np.random.Generator) -> np.ndarray:
    t = np.arange(count)[:, None]
    return np.sin(2 * np.pi * t / [25, 11, 40, 17] + draw.uniform(0, 6, size=4)) + 0.1 * draw.normal(size=(count, 4))


def walk(count: int, draw: np.random.Generator) -> np.ndarray:
    return np.cumsum(draw.standard_t(3, size=(count, 2)), axis=0)


def water(count: int, draw: np.random.Generator) -> np.ndarray:
    return np.array([[y] for _, y in datasets.WaterFlow()], dtype=float)


def spikes(values: np.ndarray, at: np.ndarray, size: float, draw: np.random.Generator) -> None:
    """One column is off by `size`, up or down, for one observation."""
    values[at, draw.integers(values.shape[1], size=len(at))] += size * draw.choice([-1.0, 1.0], size=len(at))


def mirrors(values: np.ndarray, at: np.ndarray, size: float, draw: np.random.Generator) -> None:
    """All columns change their sign for one observation: each value would be ordinary at another time."""
    values[at] *= -1


def exchanges(values: np.ndarray, at: np.ndarray, size: float, draw: np.random.Generator) -> None:
    """Two columns are swapped for one observation: a large surprise at some times, and a small one at others."""
    values[at[:, None], [0, 1]] = values[at[:, None], [1, 0]]


STREAMS: dict[str, tuple[Any, Any, float, int, str]] = {
    "sines, spikes": (waves, spikes, 2.0, 20_000, "four sines, noise 0.1; one column is off by 2"),
    "sines, mirrored": (waves, mirrors, 0.0, 20_000, "the same; all columns change their sign"),
    "sines, exchanged": (waves, exchanges, 0.0, 20_000, "the same; two columns change places"),
    "walk, spikes": (walk, spikes, 40.0, 20_000, "two random walks, steps of Student's t with 3 degrees of freedom; "
                                                 "one is off by 40"),
    "water flow, spikes": (water, spikes, 10.0, 0, "River's hourly flow through a pipe; it is off by 10 l/s"),
}  # fmt: skip


def measure() -> dict[str, Any]:
    return {
        "rates": RATES,
        "echo": ECHO,
        "streams": {name: run(name) for name in track(STREAMS, description="planted anomalies")},
    }


def run(name: str) -> dict[str, Any]:
    """The defaults of `ptncn stream`, over all seeds."""
    *_, count, about = STREAMS[name]
    seeds = SEEDS if count else SEEDS_SHORT
    passes: dict[float, list[tuple[np.ndarray, np.ndarray, int]]] = {rate: [] for rate in RATES}
    for seed in seeds:
        for rate, alarms in watch(name, seed).items():
            passes[rate].append(alarms)
    return {
        "about": about,
        "observations": sum(len(alarm) for alarm, *_ in passes[RATES[0]]),
        "anomalies": sum(len(at) for _, at, _ in passes[RATES[0]]),
        "skipped": SKIPPED if count else SHORT,
        "seeds": len(seeds),
        "rates": {str(rate): judge(each) for rate, each in passes.items()},
    }


def watch(name: str, seed: int) -> dict[float, tuple[np.ndarray, np.ndarray, int]]:
    """For each rate, the alarms of a pass; where anomalies were planted; and how many observations do not count.

    Predictions do not depend on the rate, so each stream is predicted only once.
    """
    make, plant, size, count, _ = STREAMS[name]
    draw = np.random.default_rng(seed)
    values = make(count, draw)
    skipped, every = (SKIPPED, EVERY) if count else (SHORT, EVERY_SHORT)
    at = np.arange(skipped, len(values) - every, every)
    at = at + draw.integers(every - ECHO, size=len(at))
    plant(values, at, size, draw)
    outs = Stream(values, alarm_rate=RATES[0])
    unknown = [np.nan] * values.shape[1]
    predicted = np.array([list(out.prediction.values()) if out.prediction else unknown for out in outs], dtype=float)
    rows = np.zeros(len(values), dtype=np.int64)
    results = {}
    for rate in RATES:
        scorer = Anomaly(AnomalySetting(values.shape[1], rate=rate))
        results[rate] = scorer.observe(values, predicted, rows=rows).alarm, at, skipped
    return results


def judge(passes: list[tuple[np.ndarray, np.ndarray, int]]) -> dict[str, Any]:
    """Recall, precision, and the share of ordinary observations with an alarm, over all passes."""
    hits = planted = false = usual = 0
    for alarm, at, skipped in passes:
        ordinary = np.ones(len(alarm), dtype=bool)
        ordinary[:skipped] = False
        for place in at:
            ordinary[place : place + 1 + ECHO] = False
        hits, planted = hits + int(alarm[at].sum()), planted + len(at)
        false, usual = false + int(alarm[ordinary].sum()), usual + int(ordinary.sum())
    return {
        "recall": round(hits / planted, 4),
        "precision": round(hits / (hits + false), 4) if hits + false else None,
        "false_alarms": false,
        "ordinary": usual,
        "false_alarm_rate": round(false / usual, 6),
    }
