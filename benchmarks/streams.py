"""Prequential errors of online forecasters on real and synthetic streams; one record, and the page made from it.

    python benchmarks/streams.py            # writes results/streams/comparison.json and docs/streams-results.md
    python benchmarks/streams.py --page     # the page alone, from the record

Takes about five minutes on two idle cores. Every model forecasts one step, then learns. What it is to be set to is
chosen among twelve settings by the error on the first part of each stream; the error told is that of the rest.
"""

from __future__ import annotations

import json
import math
import os
import platform
import statistics
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from importlib.metadata import version
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch
from river import compose, datasets, linear_model, preprocessing, time_series

from ptncn.streaming.river import PTNCNForecaster

ROOT = Path(__file__).resolve().parents[1]
RECORD, PAGE = ROOT / "results/streams/comparison.json", ROOT / "docs/streams-results.md"
SEEDS = {True: range(5), False: range(3)}
"""On the stream that switches, and on the others."""
NOISE = 0.1
REGIME = 1200
SMOOTH = 25
Rows = list[tuple[dict[str, float] | None, float]]


@dataclass(frozen=True)
class Stream:
    about: str
    tuned: int
    """Observations by which the settings are chosen; they are not scored."""
    season: int
    random: bool = False
    """Whether each seed makes other data."""
    optimum: float | None = None
    """The mean absolute error of who knows the process."""


LEAST = NOISE * math.sqrt(2 / math.pi)
STREAMS = {
    "water flow": Stream("hourly flow through a pipe, l/s", 380, 24),
    "airline": Stream("monthly passengers, thousands", 48, 12),
    "approval": Stream("daily approval of a president, %", 300, 7),
    "approval + polls": Stream("the same, with five polls of the day as features", 300, 7),
    "sines": Stream("four sines and noise", 500, 25, random=True, optimum=LEAST),
    "Mackey-Glass": Stream("chaos with a delay of 17, every 3rd value", 500, 17, random=True, optimum=0.0),
    "switch": Stream("two sines and noise; other sines; the first again", 500, 25, random=True, optimum=LEAST),
}


def rows(stream: str, seed: int) -> Rows:
    draw = np.random.default_rng(seed)
    match stream:
        case "water flow":
            return [(None, float(y)) for _, y in datasets.WaterFlow()]
        case "airline":
            return [(None, float(y)) for _, y in datasets.AirlinePassengers()]
        case "approval":
            return [(None, y) for _, y in datasets.TrumpApproval()]
        case "approval + polls":
            return [({k: v for k, v in x.items() if k != "ordinal_date"}, y) for x, y in datasets.TrumpApproval()]
        case "sines":
            values = waves(np.arange(2000), (25, 11, 7, 4.3), draw)
        case "Mackey-Glass":
            values = mackey_glass(2000, draw)
        case "switch":
            t = np.arange(REGIME)
            parts = [waves(t + k * REGIME, periods, draw) for k, periods in enumerate([(25, 9), (13, 5), (25, 9)])]
            values = np.concatenate(parts)
    return [(None, float(value)) for value in values]


def waves(t: np.ndarray, periods: tuple[float, ...], draw: np.random.Generator) -> np.ndarray:
    phases = draw.uniform(0, 2 * np.pi, size=len(periods))
    clean = sum(np.sin(2 * np.pi * t / period + phase) for period, phase in zip(periods, phases, strict=True))
    return clean / len(periods) ** 0.5 + NOISE * draw.normal(size=len(t))


def mackey_glass(count: int, draw: np.random.Generator, every: int = 3, delay: int = 17) -> np.ndarray:
    """dx/dt = 0.2 x(t−τ) / (1 + x(t−τ)¹⁰) − 0.1 x, in steps of 0.1, after 500 units of time."""
    per, total = 10, 500 + count * every
    x = np.full((delay + total) * per, 1.2)
    x[: delay * per] += 0.1 * draw.uniform(-1, 1)
    for t in range(delay * per, len(x)):
        past = x[t - delay * per]
        x[t] = x[t - 1] + (0.2 * past / (1 + past**10) - 0.1 * x[t - 1]) / per
    return x[-count * every * per :: every * per]


