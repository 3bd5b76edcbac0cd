"""Arrays inside JSON: little-endian numbers, deflated, in base64."""

from __future__ import annotations

import base64
import binascii
import math
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

KINDS = {"float32": "<f4", "uint8": "|u1"}


def pack(array: NDArray[Any]) -> dict[str, Any]:
    """An array of float32 or uint8 as plain JSON values; any other numbers become float32.

    >>> packed = pack(np.array([[0.5, 1.0]]))
    >>> packed["dtype"], packed["shape"], unpack(packed).tolist()
    ('float32', [1, 2], [[0.5, 1.0]])
    """
    kind = "uint8" if array.dtype == np.uint8 else "float32"
    raw = np.ascontiguousarray(array, KINDS[kind]).tobytes()
    return {
        "dtype": kind,
        "shape": list(array.shape),
        "zlib": base64.b64encode(zlib.compress(raw, 9)).decode(),
    }


def unpack(packed: Mapping[str, Any]) -> NDArray[Any]:
    """The array that `pack` was given."""
    try:
        kind, shape = KINDS[packed["dtype"]], tuple(int(size) for size in packed["shape"])
        wanted = math.prod(shape) * np.dtype(kind).itemsize
        inflate = zlib.decompressobj()
        raw = inflate.decompress(base64.b64decode(packed["zlib"], validate=True), wanted + 1)
    except (KeyError, TypeError, ValueError, binascii.Error, zlib.error) as error:
        raise ValueError(f"not a packed array: {error!r}") from error
    if len(raw) != wanted:
        raise ValueError(f"a packed array of shape {shape} and {packed['dtype']} has another number of bytes")
    return np.frombuffer(raw, kind).reshape(shape)
