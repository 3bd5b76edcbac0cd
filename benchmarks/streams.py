"""Compare prequential errors of `ptncn stream` and other online forecasters on real and synthetic streams.

    python benchmarks/streams.py                # errors, times, alarms: results/streams/{comparison,alarms}.json
    python benchmarks/streams.py --timing       # only the times in comparison.json, in half a minute
    python benchmarks/streams.py --throughput   # lines per second and memory over a million lines: throughput.json
    python benchmarks/streams.py --page         # docs/streams-results.md, from the records

Each but the last also writes the page. `--workers 1` uses one processor; an interrupted run continues. Every model
forecasts one step, then learns. Its settings are chosen among `TRIALS` on data that is not scored.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import statistics
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from functools import cache, partial
from importlib.metadata import version
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import torch
from rich.progress import track
from river import compose, datasets, linear_model, preprocessing, time_series

import ptncn.streaming
from ptncn.estimators.river import PTNCNForecaster
from ptncn.streaming import default_learner

ROOT = Path(__file__).resolve().parents[1]
RECORDS = ROOT / "results/streams"
PARTIAL = ROOT / "results/streams/comparison.partial.json"
SEEDS = {True: range(60), False: range(3)}
"""On the stream that switches, and on the others."""
VALIDATION = (100, 101)
"""The seeds of the data by which settings are chosen, where data is random."""
TRIALS = 40
"""Settings that each model is tried with."""
NOISE = 0.1
REGIME = 1200
SMOOTH = 50
Rows = list[tuple[dict[str, float] | None, float]]


@dataclass(frozen=True)
class Stream:
    about: str
    tuned: int
    """Observations at the beginning that are not scored; by them settings are chosen, where data is not random."""
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


@cache
def rows(stream: str, seed: int) -> Rows:
    """A stream; each is gone over many times, so it is made once."""
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
            t, regimes = np.arange(REGIME), ((25, 9), (13, 5))
            order = (0, 1, 0) if seed % 2 == 0 else (1, 0, 1)  # or the harder of the two would always come second
            parts = [waves(t + k * REGIME, regimes[which], draw) for k, which in enumerate(order)]
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


NETWORKS = ("ptncn", "lstm-tbptt", "esn-rls")
"""Learners of ours: they run as streams, and their settings are searched; those of the others are gone through."""
UNITS = {"ptncn": "32-32", "lstm-tbptt": "32", "esn-rls": "100"}
"""What there is to choose from besides 64 and 128 in one layer."""
STEPS = {"sgd": (5e-3, 1e-1), "momentum": (5e-4, 1e-2), "rmsprop": (3e-4, 1e-2), "adam": (3e-4, 1e-2)}
WINDOWS = {"10/1": (10, 1), "10/5": (10, 5), "25/5": (25, 5), "25/25": (25, 25)}
"""Steps that a gradient may flow back, and steps between updates."""
USUAL: dict[str, list[dict[str, Any]]] = {
    "ptncn": [
        {
            "hidden": "64",
            "gain": 0.8,
            "optimizer": "rmsprop",
            "lr_rmsprop": 2e-3,
            "beta": 0.3,
            "lam": 1e-3,
            "eps": 1e-3,
        },
        {"hidden": "32-32", "gain": 0.6, "optimizer": "adam", "lr_adam": 4e-3, "beta": 0.05, "lam": 0.0, "eps": 1e-2},
        {"hidden": "128", "gain": 1.1, "optimizer": "adam", "lr_adam": 2e-3, "beta": 0.05, "lam": 0.0, "eps": 1e-2},
        {"hidden": "128", "gain": 1.1, "optimizer": "sgd", "lr_sgd": 1e-2, "beta": 0.05, "lam": 0.0},
        {"hidden": "128", "gain": 1.0, "optimizer": "momentum", "lr_momentum": 1e-3, "beta": 0.1, "lam": 0.0},
    ],
    "lstm-tbptt": [
        {"hidden": "64", "optimizer": "adam", "lr_adam": 3e-3, "window": "10/1"},
        {"hidden": "64", "optimizer": "rmsprop", "lr_rmsprop": 3e-3, "window": "10/1"},
        {"hidden": "64", "optimizer": "adam", "lr_adam": 1e-2, "window": "10/5"},
        {"hidden": "64", "optimizer": "adam", "lr_adam": 1e-2, "window": "25/25"},
        {"hidden": "128", "optimizer": "rmsprop", "lr_rmsprop": 1e-3, "window": "10/1"},
    ],
    "esn-rls": [
        {"hidden": "100", "forgetting": forgetting, "leak_rate": leak, "sr": 0.9, "input_scaling": 0.5}
        for forgetting, leak in [(0.9999, 1.0), (0.9999, 0.3), (0.999, 1.0), (0.995, 1.0), (0.995, 0.3)]
    ],
}
"""What the search begins with, each with the value and with its change to learn from."""


def suggest(trial: optuna.Trial, model: str) -> dict[str, Any]:
    """One setting of a learner of ours."""
    hidden = trial.suggest_categorical("hidden", ["64", "128", UNITS[model]])
    setting = {
        "hidden": tuple(int(units) for units in hidden.split("-")),
        "target": trial.suggest_categorical("target", ["change", "both"]),
    }
    if model == "esn-rls":
        ranges = {"forgetting": (0.98, 0.9999), "leak_rate": (0.1, 1.0), "sr": (0.3, 1.2)}
        options: dict[str, Any] = {name: trial.suggest_float(name, *limits) for name, limits in ranges.items()}
        options["input_scaling"] = trial.suggest_float("input_scaling", 0.1, 2, log=True)
        return setting | {"options": options}
    optimizer = trial.suggest_categorical("optimizer", list(STEPS))
    setting["lr"] = trial.suggest_float(f"lr_{optimizer}", *STEPS[optimizer], log=True)
    options = {"optimizer": optimizer}
    if model == "lstm-tbptt":
        options["window"], options["stride"] = WINDOWS[trial.suggest_categorical("window", list(WINDOWS))]
    else:
        options["beta"] = trial.suggest_float("beta", 0.02, 0.5, log=True)
        options["lam"] = trial.suggest_categorical("lam", [0.0, 1e-3])
        gain = trial.suggest_float("gain", 0.5, 1.6, log=True)  # of a random layer upon itself, as the ESN's `sr`
        options["weight_std"] = options["error_weight_std"] = gain / setting["hidden"][-1] ** 0.5
        if optimizer in ("rmsprop", "adam"):
            options["eps"] = trial.suggest_float("eps", 1e-3, 5e-2, log=True)
    return setting | {"options": options}


ORDERS = [
    *({"p": p, "d": d, "q": 0} for p in (2, 6, 12, 25) for d in (0, 1)),
    *({"p": 2, "d": d, "q": 2, "sp": sp, "sd": sd} for d in (0, 1) for sp in (1, 2) for sd in (0, 1)),
    *({"p": 12, "d": 1, "q": q, "sd": sd} for q in (2, 12) for sd in (0, 1)),
]
SEASONS = [
    {},
    {"beta": 0.1},
    *(
        {"beta": beta, "gamma": gamma, "season": True, "multiplicative": multiplicative}
        for beta, gamma in [(0.1, 0.3), (0.1, 0.1), (0.02, 0.3)]
        for multiplicative in (False, True)
    ),
]
GRIDS: dict[str, list[dict[str, Any]]] = {
    "SNARIMAX": grid(order=ORDERS, regressor=["sgd", "bayes"]),
    "Holt-Winters": grid(alpha=[0.1, 0.2, 0.4, 0.6, 0.8], rest=SEASONS),
    "copy-last": [{}],
}
MODELS = (*NETWORKS, *GRIDS)


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
    return PTNCNForecaster(model, **setting, seed=seed)


def forecasts(model: str, setting: dict[str, Any], season: int, seed: int, data: Rows) -> Iterator[float]:
    """Of each observation but the first, what was forecast before it was learnt."""
    if model in NETWORKS and data[0][0] is None:
        yield from streamed(model, setting, seed, data)
        return
    made, last = make(model, setting, season, seed), 0.0
    for t, (x, y) in enumerate(data):
        if t:
            try:
                yield made.forecast(1, xs=None if x is None else [x])[0]
            except IndexError:  # Holt-Winters has not seen a whole season yet
                yield last
        made.learn_one(y=y, x=x)
        last = y


def streamed(model: str, setting: dict[str, Any], seed: int, data: Rows) -> Iterator[float]:
    """The same for a learner of ours and a series alone: the prediction costs nothing that learning does not."""
    given = {name: value for name, value in setting.items() if name != "target"}
    learner = partial(default_learner, name=model, seed=seed, **given)
    outs = iter(ptncn.streaming.Stream(([y] for _, y in data), learner, target=setting["target"]))
    for t, out in enumerate(outs):
        if t:
            yield data[t - 1][1] if out.prediction is None else out.prediction["x0"]


def errors(model: str, setting: dict[str, Any], season: int, seed: int, data: Rows) -> np.ndarray:
    """(len(data) − 1,) how far off each forecast was."""
    found = np.full(len(data) - 1, np.inf)
    try:
        for t, guess in enumerate(forecasts(model, setting, season, seed, data)):
            found[t] = abs(guess - data[t + 1][1])
    except (OverflowError, ptncn.streaming.StreamError):
        pass
    return np.where(np.isfinite(found), found, np.inf)


def tune(model: str, stream: str) -> dict[str, Any]:
    """The setting with the least mean absolute error on data that is not scored."""
    if model in GRIDS:
        return min(GRIDS[model], key=lambda setting: tried(model, setting, stream))
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=0))
    for usual, target in product(USUAL[model], ("both", "change")):
        study.enqueue_trial(usual | {"target": target})

    def objective(trial: optuna.Trial) -> float:
        setting = suggest(trial, model)
        trial.set_user_attr("setting", setting)
        return tried(model, setting, stream)

    study.optimize(objective, n_trials=TRIALS)
    return study.best_trial.user_attrs["setting"]


def tried(model: str, setting: dict[str, Any], stream: str) -> float:
    """The mean absolute error with seed 0: on other draws of random data, after the part that is never scored;
    otherwise in the second half of that part."""
    spec = STREAMS[stream]
    draws = [rows(stream, seed) for seed in VALIDATION] if spec.random else [rows(stream, 0)[: spec.tuned]]
    skipped = spec.tuned if spec.random else spec.tuned // 2
    found = [errors(model, setting, spec.season, 0, data)[skipped:].mean() for data in draws]
    return min(float(np.mean(found)), 1e9)


def run(model: str, stream: str) -> dict[str, Any]:
    """Tune, then go over the stream once with each seed."""
    torch.set_num_threads(1)
    np.seterr(all="ignore")
    setting, spec = tune(model, stream), STREAMS[stream]
    chance = spec.random or model in NETWORKS
    found = []
    for seed in SEEDS[stream == "switch"] if chance else [0]:
        found.append(errors(model, setting, spec.season, seed, rows(stream, seed)))
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
    """Observations from a switch until the error, meant over the seeds and the last `SMOOTH`, is back within 10 % of
    that of the 500 before the switch; None if it never is."""
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
    data, times = rows("sines", 0)[: count + 201], [0.0]
    for _ in forecasts(model, setting, STREAMS["sines"].season, 0, data):
        times.append(time.perf_counter())
    blocks = [(times[k + 100] - times[k]) / 100 for k in range(200, count + 100, 100)]  # updates may come in bursts
    return 1e6 * statistics.median(blocks)


def measure(workers: int) -> dict[str, Any]:
    """Everything of the comparison but the times."""
    load = os.getloadavg()[0]
    found = run_all(workers)
    return {
        "command": "python benchmarks/streams.py",
        **about(),
        "loadavg": {"before": round(load, 2)},
        "seeds": {"switch": list(SEEDS[True]), "others": list(SEEDS[False]), "validation": list(VALIDATION)},
        "trials": {model: len(GRIDS[model]) if model in GRIDS else TRIALS for model in MODELS},
        "regime": REGIME,
        "smooth": SMOOTH,
        "streams": {
            name: {
                "about": spec.about,
                "observations": len(rows(name, 0)),
                "tuned_on": spec.tuned,
                "random": spec.random,
                "optimum": spec.optimum,
                "last_values": [round(y, 6) for _, y in rows(name, 0)[-3:]],
            }
            for name, spec in STREAMS.items()
        },
        "results": {model: {stream: found[f"{model} on {stream}"] for stream in STREAMS} for model in MODELS},
    }


def run_all(workers: int) -> dict[str, Any]:
    """The results by the names of model and stream; those that an interrupted run has left are taken over."""
    same = json.loads(
        json.dumps({"grids": GRIDS, "usual": USUAL, "trials": TRIALS, "seeds": [len(SEEDS[True]), len(SEEDS[False])]})
    )
    kept = json.loads(PARTIAL.read_text(encoding="utf-8")) if PARTIAL.exists() else {}
    found = kept["found"] if kept.get("of") == same else {}
    pairs = [pair for pair in product(MODELS, reversed(STREAMS)) if " on ".join(pair) not in found]
    with ProcessPoolExecutor(max_workers=workers) as pool:
        jobs = {pool.submit(run, *pair): " on ".join(pair) for pair in pairs}
        for job in track(as_completed(jobs), description="models on streams", total=len(jobs)):
            found[jobs[job]] = job.result()
            PARTIAL.write_text(json.dumps({"of": same, "found": found}), encoding="utf-8")
    return found


def times(record: dict[str, Any]) -> dict[str, Any]:
    """Microseconds an observation of each model with the setting that was chosen for the sines."""
    torch.set_num_threads(1)
    load, results = os.getloadavg()[0], record["results"]
    took = {
        model: round(cost(model, results[model]["sines"]["setting"]), 1) for model in track(MODELS, description="times")
    }
    return {
        "command": "python benchmarks/streams.py --timing",
        **about(),
        "loadavg": round(load, 2),
        "microseconds_per_observation": took,
    }


def about() -> dict[str, Any]:
    names = ("ptncn", "river", "torch", "numpy")
    return {
        "versions": {"python": platform.python_version()} | {name: version(name) for name in names},
        "machine": {"cores": os.cpu_count(), "processor": platform.machine()},
    }


def read(name: str) -> dict[str, Any]:
    """A record; nothing if it was not made yet."""
    path = RECORDS / f"{name}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def write(name: str, record: dict[str, Any]) -> None:
    RECORDS.mkdir(parents=True, exist_ok=True)
    (RECORDS / f"{name}.json").write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


def main() -> None:
    import stream_alarms
    import stream_page
    import stream_throughput

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--lines", type=int, default=1_000_000, help="for --throughput")
    only = parser.add_mutually_exclusive_group()
    for each in ("alarms", "timing", "throughput", "page"):
        only.add_argument(f"--{each}", action="store_true", help=f"only the {each}")
    options = parser.parse_args()
    everything = not (options.alarms or options.timing or options.throughput or options.page)
    if everything:
        write("comparison", measure(options.workers))
        PARTIAL.unlink()
    if everything or options.timing:
        record = read("comparison")
        write("comparison", record | {"timing": times(record)})
    if everything or options.alarms:
        write("alarms", {"command": "python benchmarks/streams.py --alarms", **about(), **stream_alarms.measure()})
    if options.throughput:
        command = f"python benchmarks/streams.py --throughput --lines {options.lines}"
        write("throughput", {"command": command, **about(), **stream_throughput.measure(options.lines)})
    stream_page.write(ROOT / "docs/streams-results.md", read)


if __name__ == "__main__":
    main()
