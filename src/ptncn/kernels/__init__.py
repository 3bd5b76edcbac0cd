"""The compiled kernel, where it could be built. PyTorch does everything that it does, with the same numbers."""

from ptncn.kernels.bindings import KernelError, array, check, load, new, span, spans, structure
from ptncn.kernels.libraries import address, open_library
from ptncn.kernels.update import update

__all__ = [
    "KernelError",
    "address",
    "array",
    "check",
    "load",
    "new",
    "open_library",
    "span",
    "spans",
    "structure",
    "update",
]
