"""Settings, season detection, and the state of a stream: one row of float64 that the reference and the kernel share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

EXPERTS = (
    *("copy", "season 1", "season 2", "median", "drift", "growth"),
    *("network", "long", "short", "profile 1", "profile 2", "nonlinear"),
)
BLOCKS = EXPERTS[6:]
"""The experts that learn a readout."""
LINEAR = BLOCKS[:-1]
SEASONS = 2
UNITS = 96
"""Nonlinear units of a stream, divided among its columns."""


@dataclass(frozen=True)
class Setting:
    """Sizes and rates of a forecaster. The rates have fixed defaults for all streams; see docs/streams.md."""

    columns: int = 1
    horizon: int = 1
    states: int = 0
    """Features from the network."""
    extra: int = 0
    """Other features, such as the hour as harmonics."""
    history: int = 4096
    """Stored values of each column; seasons are at most half as long."""
    lags: int = 48
    few: int = 8
    """Lags of each column in addition to the network's states."""
    short_lags: int = 8
    profile_lags: int = 16
    unit_lags: int = 8
    """Lags of the nonlinear units, and steps that they forecast directly; for later steps, forecasts are fed back."""
    units: int = 0
    """Nonlinear units of each column."""
    forgetting: float = 0.9995
    quick: float = 0.99
    """Forgetting factor of the short autoregression."""
    ridge: float = 1.0
    clip: float = 4.0
    """Errors are clipped at this multiple of the usual error for learning."""
    fade: float = 0.9995
    """Decay of the experts' regrets per step."""
    smoothing: float = 0.2
    """Weight of a new value in a profile."""
    level: float = 0.9
    step: float = 0.005
    """How far a miss moves a bound, in units of the mean absolute error."""
    widen: float = 0.02
    """Rate of the mean absolute error that scales the bounds, one step ahead; lower for later steps."""
    debt: float = 0.08
    """Logarithm of the factor by which each miss in excess widens the bounds, with a memory of 2,000 rows."""
    trust: float = 0.9995
    """Memory of how much the mixture is trusted compared with copying the last value."""
    unit_ridge: float = 1e-3


