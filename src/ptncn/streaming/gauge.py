"""How surprising rows are, and their values in scaled units; in C where it was built."""

from __future__ import annotations

import ctypes
import importlib.machinery
import os
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

import ptncn.kernels
from ptncn.streaming.columns import Vector

MEMORY = 500.0
"""Rows over which the usual error of a target is measured."""
TRUST = 9.0
"""A square error of more than so many usual ones counts as so many."""
WARM_UP = 32
"""Rows of a stream before its surprises are compared."""
INPUT_MEMORY = 2000.0
"""Rows over which the scale of an input is measured."""
FAR = 6.0
"""No input is farther than this many scales from its mean."""

Slots = NDArray[np.int64]
whole, pointer = ctypes.c_int64, ctypes.c_void_p


class Reading(NamedTuple):
    """(B, …) of B rows."""

    surprise: Vector
    """½ Σ e²/v over the targets, v the usual square error of each; NaN where nothing was expected or observed."""
    error: Vector
    """The mean of e²/v."""
    copied: Vector
    """The same for the last value as prediction."""
    settled: NDArray[np.bool_]
    """Whether enough was seen to compare the surprise with others."""
    parts: Vector
    """(B, C) of each target in the surprise."""
    inputs: NDArray[np.float32]
    """(B, 2 C) changes since the last row, then levels, in scaled units; NaN where they are not known."""

    def take(self, rows: NDArray[np.bool_]) -> Reading:
        """Some of the rows."""
        return Reading(
            self.surprise[rows],
            self.error[rows],
            self.copied[rows],
            self.settled[rows],
            self.parts[rows],
            self.inputs[rows],
        )


class Gauge:
    """What is usual for C targets of many streams in slots.

    Errors below a billionth of the values are rounding and no surprise; so a constant stream has no surprises.
    Scales never fall below a millionth of the level, and what lies far off counts as six scales off.
    """

    def __init__(self, targets: int) -> None:
        self.targets = targets
        self.state = np.empty((0, 1 + 8 * targets))
        self._library = _load()

    def resize(self, slots: int) -> None:
        blank = np.zeros((slots - len(self.state), self.state.shape[1]))
        self.state = np.ascontiguousarray(np.append(self.state, blank, axis=0))
        for slot in range(slots - len(blank), slots):
            self.reset(slot)

    def reset(self, slot: int) -> None:
        C, row = self.targets, self.state[slot]
        row[:] = 0.0
        row[1 : 1 + C] = -1.0  # no usual error yet
        row[1 + C : 1 + 2 * C] = np.nan
        row[1 + 4 * C : 1 + 6 * C] = 1.0

    @property
    def last(self) -> Vector:
        """(slots, C) the last values; predictions stand in for missing ones."""
        last: Vector = self.state[:, 1 + self.targets : 1 + 2 * self.targets]
        return last

    def observe(self, slots: Slots, values: Vector, predicted: Vector) -> Reading:
        """Compare (B, C) values with what was predicted, then learn from them."""
        C, count = self.targets, len(slots)
        inputs = np.empty((count, 2 * C), dtype=np.float32)
        out = np.empty((count, 4 + C))
        if self._library is None:
            self._observe(slots, values, predicted, inputs, out)
        else:
            values, predicted = np.ascontiguousarray(values), np.ascontiguousarray(predicted)
            wrong = self._library.gauge_observe(
                *(pointer(self.state.ctypes.data), whole(len(self.state)), whole(C)),
                *(pointer(slots.ctypes.data), whole(count)),
                *(pointer(array.ctypes.data) for array in (values, predicted, inputs, out)),
            )
            if wrong:
                raise ValueError(f"slots: expected 0 to {len(self.state) - 1}, got {slots}")
        return Reading(out[:, 0], out[:, 1], out[:, 2], out[:, 3] > 0, out[:, 4:], inputs)

    def _observe(self, slots: Slots, y: Vector, p: Vector, inputs: NDArray[np.float32], out: Vector) -> None:
        """The same as in C."""
        C, state = self.targets, self.state[slots]
        usual, last = state[:, 1 : 1 + C], state[:, 1 + C : 1 + 2 * C]
        square, copy = np.square(p - y), np.square(last - y)
        known = square == square
        number = known.sum(1)
        state[:, 0] += number > 0
        rate = 1.0 / np.minimum(state[:, :1] + 1.0, MEMORY)
        floor = np.square(1e-9 * np.fmax(np.abs(y), np.abs(last))) + 1e-200
        v = np.maximum(np.where(usual < 0.0, np.fmax(square, copy), usual), floor)
        ratio = np.where(known & (square > floor), square / v, 0.0)
        some = np.maximum(number, 1)
        out[:, 0] = np.where(number > 0, 0.5 * ratio.sum(1) * C / some, np.nan)
        out[:, 1] = np.where(number > 0, np.where(known, square / v, 0.0).sum(1) / some, np.nan)
        out[:, 2] = np.where(number > 0, np.where(known, copy / v, 0.0).sum(1) / some, np.nan)
        out[:, 3] = (number > 0) & (state[:, 0] > WARM_UP)
        out[:, 4:] = np.where((number > 0)[:, None], 0.5 * ratio, np.nan)
        state[:, 1 : 1 + C] = np.where(known, v + rate * (np.minimum(square, TRUST * v) - v), usual)
        self._scale(np.concatenate((y - last, y), axis=1), state, inputs)
        stand_in = (last == last) & (p == p)
        state[:, 1 + C : 1 + 2 * C] = np.where(y == y, y, np.where(stand_in, p, last))
        self.state[slots] = state

    def _scale(self, given: Vector, state: Vector, inputs: NDArray[np.float32]) -> None:
        begin, width = 1 + 2 * self.targets, 2 * self.targets
        mean, scale, seen = (state[:, begin + k * width : begin + (k + 1) * width] for k in range(3))
        known = given == given
        off = np.clip((given - mean) / scale, -FAR, FAR)
        rate = 1.0 / np.minimum(seen + 1.0, INPUT_MEMORY)
        inputs[:] = np.where(seen < 1.0, np.where(known, 0.0, np.nan), off)
        moved = np.where(seen < 1.0, given, mean + rate * scale * off)
        grown = np.where(seen < 1.0, scale, scale * np.sqrt(1.0 + rate * (off * off - 1.0)))
        grown = np.where(seen <= 1.0, np.maximum(np.abs(given - mean), 1e-9 * np.abs(given) + 1e-100), grown)
        grown = np.maximum(grown, 1e-6 * np.abs(mean) + 1e-100)
        scale[:] = np.where(known, grown, scale)
        mean[:] = np.where(known, moved, mean)
        seen += known


@cache
def _load() -> ctypes.CDLL | None:
    if os.environ.get("PTNCN_KERNEL", "1") == "0":
        return None
    for suffix in importlib.machinery.EXTENSION_SUFFIXES:
        path = Path(ptncn.kernels.__file__).with_name(f"_gauge{suffix}")
        if path.is_file():
            library = ctypes.CDLL(str(path))
            library.gauge_observe.restype = ctypes.c_int64
            return library
    return None