class CopyLast(time_series.base.Forecaster):
    """The last value again."""

    def __init__(self) -> None:
        self.last = 0.0

    def learn_one(self, y: float, x: dict[str, float] | None = None) -> None:
        self.last = y

    def forecast(self, horizon: int, xs: list[dict[str, float]] | None = None) -> list[float]:
        return [self.last] * horizon


def grid(**choices: list[Any]) -> list[dict[str, Any]]:
    return [dict(zip(choices, values, strict=True)) for values in product(*choices.values())]


BPTT = [{"window": 10, "stride": 1}, {"window": 25, "stride": 25}]
ORDERS = [
    {"p": 2, "d": 0, "q": 0},
    {"p": 12, "d": 0, "q": 0},
    {"p": 25, "d": 0, "q": 0},
    {"p": 12, "d": 1, "q": 0},
    {"p": 12, "d": 1, "q": 12, "sd": 1},
    {"p": 2, "d": 0, "q": 2, "sp": 2},
]
SEASONS = [
    {},
    {"beta": 0.1},
    {"beta": 0.1, "gamma": 0.3, "season": True},
    {"beta": 0.1, "gamma": 0.3, "season": True, "multiplicative": True},
]
GRIDS: dict[str, list[dict[str, Any]]] = {
    "ptncn": grid(lr=[1e-3, 2e-3, 4e-3], target=["change", "both"], hidden=[(32, 32), (64,)]),
    "lstm-tbptt": grid(lr=[1e-3, 3e-3, 1e-2], target=["change", "both"], options=BPTT),
    "esn-rls": grid(
        target=["change", "both"],
        options=[{"forgetting": f, "leak_rate": a} for f in (1.0, 0.999, 0.995) for a in (1.0, 0.3)],
    ),
    "SNARIMAX": grid(order=ORDERS, regressor=["sgd", "bayes"]),
    "Holt-Winters": grid(alpha=[0.2, 0.5, 0.8], rest=SEASONS),
    "copy-last": [{}],
}


def constant(x: dict[str, float]) -> dict[str, float]:
    """An intercept, which River's Bayesian regression has not."""
    return {"constant": 1.0}


def make(model: str, setting: dict[str, Any], season: int, seed: int) -> Any:
    match model:
        case "copy-last":
            return CopyLast()
        case "Holt-Winters":
            rest = dict(setting["rest"])
            return time_series.HoltWinters(setting["alpha"], seasonality=season if rest.pop("season", 0) else 0, **rest)
        case "SNARIMAX":
            kinds = {"sgd": linear_model.LinearRegression, "bayes": linear_model.BayesianLinearRegression}
            inputs = preprocessing.StandardScaler() + compose.FuncTransformer(constant)
            regressor = inputs | kinds[setting["regressor"]]()
            return time_series.SNARIMAX(**setting["order"], m=season, regressor=regressor)
    sizes = {"lstm-tbptt": (64,), "esn-rls": (100,)}
    return PTNCNForecaster(model, **{"hidden": sizes.get(model), **setting}, seed=seed)


def errors(model: Any, data: Rows) -> np.ndarray:
    """(len(data) − 1,) what was forecast, minus what came; infinite once a model has broken down."""
    found = np.full(len(data) - 1, np.inf)
    for t, (x, y) in enumerate(data):
        if t:
            try:
                found[t - 1] = model.forecast(1, xs=None if x is None else [x])[0] - y
            except IndexError:  # Holt-Winters has not seen a whole season yet
                found[t - 1] = data[t - 1][1] - y
            except OverflowError:
                return found
        try:
            model.learn_one(y=y, x=x)
        except OverflowError:
            return found
    return np.where(np.isfinite(found), found, np.inf)


