"""The interface to C: libraries, tensors, arrays and structures.

`step.h` is the single description of the interface. The library exports the fields of its structures as text, from
which the ctypes structures here are built, so the two cannot differ. Memory is passed only as spans, which `span` makes
from tensors after checking type, device and contiguity. Before it writes anything, C checks the count of each span
against what it will access, and every code against those it implements; a refused call raises `KernelError`.
"""

from __future__ import annotations

import ctypes
import os
import sys
import warnings
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import DTypeLike, NDArray
from torch import Tensor


def open_library(name: str, results: Mapping[str, Any], without: str = "Python is used instead") -> ctypes.CDLL | None:
    """A library next to this file; None if it was not built, cannot be loaded, or if `PTNCN_KERNEL=0`.

    `results` maps the functions that are called to their return types. `without` is the part of the warning that says
    what happens instead. Callers cache the result.
    """
    if os.environ.get("PTNCN_KERNEL", "1") == "0":
        return None
    path = library_path(name)
    if not path.is_file():
        return None
    try:
        library = ctypes.CDLL(str(path))  # calls through CDLL release the interpreter lock
        for function, result in results.items():
            getattr(library, function).restype = result
        return library
    except (OSError, AttributeError) as error:  # it needs a missing library, or comes from another version
        warnings.warn(f"the compiled kernel cannot be loaded; {without}: {error}", stacklevel=3)
        return None


def library_path(name: str) -> Path:
    """Where `setup.py` puts a library: next to this file, under a name that Python cannot import."""
    return Path(__file__).with_name(f"{name}.kernel{'.dll' if sys.platform == 'win32' else '.so'}")


def address(name: str, array: NDArray[Any], dtype: DTypeLike, *shape: int) -> ctypes.c_void_p:
    """The address of an array of exactly this type and shape; the caller keeps it alive during the call.

    >>> address("values", np.zeros((2, 3)), np.float64, 2, 4)
    Traceback (most recent call last):
    ValueError: values: expected contiguous float64 (2, 4), got float64 (2, 3)
    """
    if array.dtype != dtype or array.shape != shape or not array.flags.c_contiguous:
        raise ValueError(f"{name}: expected contiguous {np.dtype(dtype)} {shape}, got {array.dtype} {array.shape}")
    return ctypes.c_void_p(array.ctypes.data)


VERSION = 6
"""PTNCN_VERSION of the header that this package expects."""


class KernelError(ValueError):
    """The kernel refused a call; nothing was written."""


@cache
def load() -> ctypes.CDLL | None:
    """The shared library of the network's step, or None: see `open_library`."""
    texts = dict.fromkeys(("ptncn_layout", "ptncn_message"), ctypes.c_char_p)
    calls = dict.fromkeys(("ptncn_step", "ptncn_steps", "ptncn_update", "ptncn_multiply"), ctypes.c_int)
    library = open_library("_step", {**texts, **calls}, "steps run in PyTorch")
    if library is not None:
        library.ptncn_step.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
        library.ptncn_update.argtypes = [ctypes.c_void_p]
    return library


@cache
def structure(name: str) -> Any:
    """The ctypes structure with this name in `step.h`. A span `x` becomes the fields `x` and `x_count`."""
    library = load()
    assert library is not None
    layout = dict(part.split(":") for part in library.ptncn_layout().decode().split(";"))
    types = {"int64_t": ctypes.c_int64, "double": ctypes.c_double}
    types |= dict.fromkeys(("pointer", "Exchange", "Arrive"), ctypes.c_void_p)
    fields: list[tuple[str, Any]] = []
    for field in layout[name].rstrip(",").split(","):
        kind, own = field.split()
        if kind == "Span":
            fields += [(own, ctypes.c_void_p), (f"{own}_count", ctypes.c_int64)]
        else:
            fields.append((own, types[kind] if kind in types else structure(kind)))
    return type(name, (ctypes.Structure,), {"_fields_": fields})


def new(name: str, **fields: Any) -> Any:
    """A structure with its size, its version and these fields; all others are absent."""
    made = structure(name)
    return made(bytes=ctypes.sizeof(made), version=VERSION, **fields)


