"""The options of a stream as plain values, and its default learner."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Any

from ptncn.learner import Learner
from ptncn.learners import make
from ptncn.streaming.columns import MISSING
from ptncn.streaming.predictor import TARGETS


def _check(name: str, value: object, choices: tuple[object, ...]) -> None:
    if not isinstance(value, str | None) or value not in choices:
        names = ", ".join(str(choice) for choice in choices if choice is not None)
        raise ValueError(f"{name}: expected one of {names}, got {value!r}")


@dataclass(frozen=True, kw_only=True)
class StreamOptions:
    """Options of a `Stream`, in addition to its source and its learner."""

    targets: tuple[str, ...] = ()
    """Names or patterns of columns to predict; default: all columns of numbers that are not features."""
    features: tuple[str, ...] = ()
    """Names or patterns of columns that are known before the targets of their row."""
    categorical: tuple[str, ...] = ()
    """Names or patterns of columns of labels."""
    slots: int = 16
    """Slots for the labels of a categorical column; the last one is shared by all labels without their own slot."""
    missing: tuple[str, ...] = MISSING
    """Strings that mark a missing value."""
    decimal: str = "."
    """The decimal mark of numbers in text."""
    columns_change: str = "refuse"
    """What to do with rows that have other columns than the first row: "refuse" or "mask" them."""

    timestamp: str | None = None
    """The column with the time; default: a column with a common name, such as `time`."""
    time_format: str | None = None
    """Format of timestamps, as for `datetime.strptime`; None accepts ISO 8601 and seconds since 1970."""
    gaps: str = "report"
    """What to do about missing time steps: "ignore", "report", or "fill" them with unobserved rows."""
    order: str = "keep"
    """What to do with a row that is not later than the one before: "keep", "skip" or "stop"."""

    key: str | None = None
    """The column that names the stream of a row; each stream has its own scale, state and calibration."""
    key_limit: int | None = None
    """Maximum number of streams in memory; the least recently used go to disk."""
    weights: str = "own"
    """With a key: "own" weights for each stream, or "shared" weights."""

    target: str | None = None
    """What a learner sees of each column: its "level", its "change" since the last row, or "both", with two inputs per
    column. None means "both" for a learner that the stream builds, and "change" for one that is passed in."""
    horizon: int = 0
    """Steps to forecast after each observation."""
    level: float = 0.9
    """Probability that a value lies within the bounds of its forecast."""
    season: int | None = None
    """Length of a season in rows, such as 24; None detects it."""
    alarm_rate: float = 0.01
    """The share of ordinary observations that may raise an alarm."""
    alarm_per: str = "event"
    """"event" raises one alarm for a lasting event, "row" one for each of its rows."""
    learn: bool = True
    """False freezes the weights; states are still corrected."""
    layer_errors: bool = False
    """Whether to report the error of each layer."""
    on_error: str = "stop"
    """What to do with a bad row: "stop" the stream, "skip" the row, or "mask" the values that cannot be read."""

    @property
    def shared(self) -> bool:
        """Whether the streams of all keys share their weights."""
        return self.key is not None and self.weights == "shared"

    def __post_init__(self) -> None:
        for name in ("targets", "features", "categorical", "missing"):
            value = getattr(self, name)
            names = (value,) if isinstance(value, str) else tuple(value) if isinstance(value, Sequence) else (value,)
            if not all(isinstance(each, str) for each in names):
                raise ValueError(f"{name}: expected a list of strings, got {value!r:.60}")
            object.__setattr__(self, name, names)
        for name in ("timestamp", "time_format", "key"):
            if not isinstance(value := getattr(self, name), str | None):
                raise ValueError(f"{name}: expected a string, got {value!r:.60}")
        for name in ("learn", "layer_errors"):
            if not isinstance(value := getattr(self, name), bool):
                raise ValueError(f"{name}: expected True or False, got {value!r:.60}")
        for name, optional in (("slots", False), ("horizon", False), ("season", True), ("key_limit", True)):
            value = getattr(self, name)
            whole = isinstance(value, Integral) and not isinstance(value, bool)
            if not whole and not (optional and value is None):
                raise ValueError(f"{name}: expected a whole number, got {value!r:.60}")
        for name in ("level", "alarm_rate"):
            if not isinstance(value := getattr(self, name), Real) or isinstance(value, bool):
                raise ValueError(f"{name}: expected a number, got {value!r:.60}")
        _check("columns_change", self.columns_change, ("refuse", "mask"))
        _check("gaps", self.gaps, ("ignore", "report", "fill"))
        _check("order", self.order, ("keep", "skip", "stop"))
        _check("weights", self.weights, ("own", "shared"))
        _check("target", self.target, (None, *TARGETS))
        _check("alarm_per", self.alarm_per, ("event", "row"))
        _check("on_error", self.on_error, ("stop", "skip", "mask"))
        _check("decimal", self.decimal, (".", ","))
        if self.slots < 2:
            raise ValueError(f"slots: expected at least 2, the last of them for all other values, got {self.slots}")
        if self.horizon < 0:
            raise ValueError(f"horizon: expected at least 0, got {self.horizon}")
        if not 0 < self.level < 1:
            raise ValueError(f"level: expected a share above 0 and below 1, got {self.level}")
        if not 0 < self.alarm_rate < 1:
            raise ValueError(f"alarm_rate: expected a share above 0 and below 1, got {self.alarm_rate}")
        if self.season is not None and not 2 <= self.season <= 1024:
            raise ValueError(f"season: expected 2 to 1024 rows, got {self.season}")
        if self.key_limit is not None and self.key_limit < 1:
            raise ValueError(f"key_limit: expected a positive integer, got {self.key_limit}")


FREE_ON_RESUME = ("horizon", "level", "alarm_rate", "alarm_per", "layer_errors", "on_error", "key_limit")
"""Options that may change when a stream is resumed."""


HIDDEN = (32, 32)
TARGET = "both"
PTNCN_OPTIONS: dict[str, Any] = {
    "optimizer": "rmsprop",
    "rescale": "none",  # updates of fixed length cannot converge
    "lr": 1e-3,
    "alpha": 0.999,  # with one observation at a time, the second moment needs a long memory
    "eps": 1e-3,  # what is predicted well already should not change
    "beta": 0.3,
    "error_rule": "transpose",
    "weight_std": 0.1,  # with smaller weights, a small network needs a thousand observations before it learns
    "error_weight_std": 0.1,
}


def hidden_sizes(keyed: bool) -> tuple[int, ...]:
    """Default units of each layer: the networks of many streams are smaller."""
    return (32,) if keyed else HIDDEN


@dataclass(frozen=True)
class LearnerSpec:
    """Builds learners like `default_learner`, and can be compared and saved."""

    name: str = "ptncn"
    hidden: tuple[int, ...] = HIDDEN
    lr: float | None = None
    seed: int = 0
    options: Mapping[str, Any] = field(default_factory=dict)

    def __call__(self, inputs: int) -> Learner:
        return default_learner(inputs, **vars(self))

    def tree(self) -> dict[str, Any]:
        return {**vars(self), "hidden": list(self.hidden), "options": dict(self.options)}


def default_learner(
    input_size: int,
    name: str = "ptncn",
    *,
    hidden: Sequence[int] = HIDDEN,
    lr: float | None = None,
    seed: int = 0,
    options: Mapping[str, Any] | None = None,
) -> Learner:
    """A learner for scaled observations.

    >>> default_learner(8).registry_name
    'ptncn'
    """
    settings: dict[str, Any] = {"output": "gaussian", "seed": seed}
    if name == "ptncn":
        settings |= PTNCN_OPTIONS | {"hidden_size": list(hidden)}
    else:
        settings |= {"hidden_size": sum(hidden)}
    if lr is not None:
        settings["lr"] = lr
    return make(name, input_size=input_size, **(settings | dict(options or {})))