def tune(model: str, stream: str) -> dict[str, Any]:
    """The setting with the least mean absolute error in the second half of the first part, seed 0."""
    settings, first = GRIDS[model], STREAMS[stream].tuned
    data = rows(stream, seed=100)[:first]  # data that is random is other data than that which is scored
    made = [make(model, setting, STREAMS[stream].season, seed=0) for setting in settings]
    scores = [float(np.abs(errors(each, data)[first // 2 :]).mean()) for each in made] if len(made) > 1 else [0.0]
    return settings[int(np.argmin(scores))]


def run(model: str, stream: str) -> dict[str, Any]:
    """Tune, then go over the stream once with each seed."""
    torch.set_num_threads(1)
    np.seterr(all="ignore")
    setting, spec = tune(model, stream), STREAMS[stream]
    chance = spec.random or model in ("ptncn", "lstm-tbptt", "esn-rls")
    found = []
    for seed in SEEDS[stream == "switch"] if chance else [0]:
        found.append(np.abs(errors(make(model, setting, spec.season, seed), rows(stream, seed))))
    scored = [float(each[spec.tuned :].mean()) for each in found]
    result = {
        "setting": setting,
        "mae": statistics.mean(scored),
        "sd": statistics.stdev(scored) if len(scored) > 1 else None,
        "rmse": float(np.sqrt(np.mean([np.square(each[spec.tuned :]) for each in found]))),
    }
    if stream == "switch":
        result["recovery"] = [recovery(np.mean(found, axis=0), k * REGIME) for k in (1, 2)]
    return result


def recovery(curve: np.ndarray, switch: int) -> dict[str, Any]:
    """Observations from a switch until the error, smoothed over the last 25 and meant over the seeds, is back within
    10 % of that of the 500 before the switch; None if it never is."""
    before = float(curve[switch - 501 : switch - 1].mean())
    smooth = np.convolve(curve, np.full(SMOOTH, 1 / SMOOTH), "valid")[switch - 1 :][: REGIME - SMOOTH + 1]
    back = np.flatnonzero(smooth <= 1.1 * before)
    return {
        "error_before": before,
        "error_after": float(curve[switch - 1 : switch + 99].mean()),
        "observations": int(back[0]) + SMOOTH if len(back) else None,
    }


def cost(model: str, setting: dict[str, Any], count: int = 1000) -> float:
    """Microseconds that a forecast and an observation take, the median over the stream of sines."""
    data, made, taken = rows("sines", 0)[: count + 200], make(model, setting, STREAMS["sines"].season, 0), []
    errors(made, data[:200])
    for _, y in data[200:]:
        start = time.perf_counter()
        made.forecast(1)
        made.learn_one(y=y)
        taken.append(time.perf_counter() - start)
    blocks = [sum(taken[k : k + 100]) / 100 for k in range(0, count, 100)]  # of 100: updates may come in bursts
    return 1e6 * statistics.median(blocks)


def measure() -> dict[str, Any]:
    pairs = list(product(GRIDS, STREAMS))
    # the long ones first
    pairs.sort(
        key=lambda pair: ("lstm-tbptt", "esn-rls", "ptncn", "SNARIMAX", "Holt-Winters", "copy-last").index(pair[0])
    )
    load = os.getloadavg()[0]
    with ProcessPoolExecutor(max_workers=2) as pool:
        found = dict(zip(pairs, pool.map(run, *zip(*pairs, strict=True)), strict=True))
    timing_load = os.getloadavg()[0]
    times = {model: round(cost(model, found[model, "sines"]["setting"]), 1) for model in GRIDS}
    return {
        "command": "python benchmarks/streams.py",
        "versions": {"python": platform.python_version()}
        | {name: version(name) for name in ("ptncn", "river", "torch", "numpy")},
        "machine": {"cores": os.cpu_count(), "processor": platform.machine()},
        "loadavg": {"before": round(load, 2), "before_timing": round(timing_load, 2)},
        "seeds": {"switch": list(SEEDS[True]), "others": list(SEEDS[False])},
        "streams": {
            name: {
                "about": spec.about,
                "observations": len(rows(name, 0)),
                "tuned_on": spec.tuned,
                "optimum": spec.optimum,
                "last_values": [round(y, 6) for _, y in rows(name, 0)[-3:]],
            }
            for name, spec in STREAMS.items()
        },
        "grids": GRIDS,
        "results": {model: {stream: found[model, stream] for stream in STREAMS} for model in GRIDS},
        "microseconds_per_observation": times,
    }


def page(record: dict[str, Any]) -> str:
    """The page that shows a record."""
    results, streams = record["results"], record["streams"]
    best = {name: min(results[model][name]["mae"] for model in results) for name in streams}

    def cell(model: str, name: str) -> str:
        value, sd = results[model][name]["mae"], results[model][name]["sd"]
        text = f"{value:.3g}" if sd is None else f"{value:.3g} ± {sd:.1g}"
        return f"**{text}**" if value == best[name] else text

    lines = [
        "# Streams: the P-TNCN beside other online forecasters",
        "",
        "Made from [the record](../results/streams/comparison.json) by `python benchmarks/streams.py --page`; "
        "the record was written by `python benchmarks/streams.py`.",
        "",
        "Mean absolute error of the forecast one step ahead, each observation being forecast before it is learnt; the "
        "best in bold. ± is the standard deviation over the seeds, which draw the weights and, for the last three "
        "streams, the data.",
        "",
        f"| | {' | '.join(streams)} | µs |",
        "|---" * (len(streams) + 2) + "|",
    ]
    for model, row in results.items():
        took = record["microseconds_per_observation"][model]
        lines.append(f"| `{model}` | {' | '.join(cell(model, name) for name in row)} | {took:.0f} |")
    optimum = ["" if spec["optimum"] is None else f"{spec['optimum']:.3g}" for spec in streams.values()]
    lines += [
        f"| *optimum* | {' | '.join(optimum)} | |",
        "",
        "µs is the time of one forecast and one observation on the stream of sines, with the settings chosen for it. "
        f"The load of the machine was {record['loadavg']['before_timing']} when it was taken, "
        f"on {record['machine']['cores']} cores"
        + (
            "."
            if record["loadavg"]["before_timing"] <= record["machine"]["cores"] + 0.5
            else ": too busy to be trusted."
        ),
        "",
        "## The streams",
        "",
        "| | what | observations | of these for tuning |",
        "|---|---|---|---|",
    ]
    lines += [f"| {name} | {s['about']} | {s['observations']} | {s['tuned_on']} |" for name, s in streams.items()]
    lines += [
        "",
        "The first four ship with River. Noise has a standard deviation of 0.1, so that nobody can do better than "
        "0.0798; Mackey-Glass has none.",
        "",
        "## How all were tuned",
        "",
        "Each model has a grid of twelve settings. They are tried on the first part of a stream, for random streams "
        "that of another draw, and the one with the least error in the second half of that part is taken. That part "
        "is then learnt from again, but not scored. P-TNCN and LSTM have 64 units, the ESN 100.",
        "",
        "| | chosen |",
        "|---|---|",
    ]
    for model, row in results.items():
        if len(record["grids"][model]) > 1:
            chosen = "; ".join(f"{name}: `{_short(result['setting'])}`" for name, result in row.items())
            lines.append(f"| `{model}` | {chosen} |")
    lines += [
        "",
        "## After a switch",
        "",
        f"Every {REGIME} observations the stream `switch` changes its sines; the third part has those of the first. "
        "Counted are the observations until the error, meant over the seeds and the last 25, is back within 10 % of "
        "that of the 500 before the switch.",
        "",
        "| | error before | first 100 after | observations | return: error before | first 100 after | observations |",
        "|---|---|---|---|---|---|---|",
    ]
    for model, row in results.items():
        cells = []
        for switch in row["switch"]["recovery"]:
            count = "never" if switch["observations"] is None else str(switch["observations"])
            cells += [f"{switch['error_before']:.3f}", f"{switch['error_after']:.3f}", count]
        lines.append(f"| `{model}` | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _short(setting: dict[str, Any]) -> str:
    flat: dict[str, Any] = {}
    for name, value in setting.items():
        flat |= value if isinstance(value, dict) else {name: value}
    return " ".join(f"{name}={'-'.join(map(str, v)) if isinstance(v, list | tuple) else v}" for name, v in flat.items())


if __name__ == "__main__":
    if "--page" not in sys.argv:
        RECORD.parent.mkdir(parents=True, exist_ok=True)
        RECORD.write_text(json.dumps(measure(), indent=1) + "\n", encoding="utf-8")
    PAGE.write_text(page(json.loads(RECORD.read_text(encoding="utf-8"))), encoding="utf-8")
