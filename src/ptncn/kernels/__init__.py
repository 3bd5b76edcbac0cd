"""The compiled kernel, where it could be built. PyTorch does everything that it does, with the same numbers."""

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
