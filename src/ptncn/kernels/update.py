"""One step of an optimiser in C, for steps of the network that run in PyTorch."""

from __future__ import annotations

import ctypes
from typing import Any

import torch
from torch import Tensor

from ptncn.kernels.bindings import check, load, new, spans, structure

LARGE = 1 << 16
"""Weights that are worth waking threads for."""


def update(rule: Any, weight: Tensor, first: Tensor | None, second: Tensor | None, pre: Tensor, post: Tensor) -> None:
    """Move `weight` (from, to) and its moments against preᵀ post, in one pass over them.

    The gradient is made a few rows at a time and never kept.
    """
    library = load()
    assert library is not None
    dtype, (rows, width) = weight.dtype, pre.shape
    pre, post = pre.contiguous(), post.contiguous()
    if (width, post.shape[1]) != tuple(weight.shape) or len(post) != rows:
        raise ValueError(f"the factors {tuple(pre.shape)} and {tuple(post.shape)} are no update of {weight.shape}")
    arguments = new(
        "Update",
        real_bytes=weight.element_size(),
        **{"from": weight.shape[0], "to": weight.shape[1]},
        rows=rows,
        threads=torch.get_num_threads() if weight.numel() >= LARGE else 1,
        matrix=structure("Matrix")(**spans(dtype, weight=weight, first=first, second=second)),
        rule=rule,
        **spans(dtype, pre=pre, post=post),
    )
    check("update", library.ptncn_update(ctypes.byref(arguments)))
