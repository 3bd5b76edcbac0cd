"""The package's own learners: one entry each, with defaults, search space, size, label and line style."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ptncn.learners.registry import LEARNERS, Choice, Dashes, Entry, Options, Style

BLUE, VERMILLION, GREEN, PURPLE = "#0072b2", "#d55e00", "#009e73", "#cc79a7"
ORANGE, SKY, GREY = "#e69f00", "#56b4e9", "#57606a"
BROWN, INDIGO = "#8c510a", "#332288"
COLOURS = {"lstm": VERMILLION, "gru": GREEN, "rnn": PURPLE, "rhn": SKY}
"""Colours stand for cells, dashes for learning rules."""

RECURRENT: Options = {"optimizer": "rmsprop", "lr": 1e-3, "clip": 1.0}
"""The paper's RMSprop, where there is an update at each step, and for plain cells."""
UNROLLED: Options = {**RECURRENT, "lr": 1e-2}
"""One update per batch needs large steps: after 1,000 videos of MNIST an LSTM of 200 units had a validation CE of 606
with 1e-3, 480 with 4e-3 and 452 with 1e-2, where the range of the paper begins (0.01 to 0.0004)."""
NOISY: Options = {**RECURRENT, "lr": 3e-4}
"""UORO and KF-RTRL: noisy gradients need smaller steps."""

ADAM: Options = {"optimizer": "adam", "lr": 2e-3, "clip": 1.0}
"""Linear recurrent units, whose parameters differ in scale: Adam sets the size of each step. Not searched yet."""
ONLINE: Options = {**UNROLLED, "lr": 4e-3}
"""Videos one at a time. Best on validation after 200 videos of MNIST with 200 units, of 3e-5 to 1e-3 for the P-TNCN
(by SE) and of 3e-4 to 4e-3, the largest that was tried, for the LSTM. The others were not searched."""


def search_gradient(trial: Any) -> dict[str, Any]:
    """Ranges extend an order of magnitude beyond the usual values on either side."""
    return {
        "optimizer": trial.suggest_categorical("optimizer", ["rmsprop", "adam"]),
        "lr": trial.suggest_float("lr", 1e-5, 1e-1, log=True),
        "clip": trial.suggest_float("clip", 0.1, 100.0, log=True),
    }


def search_eligibility(trial: Any) -> dict[str, Any]:
    return {**search_gradient(trial), "feedback": trial.suggest_categorical("feedback", ["symmetric", "random"])}


def search_leak(trial: Any) -> dict[str, Any]:
    return {**search_eligibility(trial), "leak_rate": trial.suggest_float("leak_rate", 0.05, 1.0, log=True)}


def search_lru(trial: Any) -> dict[str, Any]:
    return {**search_gradient(trial), "layers": trial.suggest_categorical("layers", [1, 2])}


def first_steps(defaults: Options, name: str = "lr") -> list[dict[str, Any]]:
    """The defaults, then smaller and larger steps.

    >>> [round(point["lr"], 4) for point in first_steps({"lr": 0.001})]
    [0.001, 0.0003, 0.003, 0.0001, 0.01]
    """
    return [{**defaults, name: float(f"{defaults['lr'] * factor:.3g}")} for factor in (1, 0.3, 3, 0.1, 10)]


NETWORK_CHOICES = {
    1: Choice("sign of λ", ("sparsity_sign",)),
    2: Choice("presynaptic factor of M, V and U", ("presynaptic",)),
    3: Choice("how E learns", ("error_rule", "temporal_sign", "error_lr_factor")),
    4: Choice("error that teaches W above the first layer", ("prediction_error",)),
    5: Choice("what β multiplies", ("beta_scope", "beta", "gamma", "lam")),
    6: Choice("how updates are rescaled", ("rescale", "radius", "reduction")),
    7: Choice("standard deviation of initial weights", ("weight_std", "error_weight_std")),
    8: Choice("Hebbian term", ("xi",)),
    9: Choice("φ of predictions of hidden layers", ("hidden_prediction",)),
    10: Choice("biases", ("biases",)),
    11: Choice("first frame", ("first_frame",)),
    13: Choice("correction steps", ("corrections",)),
}


