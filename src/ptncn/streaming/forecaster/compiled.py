"""The forecaster's step in C, where it could be built; `reference` does the same without."""

from __future__ import annotations

import ctypes
import importlib.machinery
import os
from collections.abc import Callable
from dataclasses import fields
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import ptncn.kernels
from ptncn.streaming.forecaster.layout import Array, Setting, width

whole, pointer = ctypes.c_int64, ctypes.c_void_p


class CSetting(ctypes.Structure):
    """`Setting` as the kernel reads it."""

    _fields_ = [(field.name, whole if field.type == "int" else ctypes.c_double) for field in fields(Setting)]


@cache
def load_named(name: str) -> ctypes.CDLL | None:
    """A shared library of the kernels, or None where there is none, or where `PTNCN_KERNEL=0` says to do without."""
    if os.environ.get("PTNCN_KERNEL", "1") == "0":
        return None
    for suffix in importlib.machinery.EXTENSION_SUFFIXES:
        path = Path(ptncn.kernels.__file__).with_name(f"{name}{suffix}")
        if path.is_file():
            return ctypes.CDLL(str(path))
    return None


def load() -> ctypes.CDLL | None:
    """The forecaster's."""
    library = load_named("_forecast")
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
        shapes = (
            ("values", values, (count, setting.columns)),
            ("states", states, (count, setting.states)),
            ("extra", extra, (count, setting.extra)),
            ("out", out[0], (count, setting.columns)),
            *(("out", each, (count, setting.columns, setting.horizon)) for each in out[1:]),
        )
        for name, array, shape in shapes:
            if array.shape != shape or array.dtype != np.float64 or not array.flags.c_contiguous:
                raise ValueError(f"{name}: expected contiguous float64 {shape}, got {array.dtype} {array.shape}")
        if state.shape[1:] != (self._width,) or state.dtype != np.float64 or not state.flags.c_contiguous:
            raise ValueError(f"state: expected contiguous float64 (streams, {self._width}), got {state.shape}")
        if rows.dtype != np.int64 or not rows.flags.c_contiguous:
            raise ValueError(f"rows: expected contiguous int64, got {rows.dtype}")
        done = int(
            self._step(
                ctypes.byref(setting),
                pointer(state.ctypes.data),
                whole(len(state)),
                whole(self._width),
                pointer(rows.ctypes.data),
                whole(count),
                *(pointer(array.ctypes.data) for array in (values, states, extra, *out)),
            )
        )
        if done < 0:
            reasons = ("", "sizes that do not fit", f"rows outside of 0 … {len(state) - 1}", "a broken count of rows")
            raise ValueError(f"forecast step: {reasons[-done]}")
        return done
