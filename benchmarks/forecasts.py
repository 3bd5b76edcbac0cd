"""Compare forecasts 1, 12 and 24 steps ahead with other methods: results/streams/forecasts.json.

    python benchmarks/forecasts.py                      # all models, except those already in the record
    python benchmarks/forecasts.py --models ptncn copy  # some models

Every model forecasts, then learns. The other models have settings chosen on data that is not scored: those in
results/streams/comparison.json, or, on ETT and exchange rates, the best of `CANDIDATES`. The ESN and the LSTM iterate
their one-step forecasts; the ESN with direct horizons has a readout for each horizon. Slow models forecast only every
`EVERY` rows; all models are scored on the same rows. Polls are known in advance to all models that accept features:
`ptncn`, SNARIMAX, ESN and LSTM. ETT and exchange rates come from `$PTNCN_DATA/streams`: 6,000 rows of the last column.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from river import compose, linear_model, preprocessing, time_series

import ptncn.streaming
from ptncn.streaming.options import default_learner
from stream_models import STREAMS, make, rows

ROOT = Path(__file__).resolve().parents[1]
RECORD = ROOT / "results/streams/forecasts.json"
HORIZONS = (1, 12, 24)
EVERY = 5
"""Number of rows between scored forecasts, in streams of more than 1,500 rows."""
LONGEST = 6000
LAGS, REFIT = 48, 200
BLOCKS = 20
"""Number of blocks of a stream whose mean errors give the spread."""
FILES = {"ETTh1": ("ETTh1.csv.gz", 1, 24), "ETTh2": ("ETTh2.csv.gz", 1, 24), "exchange": ("exchange_rate.csv.gz", 0, 7)}
CANDIDATES: dict[str, list[dict[str, Any]]] = {
    "SNARIMAX": [
        {"order": {"p": p, "d": d, "q": 0}, "regressor": "bayes"} for p, d in ((2, 1), (12, 1), (25, 0), (25, 1))
    ],
    "Holt-Winters": [
        {"alpha": 0.8, "rest": {}},
        {"alpha": 0.6, "rest": {"beta": 0.02, "gamma": 0.3, "season": True}},
        {"alpha": 0.2, "rest": {"beta": 0.02, "gamma": 0.1, "season": True}},
    ],
    "esn-rls": [
        {
            "hidden": (100,),
            "target": target,
            "options": {"forgetting": forgetting, "leak_rate": leak, "sr": 0.9, "input_scaling": 0.3},
        }
        for target, forgetting, leak in (
            ("both", 0.999, 1.0), ("both", 0.9999, 0.3), ("change", 0.999, 1.0), ("change", 0.9999, 0.3),
        )
    ],
    "lstm-tbptt": [
        {"hidden": (64,), "target": target, "lr": lr, "options": {"optimizer": "adam", "window": 25, "stride": 5}}
        for target, lr in (("both", 3e-3), ("both", 1e-2), ("change", 1e-3), ("change", 3e-3))
    ],
}  # fmt: skip
"""Settings of other models to try on streams that are not in comparison.json."""
NAMES = [*STREAMS, *FILES]
MODELS = (
    "ptncn",
    "no network",
    "copy",
    "season",
    "lags",
    "Holt-Winters",
    "SNARIMAX",
    "esn-rls",
    "esn direct",
    "lstm-tbptt",
)


def load(name: str) -> tuple[np.ndarray, int]:
    """(T,) values, and the season given to the other models."""
    if name in STREAMS:
        return np.array([y for _, y in rows(name, 0)]), STREAMS[name].season
    file, header, season = FILES[name]
    path = Path(os.environ["PTNCN_DATA"]) / "streams" / file
    table = np.genfromtxt(path, delimiter=",", skip_header=header)
    return np.ascontiguousarray(table[:LONGEST, -1]), season


def polls(name: str) -> list[dict[str, float]]:
    """The features of each row."""
    return [x for x, _ in rows(name, 0) if x is not None] if name in STREAMS else []


def forecasts(
    model: str, setting: dict[str, Any], y: np.ndarray, season: int, known: list[dict[str, float]]
) -> Iterator[np.ndarray]:
    """After each row, forecasts for HORIZONS; `known` contains the features of all rows, if any."""
    last = HORIZONS[-1]
    match model:
        case "ptncn" | "esn-rls" | "lstm-tbptt" | "SNARIMAX" if known:
            yield from with_features(model, setting, y, season, known)
        case "copy":
            yield from (np.full(last, value) for value in y)
        case "season":
            for t in range(len(y)):
                back = np.arange(t + 1, t + 1 + last)
                back = back - (back - t + season - 1) // season * season
                yield np.where(back >= 0, y[np.maximum(back, 0)], y[t])
        case "lags":
            yield from linear(y, last)
        case "no network":
            made = ptncn.streaming.forecaster.Forecaster(ptncn.streaming.forecaster.default_setting(1, last, 0))
            yield from made.observe(y.reshape(-1, 1), rows=np.zeros(len(y), dtype=np.int64)).mean[:, 0]
        case "ptncn":
            for out in ptncn.streaming.Stream(([value] for value in y), horizon=last):
                yield np.array([step["x0"] for step in out.forecast], dtype=float)
        case "Holt-Winters" | "SNARIMAX":
            yield from by_river(model, setting, y, season, last)
        case "esn direct":
            yield from reservoir(y, last)
        case _:
            target = setting["target"]
            learner = partial(default_learner, name=model, **{k: v for k, v in setting.items() if k != "target"})
            stream = ptncn.streaming.Stream(([value] for value in y), learner, target=target)
            for t, _ in enumerate(stream):
                is_scored = t > 0 and t % every(y) == 0
                yield np.array([s["x0"] for s in stream.forecast(last).rows]) if is_scored else np.full(last, y[t])


def with_features(
    model: str, setting: dict[str, Any], y: np.ndarray, season: int, known: list[dict[str, float]]
) -> Iterator[np.ndarray]:
    """The same with future features; the last ones are repeated beyond the end."""
    last = HORIZONS[-1]
    plans = [*known, *[known[-1]] * last]
    if model == "ptncn":
        data = ({**x, "y": value} for x, value in zip(known, y.tolist(), strict=True))
        stream = ptncn.streaming.Stream(data, targets=("y",), features=tuple(known[0]), horizon=last)
        for t, _ in enumerate(stream):
            yield np.array([s["y"] for s in stream.forecast(last, features=plans[t + 1 : t + 1 + last]).rows])
        return
    made = make(model, setting, season, 0)
    for t, (x, value) in enumerate(zip(known, y.tolist(), strict=True)):
        made.learn_one(y=value, x=x)
        try:
            yield np.array(made.forecast(last, xs=plans[t + 1 : t + 1 + last]))
        except (IndexError, OverflowError):
            yield np.full(last, value)


def every(y: np.ndarray) -> int:
    return EVERY if len(y) > 1500 else 1


def linear(y: np.ndarray, last: int) -> Iterator[np.ndarray]:
    """Ridge regression of each horizon on the last 48 values, refitted every 200 rows on all earlier rows."""
    weights = np.zeros((last, LAGS + 1))
    for t in range(len(y)):
        if (t >= 2 * LAGS and t % REFIT == 0) or t == 2 * LAGS:
            past = y[: t + 1]
            scale = past.std() or 1.0
            windows = sliding_window_view(past, LAGS)
            for h in range(last):
                X, goal = windows[: len(windows) - h - 1], past[LAGS + h :]
                X = np.c_[X - X[:, -1:], np.full(len(X), scale)] / scale
                goal = (goal - windows[: len(X), -1]) / scale
                weights[h] = np.linalg.solve(X.T @ X + np.eye(LAGS + 1), X.T @ goal)
        if t < LAGS:
            yield np.full(last, y[t])
        else:
            yield y[t] + weights @ np.append(y[t - LAGS + 1 : t + 1] - y[t], y[: t + 1].std() or 1.0)


def constant(x: dict[str, float]) -> dict[str, float]:
    return {"constant": 1.0}


def by_river(model: str, setting: dict[str, Any], y: np.ndarray, season: int, last: int) -> Iterator[np.ndarray]:
    if model == "Holt-Winters":
        rest = dict(setting["rest"])
        made: Any = time_series.HoltWinters(
            setting["alpha"], seasonality=season if rest.pop("season", 0) else 0, **rest
        )
    else:
        kinds = {"sgd": linear_model.LinearRegression, "bayes": linear_model.BayesianLinearRegression}
        inputs = preprocessing.StandardScaler() + compose.FuncTransformer(constant)
        made = time_series.SNARIMAX(**setting["order"], m=season, regressor=inputs | kinds[setting["regressor"]]())
    for t, value in enumerate(y.tolist()):
        made.learn_one(y=value)
        try:
            yield np.array(made.forecast(last)) if t % every(y) == 0 else np.full(last, value)
        except (IndexError, OverflowError):
            yield np.full(last, value)


def reservoir(y: np.ndarray, last: int, units: int = 100, forgetting: float = 0.9995) -> Iterator[np.ndarray]:
    """An echo state network with a readout by recursive least squares that forecasts each horizon directly."""
    draw = np.random.default_rng(0)
    W = draw.normal(size=(units, units)) * (draw.random((units, units)) < 0.1)
    W *= 0.9 / np.abs(np.linalg.eigvals(W)).max()
    V = draw.uniform(-0.5, 0.5, size=(units, 3))
    x, P, out = np.zeros(units), np.eye(units + 3), np.zeros((last, units + 3))
    mean, variance, change = y[0], 0.0, 0.0
    past: list[tuple[np.ndarray, np.ndarray, float, float]] = []
    for t, value in enumerate(y):
        rate = 1 / min(t + 1, 2000)
        moved = value - (y[t - 1] if t else value)
        variance += rate * ((value - mean) ** 2 - variance)
        mean += rate * (value - mean)
        change += rate * (moved**2 - change)
        scale, step = np.sqrt(variance) + 1e-12, np.sqrt(change) + 1e-12
        for h, (features, gain, before, unit) in enumerate(reversed(past)):
            if unit > 1e-9:
                out[h] += gain * (np.clip((value - before) / unit, -20, 20) - out[h] @ features)
        inputs = np.clip([(value - mean) / scale, moved / step, 1.0], -6, 6)
        x = np.tanh(W @ x + V @ inputs)
        features = np.append(x, inputs)
        k = P @ features
        gain = k / (forgetting + features @ k)
        P = (P - np.outer(gain, k)) / forgetting
        if np.trace(P) > 1e6:
            P = np.eye(len(P))
        past = [*past, (features, gain, value, scale)][-last:]
        yield value + scale * (out @ features)


@cache
def chosen(model: str, name: str) -> dict[str, Any]:
    """The setting of another model: from comparison.json, or the candidate with the smallest error relative to copying,
    over all horizons, in the second half of the rows that are not scored."""
    record = json.loads((ROOT / "results/streams/comparison.json").read_text(encoding="utf-8"))
    if name in record["results"].get(model, {}):
        return dict(record["results"][model][name]["setting"])
    if model not in CANDIDATES:
        return {}
    y, season = load(name)
    known = y[: len(y) // 3]

    def error(setting: dict[str, Any]) -> float:
        own, copied = (
            judge(known, list(forecasts(which, setting, known, season, [])), len(known) // 2)
            for which in (model, "copy")
        )
        return sum(own[h]["mae"] / copied[h]["mae"] for h in own)

    return min(CANDIDATES[model], key=error)


def measure(model: str, name: str) -> dict[str, Any]:
    """The mean absolute error at each horizon, and means over blocks."""
    y, season = load(name)
    begin = STREAMS[name].tuned if name in STREAMS else len(y) // 3
    setting = chosen(model, name)
    return {"setting": setting, **judge(y, list(forecasts(model, setting, y, season, polls(name))), begin)}


def judge(y: np.ndarray, made: list[np.ndarray], begin: int) -> dict[str, Any]:
    ahead, results = np.array(made), {}
    for horizon in HORIZONS:
        at = np.arange(-(-begin // every(y)) * every(y), len(y) - horizon, every(y))
        errors = np.abs(y[at + horizon] - ahead[at, horizon - 1])
        errors = np.where(np.isfinite(errors), errors, np.abs(y).max() * 1e3)
        results[str(horizon)] = {
            "mae": float(errors.mean()),
            "blocks": [float(block.mean()) for block in np.array_split(errors, min(BLOCKS, len(errors)))],
        }
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", default=list(MODELS), choices=MODELS)
    parser.add_argument("--streams", nargs="+", default=NAMES, choices=NAMES)
    parser.add_argument("--again", action="store_true", help="measure models that are already in the record")
    parser.add_argument("--out", type=Path, default=RECORD)
    options = parser.parse_args()
    record = json.loads(options.out.read_text(encoding="utf-8")) if options.out.exists() else {}
    record = {"command": "python benchmarks/forecasts.py", "results": record.get("results", {})}
    for model in options.models:
        for name in options.streams:
            results = record["results"].setdefault(model, {})
            if name not in results or options.again:
                results[name] = measure(model, name)
                options.out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
                errors = {h: round(results[name][str(h)]["mae"], 4) for h in HORIZONS}
                print(model, name, errors, flush=True)


if __name__ == "__main__":
    main()
