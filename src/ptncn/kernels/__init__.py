"""Compiled code, where it could be built. Whatever it does, PyTorch does as well if it is not there."""

from __future__ import annotations

import ctypes
import importlib.machinery
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path

import torch
from torch import Tensor

pointer, whole, real = ctypes.c_void_p, ctypes.c_int64, ctypes.c_double


class Matrix(ctypes.Structure):
    """Weights, up to two moments of the same shape, and a queue of outer products."""

    _fields_ = [*((name, pointer) for name in ("weight", "first", "second", "pre", "post")), ("queued", whole)]


class Rule(ctypes.Structure):
    """How an optimiser moves weights."""

    _fields_ = [
        ("optimizer", whole),
        *((name, real) for name in ("keep", "rate", "momentum", "beta1", "beta2", "eps", "root")),
    ]


OPTIMIZERS = ("sgd", "momentum", "nesterov", "rmsprop", "adam")


@cache
def load() -> ctypes.CDLL | None:
    """The shared library, or None where there is none, or where `PTNCN_KERNEL=0` says to do without."""
    if os.environ.get("PTNCN_KERNEL", "1") == "0":
        return None
    for suffix in importlib.machinery.EXTENSION_SUFFIXES:
        path = Path(__file__).with_name(f"_step{suffix}")
        if path.is_file():
            return ctypes.CDLL(str(path))
    return None


def update(rule: Rule, weight: Tensor, first: Tensor | None, second: Tensor | None, pre: Tensor, post: Tensor) -> None:
    """Move `weight` (from, to) and its moments against preᵀ post, in one pass over them.

    The gradient is made a few rows at a time and never kept.
    """
    pre, post = pre.contiguous(), post.contiguous()
    matrix = Matrix(*(None if each is None else each.data_ptr() for each in (weight, first, second)))
    packed = post.new_empty(room(*post.shape))
    function("update", weight.dtype)(
        ctypes.byref(rule),
        ctypes.byref(matrix),
        *map(whole, weight.shape),
        pointer(pre.data_ptr()),
        whole(pre.shape[1]),
        pointer(post.data_ptr()),
        whole(post.shape[1]),
        whole(len(pre)),
        pointer(packed.data_ptr()),
        whole(torch.get_num_threads() if weight.numel() > 1 << 16 else 1),
    )


def room(rows: int, columns: int) -> int:
    """Numbers in a matrix that the kernel has packed: its columns come in tiles of up to 16."""
    return rows * (columns + 16)


@cache
def function(name: str, dtype: torch.dtype) -> Callable[..., None]:
    """The library's function of that name for numbers of a type, as this processor runs it best."""
    library = load()
    assert library is not None
    suffix = "_avx2" if library.has_avx2() else ""
    found: Callable[..., None] = getattr(library, f"{name}_{str(dtype).removeprefix('torch.')}{suffix}")
    return found
