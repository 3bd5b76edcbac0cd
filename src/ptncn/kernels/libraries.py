"""Shared libraries of this package, and the check of the NumPy arrays whose addresses they are given."""

from __future__ import annotations

import ctypes
import importlib.machinery
import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray


def open_library(name: str, without: str = "Python does its work") -> ctypes.CDLL | None:
    """A library beside this file; None where it was not built or cannot be loaded, or where `PTNCN_KERNEL=0`.

    `without` says in the warning what happens without it. Callers cache the result.
    """
    if os.environ.get("PTNCN_KERNEL", "1") == "0":
        return None
    for suffix in importlib.machinery.EXTENSION_SUFFIXES:
        path = Path(__file__).with_name(f"{name}{suffix}")
        if path.is_file():
            try:
                return ctypes.CDLL(str(path))  # its calls release the interpreter lock
            except OSError as error:  # it needs a library that is missing
                warnings.warn(f"the compiled kernel cannot be loaded; {without}: {error}", stacklevel=3)
                return None
    return None


def address(name: str, array: NDArray[Any], dtype: DTypeLike, *shape: int) -> ctypes.c_void_p:
    """Where C finds an array of exactly this type and shape; the caller holds on to it during the call.

    >>> address("values", np.zeros((2, 3)), np.float64, 2, 4)
    Traceback (most recent call last):
    ValueError: values: expected contiguous float64 (2, 4), got float64 (2, 3)
    """
    if array.dtype != dtype or array.shape != shape or not array.flags.c_contiguous:
        raise ValueError(f"{name}: expected contiguous {np.dtype(dtype)} {shape}, got {array.dtype} {array.shape}")
    return ctypes.c_void_p(array.ctypes.data)
