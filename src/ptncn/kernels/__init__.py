"""Compiled code, where it could be built. Whatever it does, PyTorch does as well if it is not there."""

from __future__ import annotations

import ctypes
import importlib.machinery
import os
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import pairwise
from pathlib import Path

import torch
from torch import Tensor

pointer, whole, real = ctypes.c_void_p, ctypes.c_int64, ctypes.c_double


class Matrix(ctypes.Structure):
    """Weights, and up to two moments of the same shape."""

    _fields_ = [(name, pointer) for name in ("weight", "first", "second")]


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
    """Move `weight` (from, to) and its moments against preᵀ post in one pass over them, on PyTorch's threads' number.

    The gradient is made a few rows at a time and never kept.
    """
    library = load()
    assert library is not None
    function = getattr(library, f"update_{str(weight.dtype).removeprefix('torch.')}")
    (rows, from_), to, size = pre.shape, weight.shape[1], weight.element_size()
    pre, post = pre.contiguous(), post.contiguous()
    threads = torch.get_num_threads() if weight.numel() > 1 << 16 else 1

    def part(start: int, end: int) -> None:
        held = (weight, first, second)
        matrix = Matrix(*(None if each is None else each.data_ptr() + start * to * size for each in held))
        function(
            ctypes.byref(rule),
            ctypes.byref(matrix),
            whole(end - start),
            whole(to),
            pointer(pre.data_ptr() + start * size),
            whole(from_),
            pointer(post.data_ptr()),
            whole(to),
            whole(rows),
            real(1.0),
        )

    bounds = [from_ * index // threads for index in range(threads + 1)]
    others = [_pool().submit(part, *ends) for ends in pairwise(bounds[1:])]
    part(*bounds[:2])
    for other in others:
        other.result()


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(thread_name_prefix="ptncn")