def default_setting(columns: int, horizon: int, states: int, extra: int = 0, **others: Any) -> Setting:
    """With many columns, each has fewer lags and nonlinear units."""
    sizes = {"few": max(1, 8 // columns), "units": UNITS // columns}
    return Setting(columns, horizon, states, extra, **{**sizes, **others})


SWAPPED = {"regret": (1, 2), "square": (1, 2), "trust": (1, 2), "z": (0, 1), "gain": (0, 1)}
"""Two axes that are swapped in memory, so that what the kernel reads together is contiguous."""


class Part(NamedTuple):
    begin: int
    shape: tuple[int, ...]
    start: float


def lay_out(setting: Setting) -> dict[str, Part]:
    """Name, position, shape and initial value of each part, in order."""
    C, H, L, J = setting.columns, setting.horizon, setting.history, len(EXPERTS)
    shapes: dict[str, tuple[tuple[int, ...], float]] = {
        "count": ((), 0.0),
        "look": ((), 0.0),
        "mean": ((C,), 0.0),
        "variance": ((C,), -1.0),
        "reach": ((C,), 0.0),
        "median": ((C,), 0.0),
        "deviation": ((C,), 0.0),
        "drift": ((C,), 0.0),
        "growth": ((C,), 0.0),
        "centre": ((C,), 0.0),
        "span": ((C,), 0.0),
        "begun": ((C,), 0.0),
        "history": ((C, L), 0.0),
        "season": ((C, SEASONS), 0.0),
        "profile": ((C, SEASONS, L // 2), np.nan),
        "residual": ((C, SEASONS, setting.profile_lags), 0.0),
        "moved": ((C, SEASONS), 0.0),
        "regret": ((C, H, J), 0.0),
        "square": ((C, H, J), 0.0),
        "size": ((C, H), 0.0),
        "lasting": ((C, H), 0.0),
        "scored": ((C, H), 0.0),
        "trust": ((C, H, 2), 0.0),
        "low": ((C, H), 0.0),
        "high": ((C, H), 0.0),
        "spread": ((C, H), 0.0),
        "owed": ((C, H), 0.0),
        "made": ((C, H * (H + 1) // 2, 3), 0.0),
        "outputs": ((C, H * (H + 1) // 2, len(BLOCKS)), 0.0),
        "base": ((C, H * (H + 1) // 2, SEASONS), np.nan),
        "last": ((H, C), 0.0),
        "scale": ((H, C), 1.0),
        "medians": ((H, C), 0.0),
        "drifts": ((H, C), 0.0),
        "growths": ((H, C), 0.0),
    }
    for name, n in features(setting).items():
        slots = min(H, setting.unit_lags) if name == "nonlinear" else H
        groups, targets = (1, C * H) if name == "network" else (C, slots)
        shapes[f"{name}.P"] = ((groups, n * (n + 1) // 2), 0.0)
        shapes[f"{name}.W"] = ((groups, targets, n), 0.0)
        shapes[f"{name}.usual"] = ((groups, targets, 2), 0.0)
        shapes[f"{name}.z"] = ((slots, groups, n), 0.0)
        shapes[f"{name}.gain"] = ((slots, groups, n), 0.0)
    shapes["excused"] = ((C, H), 0.0)  # last, see `completed`
    parts, begin = {}, 0
    for name, (shape, start) in shapes.items():
        parts[name] = Part(begin, shape, start)
        begin += prod(shape)
    return parts


def features(setting: Setting) -> dict[str, int]:
    """The number of features of each block."""
    return {
        "network": 1 + setting.states + setting.extra + setting.columns * (setting.few + 1),
        "long": setting.lags + 2,
        "short": setting.short_lags + 2,
        "profile 1": setting.profile_lags + 1,
        "profile 2": setting.profile_lags + 1,
        "nonlinear": 1 + setting.unit_lags + setting.units if setting.units else 0,
    }


def unit_weights(setting: Setting) -> Array:
    """(1 + unit_lags, units) fixed biases, then weights of lags. A unit sees one, two, three or all lags."""
    draw, lags = np.random.default_rng(0), setting.unit_lags
    weights = draw.normal(size=(1 + lags, setting.units))
    weights[0] *= 1.5
    for unit in range(setting.units):
        seen = min(lags, (1, 2, 3, lags)[unit % 4])
        weights[1 + draw.permutation(lags)[seen:], unit] = 0.0
        weights[1:, unit] *= 2.0 / np.sqrt(seen)
    return weights


def width(setting: Setting) -> int:
    """Numbers in the state of a stream."""
    last = list(lay_out(setting).values())[-1]
    return last.begin + prod(last.shape)


def completed(states: Array, setting: Setting) -> Array:
    """(streams, width) states; those stored before there was the part `excused` get it."""
    excused = setting.columns * setting.horizon
    if isinstance(states, np.ndarray) and states.shape[1:] == (width(setting) - excused,):
        return np.pad(states, ((0, 0), (0, excused)))
    return states


def views(state: Array, setting: Setting) -> dict[str, Array]:
    """The parts of (streams, width) state, each with a leading axis of streams; they share its memory."""
    parts: dict[str, Array] = {}
    for name, (begin, shape, _) in lay_out(setting).items():
        axes = list(range(len(shape)))
        if (kind := name.rpartition(".")[2]) in SWAPPED:
            a, b = SWAPPED[kind]
            axes[a], axes[b] = b, a
        stored = state[:, begin : begin + prod(shape)].reshape(len(state), *(shape[axis] for axis in axes))
        parts[name] = stored.transpose(0, *(1 + axis for axis in axes))
    return parts


def fresh(streams: int, setting: Setting) -> Array:
    """(streams, width) the initial state."""
    row = np.empty((1, width(setting)))
    for name, view in views(row, setting).items():
        view[...] = lay_out(setting)[name].start
        if name.endswith(".P"):
            n = features(setting)[name.removesuffix(".P")]
            view[..., np.cumsum(np.arange(1, n + 1)) - 1] = 1.0 / setting.ridge
    return np.repeat(row, streams, axis=0)


DIP = (0.8, 1.2)
"""A season's mean squared difference is at most this share of the largest at shorter lags: a − b / cycles seen."""
NEAR = 1.35
"""Among the seasons within this factor of the smallest difference, the shortest is used, or a better one nearby."""
CLIP = 5.0
CUSTOMARY = (7, 12, 24, 48, 52, 96, 144, 168, 288, 336, 365, 672, 1008, 1440, 2016)
"""Lengths of days, weeks and years. Noise makes neighbouring lags hard to tell apart, so one of these is preferred if
it is about as good."""
ALIKE = 1.5
"""Lags are equally good if their mean squared differences differ by at most this many standard errors."""


def differences(series: NDArray[np.float64], longest: int) -> NDArray[np.float64]:
    """(longest + 1,) the mean of (x_t − x_{t−m})² for each lag m, by the fast Fourier transform."""
    n = len(series)
    size = 1 << (2 * n - 1).bit_length()
    spectrum = np.fft.rfft(series, size)
    products = np.fft.irfft(spectrum * spectrum.conj(), size)[: longest + 1]
    squares = np.concatenate([[0.0], np.cumsum(series * series)])
    lags = np.arange(longest + 1)
    means: NDArray[np.float64] = (squares[n] - squares[lags] + squares[n - lags] - 2 * products) / (n - lags)
    return means


def find_seasons(series: NDArray[np.float64], known: Sequence[int] = ()) -> tuple[int, int]:
    """Up to two seasons of a series, the better first; 0 for none. Known seasons are kept if they are as good.

    A season is a lag after which the series repeats: the mean squared difference has a local minimum, well below its
    values at shorter lags. The first is the best of these, the second the best of at most half its length.

    >>> find_seasons(np.sin(2 * np.pi * np.arange(400) / 24))
    (24, 0)
    """
    n = len(series)
    longest = n // 2 - 1
    if longest < 4:
        return 0, 0
    t = np.arange(n) - (n - 1) / 2
    x = series - series.mean()
    x = x - t * ((t @ x) / (t @ t))
    spread = 1.4826 * float(np.median(np.abs(x - np.median(x)))) or float(x.std())
    if spread <= 1e-12 * float(np.abs(series).max(initial=0.0)):
        return 0, 0
    found = differences(np.clip(x / spread, -CLIP, CLIP), longest + 1)
    before = np.maximum.accumulate(found)
    m = np.arange(2, longest + 1)
    dips = m[
        (found[m] <= found[m - 1]) & (found[m] <= found[m + 1]) & (found[m] < (DIP[0] - DIP[1] * m / n) * before[m])
    ]
    first = _best(dips, found, known)
    return first, _best(dips[2 * dips <= first], found, known)


def _best(lags: NDArray[np.int64], found: NDArray[np.float64], known: Sequence[int]) -> int:
    if not len(lags):
        return 0
    good = NEAR * found[lags].min() + 1e-12
    first = int(lags[found[lags] <= good][0])
    best = first + int(found[first : min(first + first // 4, lags[-1]) + 1].argmin())
    near = [m for m in (*CUSTOMARY, *known) if abs(m - best) <= 1 + best // 20 and _alike(m, best, found)]
    if near:
        return near[0]
    kept = [m for m in known if lags[0] <= m <= lags[-1] and found[m] <= good and abs(m - best) > 1 + best // 20]
    return kept[0] if kept else best


def _alike(m: int, best: int, found: NDArray[np.float64]) -> bool:
    """Whether the series repeats after m rows about as well as after `best`, also after several seasons."""
    most = (len(found) - 1) // max(m, best)
    limit = 1.0 + ALIKE / np.sqrt(2.0 * len(found))
    far = {1, most}
    return most > 0 and sum(found[k * m] for k in far) <= limit * sum(found[k * best] for k in far) + 1e-12
