"""Every choice that the paper leaves open, as an option, and three presets.

`docs/choices.md` gives the reasons.
"""

from __future__ import annotations

import dataclasses
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from ptncn.learner import LARGEST_SIZE
from ptncn.registry import unknown
from ptncn.updates.config import Factor, describe_schedule, get_schedule
from ptncn.updates.optimizers import OPTIMIZERS

ActivationChoice = str | Callable[[Tensor], Tensor]


def _one_of(*choices: str) -> dict[str, Any]:
    return {"choices": choices}


def _within(low: float, high: float = math.inf) -> dict[str, Any]:
    return {"range": (low, high)}


def _positive() -> dict[str, Any]:
    return {"range": (math.ulp(0.0), math.inf)}


@dataclass(frozen=True)
class Config:
    """The options of a P-TNCN. The defaults are the preset "paper".

    `PTNCN` takes them as keyword arguments; `network.config` holds them.

    >>> Config(lr=0.01, optimizer="adam").beta
    0.15
    >>> Config(beta=-1)
    Traceback (most recent call last):
    ValueError: beta: expected a finite number of at least 0, got -1
    """

    activation: ActivationChoice | Sequence[ActivationChoice] = "tanh"
    """φ_z, one for all layers or one each: a name from `ptncn.network.activations`, or any callable."""
    hidden_prediction: ActivationChoice = "same"
    """φ_o for predictions of hidden layers; "same" is the activation of the predicted layer."""
    winners: float = field(default=0.1, metadata=_within(0, 1))
    """Fraction of units that stay active under the activation "kwta"."""
    biases: bool = True
    """Biases on drives and predictions."""
    output_bias: str = field(default="zero", metadata=_one_of("zero", "mean"))
    """Initial bias of the output: zero, or the logits of the mean observation."""
    weight_std: float = field(default=0.025, metadata=_within(0))
    """Standard deviation of the initial weights."""
    error_weight_std: float = field(default=0.025, metadata=_within(0))
    """Standard deviation of the initial error weights E."""

    memory: int | Sequence[int] = 0
    """Units of trace memory, one number for all layers or one each; 0 is the paper's network."""
    credit: str = field(default="auto", metadata=_one_of("auto", "trace", "immediate"))
    """Credit for the input weights of a memory: traced through time or immediate; "auto" traces if inputs are few."""

    beta: float = field(default=0.15, metadata=_within(0))
    """β: strength of the bottom-up error in the correction."""
    gamma: float = field(default=0.01, metadata=_within(0))
    """γ: strength of the top-down expectation in the correction."""
    lam: float = field(default=0.001, metadata=_within(0))
    """λ: strength of the sparsity penalty in the correction."""
    sparsity_sign: str = field(default="derived", metadata=_one_of("derived", "printed"))
    """Sign of the λ term: as derived from the objective, or as printed in equations 13 and 14."""
    beta_scope: str = field(default="errors", metadata=_one_of("errors", "all"))
    """What β multiplies: E e alone, or the γ and λ terms too."""
    corrections: int = field(default=1, metadata=_within(1, 2**31 - 1))
    """K: correction steps for each observation."""

    teaching: str = field(default="coupled", metadata=_one_of("coupled", "small"))
    """Error signal for M, V and U: the displacement by the correction, or a separate small displacement along E e."""
    displacement: float = field(default=0.01, metadata=_positive())
    """κ: size of the small displacement of a drive, as a root mean square over units and steps."""
    displacement_decay: float = field(default=0.99, metadata=_within(0, 0.999999))
    """Decay of the moving mean square of E e, by which the small displacement is divided."""
    reach: float = field(default=0.03, metadata=_positive())
    """Replaces κ where φ has no slope, as a multiple of the root mean square drive (of 1 under "bernoulli")."""
    presynaptic: str = field(default="y", metadata=_one_of("y", "z"))
    """Presynaptic activity in the rules for M, V and U: the corrected states they multiply, or uncorrected ones."""
    prediction_error: str = field(default="e", metadata=_one_of("e", "e_z"))
    """Error signal for W above the first layer: the error units, or the displacement of the state."""
    error_rule: str = field(default="temporal", metadata=_one_of("temporal", "transpose", "fixed"))
    """How E learns: from the change of the displacement, like the transpose of W, or not at all."""
    temporal_sign: int = field(default=1, metadata=_one_of("1", "-1"))
    """Sign of the temporal rule: 1 descends along equation 21 as printed, −1 ascends."""
    error_lr_factor: float = field(default=1.0, metadata=_within(0))
    """The step size of E, as a multiple of `lr`."""
    xi: float = field(default=0.0, metadata=_within(0))
    """ξ: weight of the normalised Hebbian term; 0 leaves it out."""
    readout: str = field(default="delta", metadata=_one_of("delta", "rls"))
    """How W of the first layer learns: by the rules above or, with a Gaussian output, by recursive least squares."""
    forgetting: float = field(default=0.999, metadata=_within(math.ulp(0.0), 1))
    """Forgetting factor per step, with `readout="rls"`."""
    ridge: float = field(default=1.0, metadata=_positive())
    """Penalty on squared weights under `readout="rls"`; it does not fade."""
    error_clip: float | None = field(default=5.0, metadata=_positive())
    """Under `readout="rls"`, errors are clipped at this multiple of the usual error; None: never."""
    horizons: Sequence[int] = (1,)
    """Steps ahead that `forecast` predicts; more than one needs `readout="rls"`, which learns each directly."""
    first_frame: bool = False
    """Whether the first observation of a sequence is scored and learnt from, too."""

    rescale: str = field(default="unit", metadata=_one_of("unit", "clip", "none"))
    """Rescale each update to norm `radius`, clip it at that norm, or leave it unchanged."""
    radius: float = field(default=1.0, metadata=_positive())
    """The norm for `rescale`."""
    reduction: str = field(default="sum", metadata=_one_of("sum", "mean", "sum_then_mean"))
    """An update is the batch's sum or its mean; "sum_then_mean" rescales the sum, then divides by the batch."""
    optimizer: str = field(default="sgd", metadata={"choices": OPTIMIZERS})
    """Turns updates into steps."""
    lr: float = field(default=0.035, metadata=_within(0))
    """Step size."""
    schedule: Mapping[str, Any] | Factor | None = None
    """Factor on the step size: a `ptncn.updates.Schedule`, its fields, or a callable of the number of updates."""
    momentum: float = field(default=0.95, metadata=_within(0, 1))
    """Decay of the velocity under "momentum" and "nesterov"."""
    beta1: float = field(default=0.9, metadata=_within(0, 1))
    """Decay of Adam's first moment."""
    beta2: float = field(default=0.999, metadata=_within(0, 1))
    """Decay of Adam's second moment."""
    alpha: float = field(default=0.99, metadata=_within(0, 1))
    """Decay of the second moment of RMSprop and Adafactor."""
    eps: float = field(default=1e-8, metadata=_within(0))
    """Added to the root of the second moment."""
    max_norm: float | None = field(default=30.0, metadata=_positive())
    """Maximum L2 norm of the columns of the weight matrices; None for no limit."""
    weight_decay: float = field(default=0.0, metadata=_within(0))
    """Decoupled weight decay: each update shrinks weights by this fraction times the step size, but not biases."""

    def __post_init__(self) -> None:
        for option in dataclasses.fields(self):
            value = getattr(self, option.name)
            _check(option.name, value, option)
            if isinstance(value, int) and isinstance(option.default, float) and value > 2**53:
                object.__setattr__(self, option.name, float(value))  # PyTorch takes no whole numbers of more bits
        if self.output_bias != "zero" and not self.biases:
            raise ValueError(f"output_bias={self.output_bias!r}: expected 'zero' where biases=False")
        listed = isinstance(self.horizons, Sequence) and len(self.horizons) > 0
        if not listed or any(type(h) is not int or h < 1 for h in self.horizons):
            raise ValueError(f"horizons: expected a list of whole numbers of at least 1, got {self.horizons!r}")
        if self.readout != "rls" and set(self.horizons) != {1}:
            raise ValueError(f"horizons={self.horizons!r}: expected readout='rls', got {self.readout!r}")
        object.__setattr__(self, "horizons", tuple(self.horizons))
        object.__setattr__(self, "schedule", get_schedule(self.schedule))

    def to_json(self) -> dict[str, Any]:
        """Return JSON values such that `Config(**values)` is equal; custom callables become "custom"."""
        values = {option.name: getattr(self, option.name) for option in dataclasses.fields(self)}
        values["schedule"] = describe_schedule(self.schedule)  # type: ignore[arg-type]
        for name in ("activation", "hidden_prediction"):
            values[name] = _describe(values[name])
        values["memory"] = self.memory if isinstance(self.memory, int) else list(self.memory)
        values["horizons"] = list(self.horizons)
        return values


