"""The compiled kernel, if it was built. Without it, PyTorch computes the same results, up to rounding."""

from ptncn.kernels.bindings import (
    MOST_LAYERS,
    MOST_ROWS,
    MOST_UNITS,
    KernelError,
    address,
    array,
    check,
    load,
    multiply,
    new,
    open_library,
    span,
    spans,
    structure,
    threads,
    update,
)

__all__ = [
    "MOST_LAYERS",
    "MOST_ROWS",
    "MOST_UNITS",
    "KernelError",
    "address",
    "array",
    "check",
    "load",
    "multiply",
    "new",
    "open_library",
    "span",
    "spans",
    "structure",
    "threads",
    "update",
]
