"""Forecast many streams at once, never much worse than the best of several simple rules; in C or in NumPy."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import fields
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ptncn.kernels import address, open_library
from ptncn.streaming.forecaster import reference
from ptncn.streaming.forecaster.layout import (
    EXPERTS,
    SEASONS,
    Array,
    Setting,
    find_seasons,
    fresh,
    unit_weights,
    views,
    width,
)
from ptncn.streaming.storage import StateRows, grow
from ptncn.system import processors, side_by_side

whole = ctypes.c_int64


class CSetting(ctypes.Structure):
    """`Setting` as the kernel reads it."""

    _fields_ = [(field.name, whole if field.type == "int" else ctypes.c_double) for field in fields(Setting)]


@cache
def load() -> ctypes.CDLL | None:
    """The forecaster's library, or None: see `open_library`."""
    names = ("size", "step", "room", "prepare", "columns", "finish")
    return open_library("_forecast", {f"forecast_{name}": whole for name in names})


class CompiledStep:
    """Steps the streams of one state; the addresses of permanent arrays are looked up only once."""

    def __init__(self, library: ctypes.CDLL, setting: Setting) -> None:
        self._setting = CSetting(**{field.name: getattr(setting, field.name) for field in fields(Setting)})
        self._width = int(library.forecast_size(ctypes.byref(self._setting)))
        if self._width != width(setting):
            raise ValueError(f"setting: the kernel does not support these sizes: {setting}")
        self._step: Callable[..., int] = library.forecast_step
        self._library = library
        self._weights = unit_weights(setting)
        self._room = np.empty(0)

    def __call__(
        self,
        state: Array,
        rows: NDArray[np.int64],
        values: Array,
        states: Array,
        extra: Array,
        out: tuple[Array, Array, Array, Array],
    ) -> int:
        """Streams `rows` of `state` observe `values` (B, C). Predictions (B, C), forecasts and bounds (B, C, H) are
        written to `out`. Threads share the streams. Returns the number of rows processed: all."""
        count, setting = len(rows), self._setting
        columns, horizon = setting.columns, setting.horizon
        threads = min(processors(), columns, count * columns * horizon // COLUMN_SHARE)
        if len(state) == 1 and threads > 1 and not rows.any():
            return self._share_columns(threads, state, values, states, extra, out)
        arguments = (
            ctypes.byref(setting),
            address("state", state, np.float64, len(state), self._width),
            whole(len(state)),
            whole(self._width),
            address("rows", rows, np.int64, count),
            whole(count),
            address("weights", self._weights, np.float64, *self._weights.shape),
            address("values", values, np.float64, count, columns),
            address("states", states, np.float64, count, setting.states),
            address("extra", extra, np.float64, count, setting.extra),
            address("out", out[0], np.float64, count, columns),
            *(address("out", each, np.float64, count, columns, horizon) for each in out[1:]),
        )
        parts = min(processors(), 1 + count // SHARE) if len(state) > 1 else 1
        for wrong in side_by_side(parts, lambda part: self._step(*arguments, whole(part), whole(parts))):
            self._check(wrong)
        return count

    def _share_columns(
        self,
        threads: int,
        state: Array,
        values: Array,
        states: Array,
        extra: Array,
        out: tuple[Array, Array, Array, Array],
    ) -> int:
        """Process the first rows of the only stream, with its columns divided among threads; return their number."""
        setting, library, count = self._setting, self._library, len(values)
        columns, horizon = setting.columns, setting.horizon
        if not len(self._room):
            self._room = np.empty(int(library.forecast_room(ctypes.byref(setting))))
        stream = (
            ctypes.byref(setting),
            address("state", state, np.float64, 1, self._width),
            whole(self._width),
            address("room", self._room, np.float64, len(self._room)),
            whole(len(self._room)),
        )
        observed = address("values", values, np.float64, count, columns)
        features = (
            address("states", states, np.float64, count, setting.states),
            address("extra", extra, np.float64, count, setting.extra),
        )
        rows = library.forecast_prepare(*stream, whole(count), observed, *features)
        self._check(-min(rows, 0))
        arguments = (
            *stream,
            whole(rows),
            address("weights", self._weights, np.float64, *self._weights.shape),
            observed,
            address("out", out[0], np.float64, count, columns),
            *(address("out", each, np.float64, count, columns, horizon) for each in out[1:]),
        )
        parts = min(threads, 1 + rows * columns * horizon // COLUMN_SHARE)
        for wrong in side_by_side(parts, lambda part: library.forecast_columns(*arguments, whole(part), whole(parts))):
            self._check(wrong)
        self._check(library.forecast_finish(*stream, whole(rows)))
        return int(rows)

    def _check(self, wrong: int) -> None:
        if wrong:
            reasons = "sizes that do not fit", "rows outside of the state", "a broken count of rows", "no memory"
            raise ValueError(f"forecast step: {reasons[wrong - 1]}")


SHARE = 128
"""The fewest rows per thread that make starting it worthwhile."""
COLUMN_SHARE = 4096
"""The fewest forecasts per thread that make starting it for some columns of a stream worthwhile."""
FIRST_LOOK = 24
"""Rows before the first search for a season; the next ones follow after a quarter more rows, or half the history."""


class Forecast(NamedTuple):
    """Predictions of B rows, and the forecasts after each, in the units of the source."""

    expected: Array
    """(B, C) the predictions made before each row was seen; NaN for the first row of a stream."""
    mean: Array
    """(B, C, H) horizon h + 1 is at index h."""
    lower: Array
    upper: Array


class Forecaster(StateRows):
    """Forecasts the next `horizon` rows of `streams` independent streams after each observation.

    Twelve experts forecast each column at each horizon: the last value; the value one season ago, for two seasons; the
    median; the last value, or that of a season ago, plus the mean change; the latter times the mean growth; readouts of
    the network's states and a few lags, of many lags with a long memory, and of a few lags with a short one; two
    seasonal profiles with an autoregression of their residuals; and a nonlinear autoregression. Readouts are fitted by
    recursive least squares, directly for each horizon, with the features and gain from when the forecast was made [^1].
    Experts are mixed with weights that grow with the regret of not having followed them [^2].

    Bounds adapt to the errors so that each is exceeded at the requested rate, whatever the distribution of the errors
    and even if it changes [^3].

    [^1]: Haykin: Adaptive Filter Theory, chapter 10.
    [^2]: Gaillard, Stoltz, van Erven: A second-order bound with excess losses. COLT 2014 (ML-Poly).
    [^3]: Gibbs, Candès: Adaptive conformal inference under distribution shift. NeurIPS 2021; Angelopoulos, Candès,
        Tibshirani: Conformal PID control for time series prediction. NeurIPS 2023.

    >>> forecaster = Forecaster(Setting(horizon=3))
    >>> for t in range(400):
    ...     ahead = forecaster.observe(np.array([[np.sin(t / 4)]]))
    >>> np.round(ahead.mean[0, 0] - np.sin(np.arange(400, 403) / 4), 2) + 0.0
    array([0., 0., 0.])
    """

    def __init__(self, setting: Setting, streams: int = 1, *, seasons: Sequence[int] = ()) -> None:
        """
        Arguments:
            seasons: up to two lengths, the more important first; by default they are detected.
        """
        if len(seasons) > SEASONS or not all(1 < season <= setting.history // 2 for season in seasons):
            raise ValueError(f"seasons: expected up to 2 of 2 to {setting.history // 2} rows, got {tuple(seasons)}")
        self.setting, self.seasons = setting, tuple(seasons)
        self.state = fresh(1, setting)
        library = load()
        self._step: CompiledStep | reference.Step = (
            reference.Step(setting) if library is None else CompiledStep(library, setting)
        )
        self._looks = library is None
        """Whether seasons are detected here rather than in the kernel."""
        first = views(self.state, setting)
        first["look"][:] = next_look(0, setting.history)
        if seasons:
            first["look"][:] = -1
            first["season"][:, :, : len(seasons)] = seasons
        self._blank = self.state[0].copy()
        del first
        self.resize(streams)

    def resize(self, streams: int) -> None:
        """Change the number of streams; new ones are at the end."""
        before = len(self.state)
        self._views: dict[str, Array] = {}
        grow(self.state, streams)
        self.state[before:] = self._blank
        self._views = views(self.state, self.setting)
        self._all = np.arange(streams)

    def reset(self, stream: int) -> None:
        """Reset a stream."""
        self.state[stream] = self._blank

    def observe(
        self,
        values: Array,
        states: Array | None = None,
        extra: Array | None = None,
        *,
        rows: NDArray[np.int64] | None = None,
    ) -> Forecast:
        """Learn from (B, C) values of the streams `rows`, NaN if not observed; after each row, forecast.

        Rows are processed in order, and a stream may occur more than once. The results do not depend on how rows are
        divided into calls.

        Arguments:
            states: (B, S) the network's states after the same observation.
            extra: (B, E) further features of each row.
        """
        rows = self._all if rows is None else rows
        n, (C, H) = len(rows), (self.setting.columns, self.setting.horizon)
        states = np.empty((n, 0)) if states is None else states
        extra = np.empty((n, 0)) if extra is None else extra
        out = Forecast(np.empty((n, C)), *np.empty((3, n, C, H)))
        done = 0
        while done < n:
            rest = Forecast(*(each[done:] for each in out))
            more = self._step(self.state, rows[done:], values[done:], states[done:], extra[done:], rest)
            if self._looks:
                self._look_for_seasons(rows[done : done + more])
            done += more
        return out

    def part(self, name: str) -> Array:
        """A named part of the state, such as `season` (streams, C, 2) or `spread` (streams, C, H), the recent mean
        absolute error."""
        return self._views[name]

    def weights(self) -> Array:
        """(streams, C, H, experts) the weight of each of `EXPERTS`."""
        return reference.weigh(self._views["regret"], self._views["square"])

    def _look_for_seasons(self, rows: NDArray[np.int64]) -> None:
        """Detect seasons of the streams for which it is due."""
        if self.seasons:
            return
        counts, looks = self._views["count"], self._views["look"]
        for row in rows[counts[rows] == looks[rows]].tolist():
            for column in range(self.setting.columns):
                self._look(row, column)
            looks[row] = next_look(int(counts[row]), self.setting.history)

    def _look(self, row: int, column: int) -> None:
        view = {name: self._views[name][row, column] for name in ("history", "season", "profile", "residual", "moved")}
        count = int(self._views["count"][row])
        length = self.setting.history
        series = view["history"][: min(count, length)]
        if count > length:
            series = np.roll(series, -(count % length))
        before = view["season"].astype(int).tolist()
        found = find_seasons(series, before)
        free = [k for k in np.argsort(before).tolist() if not before[k] or before[k] not in found]
        for season in found:
            if season in before or not season:
                continue
            slot = free.pop(0)
            view["season"][slot] = season
            self._begin_profile(view["profile"][slot], series, season, count)
            view["residual"][slot] = view["moved"][slot] = 0.0
            self._forget(row, column, slot)
            if slot == 0:
                self._measure_drift(row, column, series, season)

    def _begin_profile(self, profile: Array, series: Array, season: int, count: int) -> None:
        """Compute a profile as if it had been kept since the start of the series."""
        profile[:] = np.nan
        first = count - len(series)
        for begin in range(0, len(series), season):
            part = series[begin : begin + season]
            at = (first + begin + np.arange(len(part))) % season
            old = profile[at]
            profile[at] = np.where(np.isnan(old), part, old + self.setting.smoothing * (part - old))

    def _measure_drift(self, row: int, column: int, series: Array, season: int) -> None:
        """The mean change and growth per row, from whole seasons."""
        self._views["drift"][row, column] = np.mean(series[season:] - series[:-season]) / season
        if not np.isnan(self._views["growth"][row, column]):
            grown = np.log(series[season:] / series[:-season]).mean() / season if series.min() > 0 else np.nan
            self._views["growth"][row, column] = grown

    def _forget(self, row: int, column: int, slot: int) -> None:
        """Discard what was learnt with another season."""
        name, n = f"profile {slot + 1}", self.setting.profile_lags + 1
        self._views[f"{name}.P"][row, column] = 0.0
        self._views[f"{name}.P"][row, column, np.cumsum(np.arange(1, n + 1)) - 1] = 1.0 / self.setting.ridge
        for part in ("W", "usual"):
            self._views[f"{name}.{part}"][row, column] = 0.0
        self._views["base"][row, column, :, slot] = np.nan
        for expert in (f"season {slot + 1}", name):
            for part in ("regret", "square"):
                self._views[part][row, column, :, EXPERTS.index(expert)] = 0.0


def next_look(count: int, history: int) -> int:
    """The number of rows at the next search for a season."""
    if count >= history:
        half = max(history // 2, 1)
        return (count // half + 1) * half
    after = FIRST_LOOK
    while after <= count:
        after += -(-after // 4)
    return min(after, history)