def _describe(choice: Any) -> Any:
    if isinstance(choice, str):
        return choice
    return "custom" if callable(choice) else [_describe(part) for part in choice]


def _check(name: str, value: Any, option: dataclasses.Field[Any]) -> None:
    if "choices" in option.metadata and str(value) not in option.metadata["choices"]:
        raise ValueError(f"{name}: expected one of {', '.join(option.metadata['choices'])}, got {value!r}")
    if isinstance(option.default, bool) and not isinstance(value, bool):
        raise ValueError(f"{name}: expected True or False, got {value!r}")
    if "range" in option.metadata and not (value is None and name in ("max_norm", "error_clip")):
        low, high = option.metadata["range"]
        whole = isinstance(option.default, int)
        largest = LARGEST_SIZE if whole else sys.float_info.max
        if isinstance(value, bool) or not isinstance(value, int if whole else int | float):
            raise ValueError(f"{name}: expected {'an integer' if whole else 'a number'}, got {value!r}")
        if not low <= value <= min(high, largest):
            bounds = (
                f"from {low} to {high}"
                if high < math.inf
                else f"of at least {low}"
                if low != math.ulp(0.0)
                else "above 0"
            )
            raise ValueError(f"{name}: expected a finite number {bounds}, got {value!r:.60}")