def _ptncn() -> Entry:
    """The paper's network."""
    video = {
        "optimizer": "rmsprop",  # clearly better than SGD with unit norm at equal data
        "lr": 1e-3,  # with 200 units and 1,000 videos a validation SE of 102.5, and of 112.9 with 3e-4
        "rescale": "none",  # RMSprop sets the size of a step itself
        "reduction": "mean",
        "beta": 0.5,  # 0.15 to 1 make little difference under RMSprop
        "error_rule": "fixed",  # on videos a learnt E is worse, unless it learns very slowly
        "biases": False,
    }
    text = {
        "lr": 0.05,  # SGD with unit norm
        "error_rule": "transpose",  # with a fixed E it does not get below 3.3 bits
        "biases": False,
    }

    def search(trial: Any) -> dict[str, Any]:
        optimizer = trial.suggest_categorical("optimizer", ["sgd", "rmsprop", "adam"])
        low, high = (0.005, 0.5) if optimizer == "sgd" else (1e-5, 1e-2)
        return {
            "optimizer": optimizer,
            "rescale": "unit" if optimizer == "sgd" else "none",
            "reduction": "sum" if optimizer == "sgd" else "mean",
            "lr": trial.suggest_float(f"lr_{optimizer}", low, high, log=True),
            "beta": trial.suggest_float("beta", 0.05, 1.0, log=True),
            "gamma": trial.suggest_categorical("gamma", [0.0, 0.01]),
            "lam": trial.suggest_categorical("lam", [0.0, 0.0001, 0.001]),
            "error_rule": trial.suggest_categorical("error_rule", ["fixed", "transpose"]),
            "error_lr_factor": trial.suggest_categorical("error_lr_factor", [0.01, 0.1, 1.0]),
        }

    def first_points(defaults: Options) -> list[dict[str, Any]]:
        """Smaller and larger steps, and the other rule for E."""
        if "lr" not in defaults:
            return []
        unset = {"beta": 0.15, "gamma": 0.0, "lam": 0.0, "error_rule": "fixed", "error_lr_factor": 1.0}
        point = {"optimizer": "sgd", **unset, **defaults}
        points = first_steps(point, name=f"lr_{point['optimizer']}")
        other = "fixed" if point["error_rule"] == "transpose" else "transpose"
        return [points[0], {**points[0], "error_rule": other}, *points[1:]]

    return Entry(
        "ptncn.network:PTNCN",
        "the paper's network, local rules",
        "online",
        "B·(n + H)",
        defaults={"video": video, "text": text, "online": {**video, "lr": 3e-4}},
        search=search,
        first_points=first_points,
        size_class="layers",
        label="P-TNCN",
        style=Style(BLUE, emphasis=True),
        choices=NETWORK_CHOICES,
    )


@dataclass(frozen=True)
class Rule:
    """A learning rule for several cells; `<cell>-<rule>` is the learner."""

    where: str
    about: str
    learns: str
    memory: str
    dashes: Dashes
    cells: tuple[str, ...] = tuple(COLOURS)
    defaults: Mapping[str, Options] | None = None
    """By kind of data; None: those of an unrolled learner."""
    size_class: str | None = None
    """None: by the cell."""
    tuned_like: str | None = None
    """The rule whose tuned values are used."""
    search: Callable[[Any], dict[str, Any]] = search_gradient
    label: str | None = None
    """None: its name in capitals."""


def _every_step(options: Options, online_lr: float) -> dict[str, Options]:
    """For a rule that updates at each step."""
    return {"video": options, "text": options, "other": RECURRENT, "online": {**options, "lr": online_lr}}


RULES = {
    "bptt": Rule("ptncn.learners.bptt:BPTT", "back-propagation through time", "unrolled", "B·n·T", "-"),
    "tbptt": Rule(
        "ptncn.learners.bptt:TBPTT", "truncated BPTT, window 25", "unrolled", "B·(n + H)·window", (0, (5, 1))
    ),
    "sab": Rule(
        "ptncn.learners.sab:SAB",
        "sparse attentive backtracking",
        "unrolled",
        "B·(n + H)·memory",
        "--",
        cells=("lstm", "rnn"),
        tuned_like="bptt",  # attention over the past changes neither cell nor loss
    ),
    "fp": Rule(
        "ptncn.learners.future:FuturePredictor",
        "encoder and future predictor",
        "unrolled",
        "B·n·window",
        (0, (4, 1, 1, 1)),
        cells=("lstm",),
        tuned_like="bptt",
    ),
    "cfp": Rule(
        "ptncn.learners.future:CompositePredictor",
        "composite future predictor",
        "unrolled",
        "B·n·window",
        (0, (2, 1)),
        cells=("lstm",),
        tuned_like="bptt",
    ),
    "rtrl": Rule(
        "ptncn.learners.rtrl:RTRL",
        "real-time recurrent learning",
        "online",
        "B·H·P",
        ":",
        defaults=_every_step(RECURRENT, 3e-4),
        size_class="exact",
    ),
    "uoro": Rule(
        "ptncn.learners.rtrl:UORO",
        "unbiased rank-one RTRL",
        "online",
        "B·P",
        "-.",
        defaults=_every_step(NOISY, 1e-4),
        size_class="rank_one",
    ),
    "kf-rtrl": Rule(
        "ptncn.learners.rtrl:KFRTRL",
        "Kronecker-factored RTRL",
        "online",
        "B·(H² + n)",
        (0, (3, 1, 1, 1, 1, 1)),
        defaults=_every_step(NOISY, 1e-4),
        size_class="factored",
    ),
    "immediate": Rule(
        "ptncn.learners.forward_mode:Immediate",
        "derivative of one step only",
        "online",
        "B·(n + H)",
        (0, (1, 2)),
        defaults=_every_step(RECURRENT, 3e-4),
    ),
    "snap1": Rule(
        "ptncn.learners.traces:SnAp1",
        "RTRL within each unit",
        "online",
        "B·P",
        (0, (8, 2)),
        defaults=_every_step(RECURRENT, 3e-4),
        size_class="rank_one",
        label="SnAp-1",
    ),
    "e-prop": Rule(
        "ptncn.learners.traces:EProp",
        "eligibility traces",
        "online",
        "B·P",
        (0, (6, 2, 1, 2)),
        cells=("lstm", "gru", "rhn"),
        defaults=_every_step(RECURRENT, 3e-4),
        size_class="rank_one",
        search=search_eligibility,
        label="e-prop",
    ),
    "rflo": Rule(
        "ptncn.learners.traces:RFLO",
        "online traces, random feedback",
        "online",
        "B·P",
        (0, (6, 2, 1, 2)),
        cells=("rnn",),
        defaults=_every_step(RECURRENT, 3e-4),
        size_class="rank_one",
        search=search_leak,
    ),
}


