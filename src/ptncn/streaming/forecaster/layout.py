"""Where the parts of a stream's state are: one row of float64 a stream, the same for the reference and the kernel."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

EXPERTS = ("copy", "season 1", "season 2", "network", "long", "short", "profile 1", "profile 2")
BLOCKS = EXPERTS[3:]
"""The experts that learn a readout."""
SEASONS = 2


@dataclass(frozen=True)
class Setting:
    """Sizes and rates of a forecaster. The rates are one fixed default for all streams; see docs/streams.md."""

    columns: int = 1
    horizon: int = 1
    states: int = 0
    """Features from the network."""
    extra: int = 0
    """Other features, such as the hour as harmonics."""
    history: int = 2048
    """Values of each column that are kept; no season is longer than half of it."""
    lags: int = 32
    few: int = 8
    """Lags of each column beside the network's states."""
    short_lags: int = 8
    profile_lags: int = 16
    forgetting: float = 0.998
    quick: float = 0.99
    """Forgetting of the short autoregression."""
    ridge: float = 1.0
    clip: float = 4.0
    """An error of more than so many usual ones teaches as so many."""
    fade: float = 0.998
    """What a step leaves of the experts' regrets."""
    smoothing: float = 0.2
    """Share of the new value in a profile."""
    level: float = 0.9
    step: float = 0.1
    """How far a miss moves a bound, in mean absolute errors."""
    widen: float = 0.05
    """Rate at which the mean absolute error follows, by which bounds are measured."""
    debt: float = 0.2
    """How far each miss beyond those allowed, of the last 1,000 rows, moves a bound."""
    trust: float = 0.9995
    """Memory of how far the mixture is to be trusted against the copied last value."""


def default_setting(columns: int, horizon: int, states: int, extra: int = 0, **others: Any) -> Setting:
    """With many columns, few lags of each stand beside the network's states."""
    return Setting(columns, horizon, states, extra, few=max(1, 8 // columns), **others)


class Part(NamedTuple):
    begin: int
    shape: tuple[int, ...]
    start: float


def lay_out(setting: Setting) -> dict[str, Part]:
    """Name, place, shape and first value of each part, in order."""
    C, H, L, J = setting.columns, setting.horizon, setting.history, len(EXPERTS)
    shapes: dict[str, tuple[tuple[int, ...], float]] = {
        "count": ((), 0.0),
        "look": ((), 0.0),
        "mean": ((C,), 0.0),
        "variance": ((C,), -1.0),
        "history": ((C, L), 0.0),
        "season": ((C, SEASONS), 0.0),
        "profile": ((C, SEASONS, L // 2), np.nan),
        "residual": ((C, SEASONS, setting.profile_lags), 0.0),
        "regret": ((C, H, J), 0.0),
        "square": ((C, H, J), 0.0),
        "size": ((C, H), 0.0),
        "scored": ((C, H), 0.0),
        "trust": ((C, H, 2), 0.0),
        "low": ((C, H), 0.0),
        "high": ((C, H), 0.0),
        "spread": ((C, H), 0.0),
        "owed": ((C, H, 2), 0.0),
        "made": ((C, H * (H + 1) // 2, 3), 0.0),
        "told": ((C, H * (H + 1) // 2, len(BLOCKS)), 0.0),
        "base": ((C, H * (H + 1) // 2, SEASONS), np.nan),
        "last": ((H, C), 0.0),
        "scale": ((H, C), 1.0),
    }
    for name, n in features(setting).items():
        groups, targets = (1, C * H) if name == "network" else (C, H)
        shapes[f"{name}.P"] = ((groups, n * (n + 1) // 2), 0.0)
        shapes[f"{name}.W"] = ((groups, targets, n), 0.0)
        shapes[f"{name}.usual"] = ((groups, targets, 2), 0.0)
        shapes[f"{name}.z"] = ((H, groups, n), 0.0)
        shapes[f"{name}.gain"] = ((H, groups, n), 0.0)
    parts, begin = {}, 0
    for name, (shape, start) in shapes.items():
        parts[name] = Part(begin, shape, start)
        begin += prod(shape)
    return parts


def features(setting: Setting) -> dict[str, int]:
    """How many features each block reads."""
    return {
        "network": 1 + setting.states + setting.extra + setting.columns * (setting.few + 1),
        "long": setting.lags + 2,
        "short": setting.short_lags + 2,
        "profile 1": setting.profile_lags + 1,
        "profile 2": setting.profile_lags + 1,
    }


def width(setting: Setting) -> int:
    """Numbers in the state of a stream."""
    last = list(lay_out(setting).values())[-1]
    return last.begin + prod(last.shape)


def views(state: Array, setting: Setting) -> dict[str, Array]:
    """The parts of (streams, width) state, each with a leading axis of streams; they share its memory."""
    return {
        name: state[:, part.begin : part.begin + prod(part.shape)].reshape(len(state), *part.shape)
        for name, part in lay_out(setting).items()
    }


def fresh(streams: int, setting: Setting) -> Array:
    """(streams, width) the state before anything was seen."""
    row = np.empty((1, width(setting)))
    for name, view in views(row, setting).items():
        view[...] = lay_out(setting)[name].start
        if name.endswith(".P"):
            n = features(setting)[name.removesuffix(".P")]
            view[..., np.cumsum(np.arange(1, n + 1)) - 1] = 1.0 / setting.ridge
    return np.repeat(row, streams, axis=0)