PRESETS: dict[str, dict[str, Any]] = {
    "paper": {},
    "authors": {
        "hidden_prediction": "identity",
        "biases": False,
        "weight_std": 0.05,
        "error_weight_std": 0.05,
        "beta": 0.1,
        "beta_scope": "all",
        "gamma": 0.001,
        "lam": 0.0,
        "prediction_error": "e_z",
        "error_rule": "transpose",
        "rescale": "clip",
        "reduction": "sum_then_mean",
        "optimizer": "nesterov",
        "lr": 0.075,
        "max_norm": None,
    },
    "best": {
        "output_bias": "mean",
        "beta": 0.25,
        "teaching": "small",
        "error_rule": "transpose",
        "rescale": "none",
        "reduction": "mean",
        "optimizer": "rmsprop",
        "lr": 0.0006,
    },
}
"""Options that differ from the defaults of `Config`."""

FOR_OUTPUT: dict[tuple[str, str], dict[str, Any]] = {
    ("best", "bernoulli"): {
        "weight_std": 0.006,
        "optimizer": "adam",
        "beta2": 0.99,
        "lr": 0.001,
        "schedule": {"kind": "root", "steps": 1000, "final": 0.1},
    },
    ("best", "categorical"): {
        "activation": "relu6",
        "beta": 0.15,
        "reduction": "sum",  # a row counts the same in a batch of any size
        "optimizer": "adam",
        "lr": 0.004,
        "schedule": {"kind": "root", "steps": 100},
    },
}
"""Options that a preset changes for one output distribution."""


_LATER_RULES = ("teaching", "displacement", "displacement_decay", "reach", "output_bias", "memory", "credit")
LATER = {*_LATER_RULES, "readout", "forgetting", "ridge", "error_clip", "horizons"}
"""Options missing from the oldest checkpoints, which list all others: they take their defaults."""


def make_config(preset: str, overrides: Mapping[str, Any], output: str = "") -> Config:
    """
    >>> make_config("authors", {"lr": 0.01}).optimizer
    'nesterov'
    """
    if preset not in PRESETS:
        raise ValueError(unknown("preset", preset, PRESETS))
    known = [option.name for option in dataclasses.fields(Config)]
    chosen = {**PRESETS[preset], **FOR_OUTPUT.get((preset, output), {})}
    chosen = {} if overrides.keys() >= set(known) - LATER else chosen
    for name in overrides:
        if name not in known:
            raise ValueError(unknown("option", name, known))
    return Config(**{**chosen, **overrides})


def check_sizes(input_size: int, hidden_sizes: Sequence[int]) -> tuple[int, ...]:
    if isinstance(hidden_sizes, int) or not isinstance(hidden_sizes, Sequence):
        raise ValueError(f"hidden_sizes: expected a list with the units of each layer, got {hidden_sizes!r}")
    if not hidden_sizes:
        raise ValueError("hidden_sizes: expected at least one layer, got an empty list")
    for size in (input_size, *hidden_sizes):
        if not isinstance(size, int) or isinstance(size, bool) or not 1 <= size <= LARGEST_SIZE:
            raise ValueError(f"sizes of layers: expected positive integers, got {size!r:.60}")
    return (input_size, *hidden_sizes)


def check_memory(memory: int | Sequence[int], layers: int) -> tuple[int, ...]:
    """Return the memory units of each layer."""
    each = [memory] * layers if isinstance(memory, int) else memory
    if not isinstance(each, Sequence) or isinstance(each, str) or len(each) != layers:
        raise ValueError(f"memory: expected a whole number, or one for each of {layers} layers, got {memory!r}")
    for units in each:
        if not isinstance(units, int) or isinstance(units, bool) or not 0 <= units <= LARGEST_SIZE:
            raise ValueError(f"memory: expected whole numbers of at least 0, got {memory!r:.60}")
    return tuple(each)


def check_dtype(dtype: torch.dtype | str | None) -> torch.dtype | None:
    if dtype is None:
        return None
    chosen = getattr(torch, dtype, None) if isinstance(dtype, str) else dtype
    if chosen not in (torch.float32, torch.float64):
        raise ValueError(f"dtype: expected float32 or float64, got {dtype!r}")
    return chosen
