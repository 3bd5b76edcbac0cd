"""The surprise of each row, and its values in scaled units; computed in C if the library was built."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ptncn.kernels import address, open_library
from ptncn.streaming.columns import Vector
from ptncn.streaming.storage import grow

MEMORY = 500.0
"""Memory of the usual error of a target, in rows."""
TRUST = 9.0
"""Squared errors are clipped at this multiple of the usual one."""
WARM_UP = 32
"""Rows that a stream needs before its surprises are comparable."""
INPUT_MEMORY = 2000.0
"""Memory of the scale of an input, in rows."""
LONG, SHARE = 5000.0, 1e-7
"""The usual squared error is at least this share of its mean over this many rows. Without this limit it would vanish in
a stream that is mostly zero."""
MOST = 1e8
"""Upper limit of a ratio of squared errors, reached for example at the first change in a constant stream."""
FAR = 6.0
"""Inputs are clipped at this many scales from their mean."""

Slots = NDArray[np.int64]
whole = ctypes.c_int64


class Surprises(NamedTuple):
    """(n, …) of n rows."""

    surprise: Vector
    """½ Σ e²/v over the targets, where v is the usual squared error of each; NaN if nothing was predicted or
    observed."""
    error: Vector
    """The mean of e²/v; NaN during the warm-up."""
    copied: Vector
    """The same for a prediction that copies the last value."""
    parts: Vector
    """(n, C) the contribution of each target to the surprise."""


class Gauge:
    """Usual errors and scales of C targets of many streams in slots. Rows of a slot are processed in order.

    Errors below a billionth of the values count as rounding, so a constant stream has no surprises. Scales never fall
    below a millionth of the level, and inputs are clipped at six scales.
    """

    def __init__(self, targets: int) -> None:
        self.targets = targets
        self.state = np.empty((0, 1 + 10 * targets))
        self._library = load()

    def resize(self, slots: int) -> None:
        before = len(self.state)
        grow(self.state, slots)
        for slot in range(before, slots):
            self.reset(slot)

    def reset(self, slot: int) -> None:
        C, row = self.targets, self.state[slot]
        row[:] = 0.0
        row[1 : 1 + C] = -1.0  # no usual error yet
        row[1 + C : 1 + 3 * C] = np.nan
        row[1 + 5 * C : 1 + 7 * C] = 1.0

    def judge(self, slots: Slots, values: Vector, predicted: Vector) -> Surprises:
        """Compare (n, C) values with their predictions, then update the usual errors."""
        out = np.empty((len(slots), 4 + self.targets))
        if self._library is None:
            for row in range(len(slots)):
                self._judge(int(slots[row]), values[row], predicted[row], out[row])
        else:
            targets = (len(slots), self.targets)
            self._call(
                self._library.gauge_judge,
                slots,
                address("values", values, np.float64, *targets),
                address("predicted", predicted, np.float64, *targets),
                address("out", out, np.float64, *out.shape),
            )
        settled = out[:, 3] > 0
        return Surprises(
            out[:, 0], np.where(settled, out[:, 1], np.nan), np.where(settled, out[:, 2], np.nan), out[:, 4:]
        )

    def scale(self, slots: Slots, values: Vector) -> NDArray[np.float32]:
        """(n, 2 C) changes since the last row, then levels, in scaled units; NaN if unknown."""
        inputs = np.empty((len(slots), 2 * self.targets), dtype=np.float32)
        if self._library is None:
            for row in range(len(slots)):
                self._scale(int(slots[row]), values[row], inputs[row])
        else:
            self._call(
                self._library.gauge_scale,
                slots,
                address("values", values, np.float64, len(slots), self.targets),
                address("inputs", inputs, np.float32, *inputs.shape),
            )
        return inputs

    def _call(self, function: Callable[..., int], slots: Slots, *addresses: ctypes.c_void_p) -> None:
        width = 1 + 10 * self.targets
        code = function(
            address("state", self.state, np.float64, len(self.state), width),
            whole(len(self.state)),
            whole(self.targets),
            address("slots", slots, np.int64, len(slots)),
            whole(len(slots)),
            *addresses,
        )
        if code:
            raise ValueError(f"slots: expected 0 to {len(self.state) - 1}, got {slots}")

    # The same in NumPy, without the library

    def _judge(self, slot: int, y: Vector, p: Vector, out: Vector) -> None:
        C, state = self.targets, self.state[slot]
        usual, last = state[1 : 1 + C], state[1 + C : 1 + 2 * C]
        square, copy = np.square(p - y), np.square(last - y)
        known = square == square
        number = int(known.sum())
        state[0] += number > 0
        rate = 1.0 / min(state[0] + 1.0, MEMORY)
        floor = np.square(1e-9 * np.fmax(np.abs(y), np.abs(last))) + 1e-200
        v = np.maximum(np.where(usual < 0.0, np.fmax(square, copy), usual), floor)
        ratio = np.where(known & (square > floor), np.minimum(square / v, MOST), 0.0)
        if number:
            out[0] = 0.5 * ratio.sum() * C / number
            out[1] = (square / v)[known].sum() / number
            out[2] = (copy / v)[known].sum() / number
            out[4:] = 0.5 * ratio
        else:
            out[:] = np.nan
        out[3] = number > 0 and state[0] > WARM_UP
        slow = state[1 + 9 * C :]
        slow[known] += (square - slow)[known] / min(state[0] + 1.0, LONG)
        moved = np.maximum(v + rate * (np.minimum(square, TRUST * v) - v), SHARE * slow)
        usual[:] = np.where(known, moved, usual)
        last[:] = np.where(y == y, y, last)

    def _scale(self, slot: int, y: Vector, inputs: NDArray[np.float32]) -> None:
        begin, width = 1 + 3 * self.targets, 2 * self.targets
        last = self.state[slot, begin - self.targets : begin]
        mean, scale, seen = (self.state[slot, begin + k * width : begin + (k + 1) * width] for k in range(3))
        values = np.concatenate((y - last, y))
        known = values == values
        off = np.clip((values - mean) / scale, -FAR, FAR)
        rate = 1.0 / np.minimum(seen + 1.0, INPUT_MEMORY)
        inputs[:] = np.where(seen < 1.0, np.where(known, 0.0, np.nan), off)
        moved = np.where(seen < 1.0, values, mean + rate * scale * off)
        grown = np.where(seen < 1.0, scale, scale * np.sqrt(1.0 + rate * (off * off - 1.0)))
        grown = np.where(seen <= 1.0, np.maximum(np.abs(values - mean), 1e-9 * np.abs(values) + 1e-100), grown)
        grown = np.maximum(grown, 1e-6 * np.abs(mean) + 1e-100)
        scale[:] = np.where(known, grown, scale)
        mean[:] = np.where(known, moved, mean)
        seen += known
        last[:] = np.where(y == y, y, last)


@cache
def load() -> ctypes.CDLL | None:
    """The gauge's library, or None: see `open_library`."""
    return open_library("_gauge", {"gauge_judge": whole, "gauge_scale": whole})