def span(tensor: Tensor, dtype: torch.dtype) -> tuple[int, int]:
    """Address and number of elements of memory that C may use; the caller keeps the tensor alive during the call."""
    usable = tensor.dtype is dtype and tensor.is_contiguous() and tensor.is_cpu and not tensor.is_neg()
    end = (tensor.storage_offset() + tensor.numel()) * tensor.element_size()
    if usable and tensor.untyped_storage().nbytes() < end:
        raise KernelError(f"expected memory of {end} bytes, got a tensor whose storage was made smaller than that")
    if not usable:
        raise KernelError(
            f"expected a contiguous {dtype} tensor on the CPU, got {tensor.dtype} on {tensor.device} "
            f"with shape {tuple(tensor.shape)} and strides {tensor.stride()}"
        )
    return tensor.data_ptr(), tensor.numel()


def spans(dtype: torch.dtype, **tensors: Tensor | None) -> dict[str, int]:
    """Fields of a structure for several tensors; those that are None are left out."""
    fields = {}
    for name, tensor in tensors.items():
        if tensor is not None:
            fields[name], fields[f"{name}_count"] = span(tensor, dtype)
    return fields


def array(kind: Any, values: list[Any]) -> tuple[Any, int, int]:
    """A ctypes array, which the caller keeps alive, its address, and its length."""
    made = (kind * len(values))(*values)
    return made, ctypes.addressof(made), len(values)


def check(function: str, code: int) -> None:
    """Raise `KernelError` for the code of a refusal."""
    if code:
        library = load()
        assert library is not None
        raise KernelError(f"{function}: {library.ptncn_message(code).decode()}")


LARGE = 1 << 16
"""Number of elements from which a matrix is worth several threads."""

MOST_LAYERS, MOST_UNITS, MOST_ROWS, MOST_THREADS = 1 << 10, 1 << 26, 1 << 22, 1 << 10
"""Limits of `check.h`; PyTorch handles anything beyond them."""


_forked = False


def _note_fork() -> None:
    global _forked
    _forked = True


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_note_fork)


def threads() -> int:
    """How many threads a call may use: one after a fork, as OpenMP would wait for threads that only the parent has."""
    return 1 if _forked else min(torch.get_num_threads(), MOST_THREADS)


def update(rule: Any, weight: Tensor, first: Tensor | None, second: Tensor | None, pre: Tensor, post: Tensor) -> None:
    """Step `weight` (from, to) and its moments against preᵀ post, in one pass.

    The gradient is computed a few rows at a time and never stored.
    """
    library = load()
    assert library is not None
    dtype, (rows, width) = weight.dtype, pre.shape
    pre, post = pre.contiguous(), post.contiguous()
    if (width, post.shape[1]) != tuple(weight.shape) or len(post) != rows:
        raise ValueError(
            f"factors: expected an update of {tuple(weight.shape)}, got {tuple(pre.shape)} and {tuple(post.shape)}"
        )
    arguments = new(
        "Update",
        real_bytes=weight.element_size(),
        **{"from": weight.shape[0], "to": weight.shape[1]},
        rows=rows,
        threads=threads() if weight.numel() >= LARGE else 1,
        matrix=structure("Matrix")(**spans(dtype, weight=weight, first=first, second=second)),
        rule=rule,
        **spans(dtype, pre=pre, post=post),
    )
    check("update", library.ptncn_update(ctypes.byref(arguments)))


def multiply(x: Tensor, weight: Tensor) -> Tensor:
    """x W, (rows, to) from (rows, from) and (from, to): faster than BLAS if x has a few dozen rows."""
    library = load()
    if library is None or not weight.is_cpu or len(x) > MOST_ROWS:
        return x @ weight
    x, (rows, width) = x.contiguous(), x.shape
    if width != len(weight):
        raise ValueError(f"x: expected {len(weight)} columns, got {width}")
    out = x.new_empty(rows, weight.shape[1])
    arguments = new(
        "Product",
        real_bytes=weight.element_size(),
        **{"from": weight.shape[0], "to": weight.shape[1]},
        rows=rows,
        threads=threads() if weight.numel() >= LARGE else 1,
        **spans(weight.dtype, x=x, weight=weight, out=out),
    )
    check("multiply", library.ptncn_multiply(ctypes.byref(arguments)))
    return out
