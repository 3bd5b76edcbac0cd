"""Compare forecasts 1, 12 and 24 steps ahead with other methods: results/streams/forecasts.json.

    python benchmarks/forecasts.py                      # all, except what is already in the record
    python benchmarks/forecasts.py --models ptncn copy  # some of them

Every model forecasts, then learns. The other models have settings chosen on data that is not scored
(results/streams/comparison.json); on other streams, those of `DEFAULTS`. Slow models forecast only every `EVERY` rows;
all are scored on the same rows. ETT and exchange rates come from `$PTNCN_DATA/streams`: 6,000 rows of the last
column.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from river import compose, linear_model, preprocessing, time_series

import ptncn.streaming
from ptncn.streaming.options import default_learner
from streams import STREAMS, rows

ROOT = Path(__file__).resolve().parents[1]
RECORD = ROOT / "results/streams/forecasts.json"
HORIZONS = (1, 12, 24)
EVERY = 5
"""Rows from one forecast that is scored to the next, in streams of more than 1,500."""
LONGEST = 6000
LAGS, REFIT = 48, 200
BLOCKS = 20
"""Parts of a stream over which errors are averaged before their spread is taken."""
FILES = {"ETTh1": ("ETTh1.csv.gz", 1, 24), "ETTh2": ("ETTh2.csv.gz", 1, 24), "exchange": ("exchange_rate.csv.gz", 0, 7)}
DEFAULTS: dict[str, Any] = {
    "SNARIMAX": {"order": {"p": 12, "d": 1, "q": 0}, "regressor": "bayes"},
    "Holt-Winters": {"alpha": 0.6, "rest": {"beta": 0.02, "gamma": 0.3, "season": True}},
    "lstm-tbptt": {"hidden": (64,), "target": "both", "lr": 3e-3, "options": {"optimizer": "adam", "window": 10}},
    "esn-rls": {"hidden": (100,), "target": "both", "options": {"forgetting": 0.999, "sr": 0.9, "input_scaling": 0.3}},
}
NAMES = [*(name for name in STREAMS if name != "approval + polls"), *FILES]
MODELS = ("ptncn", "no network", "copy", "season", "lags", "Holt-Winters", "SNARIMAX", "esn-rls", "lstm-tbptt")


def load(name: str) -> tuple[np.ndarray, int]:
    """(T,) values and the season that rivals are told."""
    if name in STREAMS:
        return np.array([y for _, y in rows(name, 0)]), STREAMS[name].season
    file, header, season = FILES[name]
    path = Path(os.environ["PTNCN_DATA"]) / "streams" / file
    table = np.genfromtxt(path, delimiter=",", skip_header=header)
    return np.ascontiguousarray(table[:LONGEST, -1]), season


def forecasts(model: str, name: str, y: np.ndarray, season: int) -> Iterator[np.ndarray]:
    """After each row, the next values as far as HORIZONS ask."""
    last = HORIZONS[-1]
    match model:
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
            setting = ptncn.streaming.forecaster.Setting(horizon=last)
            made = ptncn.streaming.forecaster.Forecaster(setting)
            yield from made.observe(y.reshape(-1, 1), rows=np.zeros(len(y), dtype=np.int64)).mean[:, 0]
        case "ptncn":
            for out in ptncn.streaming.Stream(([value] for value in y), horizon=last):
                yield np.array([step["x0"] for step in out.forecast], dtype=float)
        case "Holt-Winters" | "SNARIMAX":
            yield from by_river(model, chosen(model, name), y, season, last)
        case _:
            setting = dict(chosen(model, name))
            target = setting.pop("target")
            learner = partial(default_learner, name=model, **setting)
            stream = ptncn.streaming.Stream(([value] for value in y), learner, target=target)
            for t, _ in enumerate(stream):
                asked = t > 0 and t % every(y) == 0
                yield np.array([s["x0"] for s in stream.forecast(last).rows]) if asked else np.full(last, y[t])


def every(y: np.ndarray) -> int:
    return EVERY if len(y) > 1500 else 1


def linear(y: np.ndarray, last: int) -> Iterator[np.ndarray]:
    """Ridge regression of each horizon on the last 48 values, refitted every 200 rows on all that was seen."""
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


def chosen(model: str, name: str) -> dict[str, Any]:
    record = json.loads((ROOT / "results/streams/comparison.json").read_text(encoding="utf-8"))
    found: dict[str, Any] = record["results"].get(model, {}).get(name, {}).get("setting", DEFAULTS[model])
    return found


def measure(model: str, name: str) -> dict[str, Any]:
    """The mean absolute error at each horizon, and means over blocks."""
    y, season = load(name)
    begin = STREAMS[name].tuned if name in STREAMS else len(y) // 3
    ahead = np.array(list(forecasts(model, name, y, season)))
    found: dict[str, Any] = {}
    for horizon in HORIZONS:
        at = np.arange(-(-begin // every(y)) * every(y), len(y) - horizon, every(y))
        errors = np.abs(y[at + horizon] - ahead[at, horizon - 1])
        errors = np.where(np.isfinite(errors), errors, np.abs(y).max() * 1e3)
        found[str(horizon)] = {
            "mae": float(errors.mean()),
            "blocks": [float(block.mean()) for block in np.array_split(errors, min(BLOCKS, len(errors)))],
        }
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", default=list(MODELS), choices=MODELS)
    parser.add_argument("--streams", nargs="+", default=NAMES, choices=NAMES)
    parser.add_argument("--again", action="store_true", help="measure what is in the record already")
    options = parser.parse_args()
    record = json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.exists() else {}
    record = {"command": "python benchmarks/forecasts.py", "results": record.get("results", {})}
    for model in options.models:
        for name in options.streams:
            results = record["results"].setdefault(model, {})
            if name not in results or options.again:
                results[name] = measure(model, name)
                RECORD.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
                print(model, name, {h: round(each["mae"], 4) for h, each in results[name].items()}, flush=True)


if __name__ == "__main__":
    main()
