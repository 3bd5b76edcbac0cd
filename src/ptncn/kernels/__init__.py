"""The compiled kernel, where it could be built. PyTorch does everything that it does, with the same numbers."""

from ptncn.kernels.bindings import KernelError, array, check, load, new, span, spans, structure
from ptncn.kernels.update import update

__all__ = ["KernelError", "array", "check", "load", "new", "span", "spans", "structure", "update"]
