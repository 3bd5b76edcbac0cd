"""The forecaster's step in C, where it could be built; `reference` does the same without."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import fields
from functools import cache

import numpy as np
from numpy.typing import NDArray

from ptncn.kernels import address, open_library
from ptncn.streaming.forecaster.layout import Array, Setting, width

whole = ctypes.c_int64


class CSetting(ctypes.Structure):
    """`Setting` as the kernel reads it."""

    _fields_ = [(field.name, whole if field.type == "int" else ctypes.c_double) for field in fields(Setting)]


@cache
def load() -> ctypes.CDLL | None:
    """The forecaster's library, or None: see `open_library`."""
    library = open_library("_forecast")
    if library is not None:
        library.forecast_size.restype = library.forecast_step.restype = whole
    return library


class CompiledStep:
    """Steps the streams of one state; arrays that stay are passed by address, which is looked up once."""

    def __init__(self, library: ctypes.CDLL, setting: Setting) -> None:
        self._setting = CSetting(**{field.name: getattr(setting, field.name) for field in fields(Setting)})
        self._width = int(library.forecast_size(ctypes.byref(self._setting)))
        if self._width != width(setting):
            raise ValueError(f"setting: the kernel does not take these sizes: {setting}")
        self._step: Callable[..., int] = library.forecast_step

    def __call__(
        self,
        state: Array,
        rows: NDArray[np.int64],
        values: Array,
        states: Array,
        extra: Array,
        out: tuple[Array, Array, Array, Array],
    ) -> int:
        """`rows` of `state` observe `values` (B, C). What was expected of them (B, C), forecast and bounds (B, C, H)
        go to `out`. How many rows were worked off: the kernel stops where a season has to be looked for."""
        count, setting = len(rows), self._setting
        columns, horizon = setting.columns, setting.horizon
        done = int(
            self._step(
                ctypes.byref(setting),
                address("state", state, np.float64, len(state), self._width),
                whole(len(state)),
                whole(self._width),
                address("rows", rows, np.int64, count),
                whole(count),
                address("values", values, np.float64, count, columns),
                address("states", states, np.float64, count, setting.states),
                address("extra", extra, np.float64, count, setting.extra),
                address("out", out[0], np.float64, count, columns),
                *(address("out", each, np.float64, count, columns, horizon) for each in out[1:]),
            )
        )
        if done < 0:
            reasons = ("", "sizes that do not fit", f"rows outside of 0 … {len(state) - 1}", "a broken count of rows")
            raise ValueError(f"forecast step: {reasons[-done]}")
        return done