def _unrolled_defaults(cell: str) -> dict[str, Options]:
    if cell == "rnn":
        return {"video": RECURRENT, "text": RECURRENT, "other": RECURRENT, "online": ONLINE}
    text = {**UNROLLED, "lr": 4e-3}  # not searched; sentences give twice the updates of videos
    return {"video": UNROLLED, "text": text, "other": RECURRENT, "online": ONLINE}


def _with_cell(cell: str, name: str, rule: Rule) -> Entry:
    return Entry(
        rule.where,
        f"{cell.upper()}, {rule.about}",
        rule.learns,
        rule.memory,
        {"cell": cell},
        defaults=rule.defaults or _unrolled_defaults(cell),
        search=rule.search,
        first_points=first_steps,
        size_class=rule.size_class or ("plain" if cell == "rnn" else "gated"),
        label=f"{cell.upper()} ({rule.label or name.upper()})",
        style=Style(COLOURS[cell], rule.dashes),
        tuned_like=f"{cell}-{rule.tuned_like}" if rule.tuned_like else None,
    )


def _diagonal(cell: str, about: str, options: Options, colour: str, search: Callable[[Any], dict[str, Any]]) -> Entry:
    """A cell whose recurrence is diagonal, so that exact RTRL has one trace per weight."""
    return Entry(
        f"ptncn.learners.{cell}:{cell.upper()}RTRL",
        about,
        "online",
        "B·H·n",
        {"cell": cell},
        defaults={"video": options, "text": options, "other": options, "online": {**options, "lr": 3e-4}},
        search=search,
        first_points=first_steps,
        size_class="gated",
        label=f"{'eLSTM' if cell == 'elstm' else 'LRU'} (RTRL)",
        style=Style(colour, ":"),
    )


def _echo(readout: str, about: str, dashes: Dashes, *, ridge: bool, defaults: Mapping[str, Options]) -> Entry:
    def search(trial: Any) -> dict[str, Any]:
        options = {
            "sr": trial.suggest_float("sr", 0.3, 1.2),
            "leak_rate": trial.suggest_float("leak_rate", 0.2, 1.0),
            "input_scaling": trial.suggest_float("input_scaling", 0.01, 2.0, log=True),
        }
        return options | ({"ridge": trial.suggest_float("ridge", 1e-4, 1e2, log=True)} if ridge else {})

    return Entry(
        "ptncn.learners.esn:ESN",
        f"echo state network, {about}",
        "online",
        "B·H",
        {"readout": readout},
        defaults=defaults,
        search=search,
        first_points=lambda usual: [dict(usual)] if usual else [],
        size_class="plain",
        label=f"ESN ({readout if readout == 'ridge' else readout.upper()})",
        style=Style(ORANGE, dashes),
    )


LEAST_SQUARES: Mapping[str, Options] = {
    "video": {"input_scaling": 0.05, "ridge": 1.0},  # 4,096 pixels drive each unit
    "text": {"input_scaling": 1.0, "ridge": 1e-2},
}


def _trivial(name: str, about: str, learns: str, label: str, dashes: Dashes) -> Entry:
    where = f"ptncn.learners.baselines:{name.capitalize()}"
    return Entry(where, about, learns, "B·n", label=label, style=Style(GREY, dashes))


LEARNERS.add("ptncn", _ptncn())
for _name, _rule in RULES.items():
    for _cell in _rule.cells:
        LEARNERS.add(f"{_cell}-{_name}", _with_cell(_cell, _name, _rule))
LEARNERS.add("elstm-rtrl", _diagonal("elstm", "element-wise LSTM, exact RTRL", RECURRENT, BROWN, search_gradient))
LEARNERS.add("lru-rtrl", _diagonal("lru", "linear recurrent units, exact traces", ADAM, INDIGO, search_lru))
LEARNERS.add("esn-ridge", _echo("ridge", "ridge regression", "-", ridge=True, defaults=LEAST_SQUARES))
LEARNERS.add("esn-rls", _echo("rls", "RLS", "--", ridge=True, defaults=LEAST_SQUARES))
LEARNERS.add("esn-sgd", _echo("sgd", "gradient descent", ":", ridge=False, defaults={}))
LEARNERS.add("copy", _trivial("copy", "repeats the last observation", "nothing", "repeat last frame", ":"))
LEARNERS.add("mean", _trivial("mean", "the mean of all observations", "online", "mean of all", "-."))
