"""The streams and the online forecasters that `benchmarks/streams.py` compares, with the settings that are searched."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, partial
from itertools import product
from typing import Any

import numpy as np
import optuna
from river import compose, datasets, linear_model, preprocessing, time_series

import ptncn.streaming
from ptncn.estimators.river import PTNCNForecaster
from ptncn.streaming import default_learner

NOISE = 0.1
REGIME = 1200
Rows = list[tuple[dict[str, float] | None, float]]


@dataclass(frozen=True)
class Stream:
    about: str
    tuned: int
    """Observations at the start that are not scored; they are used for tuning if the data is not random."""
    season: int
    random: bool = False
    """Whether the data depends on the seed."""
    optimum: float | None = None
    """The mean absolute error of a forecaster that knows the process."""


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
    """The features and targets of a stream; cached, because each is used many times."""
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
            order = (0, 1, 0) if seed % 2 == 0 else (1, 0, 1)  # otherwise the harder one would always come second
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
    """Repeats the last value."""

    def __init__(self) -> None:
        self.last = 0.0

    def learn_one(self, y: float, x: dict[str, float] | None = None) -> None:
        self.last = y

    def forecast(self, horizon: int, xs: list[dict[str, float]] | None = None) -> list[float]:
        return [self.last] * horizon


def grid(**choices: list[Any]) -> list[dict[str, Any]]:
    return [dict(zip(choices, values, strict=True)) for values in product(*choices.values())]


NETWORKS = ("ptncn", "lstm-tbptt", "esn-rls")
"""Our learners, which run as streams with settings searched by Optuna; the other models have a grid."""
UNITS = {"ptncn": "32-32", "lstm-tbptt": "32", "esn-rls": "100"}
"""The third choice of units, in addition to 64 and 128 in one layer."""
STEPS = {"sgd": (5e-3, 1e-1), "momentum": (5e-4, 1e-2), "rmsprop": (3e-4, 1e-2), "adam": (3e-4, 1e-2)}
WINDOWS = {"10/1": (10, 1), "10/5": (10, 5), "25/5": (25, 5), "25/25": (25, 25)}
"""How many steps gradients flow back, and how many steps lie between updates."""
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
"""The settings that the search starts from, each with target "both" and "change"."""


def suggest(trial: optuna.Trial, model: str) -> dict[str, Any]:
    """Sample a setting of one of our learners."""
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
        gain = trial.suggest_float("gain", 0.5, 1.6, log=True)  # like `sr` of an ESN
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
    """An intercept, which River's Bayesian regression lacks."""
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
    """The forecast of each observation except the first, made before the observation is learnt."""
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
    """The same for our learners on a series without features, where `step` returns the prediction at no extra cost."""
    options = {name: value for name, value in setting.items() if name != "target"}
    learner = partial(default_learner, name=model, seed=seed, **options)
    outs = iter(ptncn.streaming.Stream(([y] for _, y in data), learner, target=setting["target"]))
    for t, out in enumerate(outs):
        if t:
            yield data[t - 1][1] if out.prediction is None else out.prediction["x0"]
