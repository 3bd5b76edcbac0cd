"""The compiled kernel, if it was built. PyTorch computes the same without it, up to rounding."""

from ptncn.kernels.bindings import (
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
    update,
)

__all__ = [
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
    "update",
]
