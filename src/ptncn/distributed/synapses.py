"""Matrices whose products are divided among ranks, by rows or by columns: for the kernel, and for PyTorch."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ptncn.distributed.ranks import Ranks
from ptncn.updates import Synapses
from ptncn.updates.factors import multiply

BY_ROWS, BY_COLUMNS = 1, 2
"""Codes of `kernels/step.h`."""
_EXCHANGE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
_ARRIVE = ctypes.CFUNCTYPE(ctypes.c_int64)


class KernelSharing:
    """The kernel takes the step, computes this rank's part of each product, and calls this to exchange the other parts.

    Every rank computes everything else. An element of a product does not depend on the rank that computes it, so ranks
    have the same bits as one process.
    """

    def __init__(self, ranks: Ranks, split: str) -> None:
        self.ranks, self.by_columns = ranks, split == "units"
        self._failure: BaseException | None = None
        self._callbacks = _EXCHANGE(self._exchange), _ARRIVE(self._arrive)  # kept alive while the kernel uses them
        self._kind: Any = ctypes.c_float

    def fields(self, dtype: torch.dtype) -> dict[str, int]:
        self._kind = {torch.float32: ctypes.c_float, torch.float64: ctypes.c_double}[dtype]
        exchange, arrive = (ctypes.cast(callback, ctypes.c_void_p).value or 0 for callback in self._callbacks)
        split = BY_COLUMNS if self.by_columns else BY_ROWS
        place = {"split": split, "part": self.ranks.rank, "parts": self.ranks.size}
        return {**place, "exchange": exchange, "arrive": arrive}

    def raise_failure(self) -> None:
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    def _exchange(self, address: int, rows: int, to: int) -> None:
        memory = (self._kind * (rows * to)).from_address(address)
        whole = torch.from_numpy(np.ctypeslib.as_array(memory).reshape(rows, to))
        self._guarded(lambda: self.ranks.fill_columns(whole) if self.by_columns else self.ranks.fill_rows(whole))

    def _arrive(self) -> int:
        self._guarded(self.ranks.arrive)
        return int(self._failure is not None)

    def _guarded(self, work: Callable[[], None]) -> None:
        """An exception cannot pass through C; `raise_failure` raises it later."""
        if self._failure is None:
            try:
                work()
            except BaseException as error:
                self._failure = error


class ColumnSynapses(Synapses):
    """A whole matrix, of which only this rank's columns are up to date."""

    def __init__(self, weight: Tensor, ranks: Ranks) -> None:
        super().__init__(weight)
        self.ranks, self.columns = ranks, ranks.share(weight.shape[1])

    def row_norms(self) -> Tensor:
        own = torch.linalg.vector_norm(self.write()[:, self.columns], dim=1, keepdim=True)
        return self.ranks.add_up(own.square_()).sqrt_()

    def gathered(self, own: Tensor) -> Tensor:
        """(from, to) the columns of all ranks, of weights or moments."""
        whole = self.ranks.gather_columns(own[:, self.columns], own.shape[1])
        self.ranks.arrive()
        return whole


class _Shared(Synapses):
    """Matrices for steps in PyTorch."""

    whole = False

    def _product(self, x: Tensor, rows: int, onto: Tensor | None, scale: float) -> Tensor:
        """Like `send`, for some of `rows` rows."""
        if self.queued:
            return super().send(x, onto, scale)
        out = multiply(x if scale == 1.0 else x * scale, self.weight, rows)
        return out if onto is None else out.add_(onto)


class RowSynapses(_Shared):
    """Every rank has all weights, passes some rows of the batch through them, and learns from all rows."""

    def __init__(self, weight: Tensor, ranks: Ranks) -> None:
        super().__init__(weight)
        self.ranks = ranks

    def send(self, x: Tensor, onto: Tensor | None = None, scale: float = 1.0) -> Tensor:
        own = self._product(x[self.ranks.share(len(x))], len(x), onto, scale)
        return self.ranks.gather_rows(own, len(x))

    def arrive(self) -> None:
        self.ranks.arrive()


class UnitSynapses(_Shared):
    """Every rank has the weights to some of the units, and passes all rows to them."""

    def __init__(self, weight: Tensor, ranks: Ranks) -> None:
        self.ranks, self.units = ranks, weight.shape[1]
        self.columns = ranks.share(self.units)
        super().__init__(weight[:, self.columns].contiguous())

    @property
    def shape(self) -> tuple[int, int]:
        return self.weight.shape[0], self.units

    def send(self, x: Tensor, onto: Tensor | None = None, scale: float = 1.0) -> Tensor:
        own = self._product(x, len(x), None if onto is None else onto[:, self.columns], scale)
        return self.ranks.gather_columns(own, self.units)

    def arrive(self) -> None:
        self.ranks.arrive()

    def own(self, post: Tensor) -> Tensor:
        return post[:, self.columns]

    def back(self, signal: Tensor) -> Tensor:
        return self.ranks.add_up(super().back(self.own(signal)))

    def row_norms(self) -> Tensor:
        return self.ranks.add_up(super().row_norms().square_()).sqrt_()

    def postpones(self, rows: int, keep: float = 1.0) -> bool:
        """Never: a queue would have to be gathered for a checkpoint."""
        return False

    def gathered(self, own: Tensor) -> Tensor:
        """(from, to) of the columns of each rank."""
        gathered = self.ranks.gather_columns(own, self.units)
        self.ranks.arrive()
        return gathered
