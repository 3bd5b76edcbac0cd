"""Matrices whose products are divided among ranks, by rows or by columns."""

from __future__ import annotations

from torch import Tensor

from ptncn import kernels
from ptncn.distributed.ranks import Ranks
from ptncn.updates import Synapses


class _Shared(Synapses):
    """Matrices whose products are made by the kernel, which is faster than BLAS at the few rows of a batch."""

    def _product(self, x: Tensor, onto: Tensor | None, scale: float) -> Tensor:
        if self.queued or 0 in (*x.shape, *self.weight.shape):
            return super().send(x, onto, scale)
        out = kernels.multiply(x if scale == 1.0 else x * scale, self.weight)
        return out if onto is None else out.add_(onto)


class RowSynapses(_Shared):
    """Every rank has all the weights, sends some rows of the batch through them, and learns from all rows."""

    def __init__(self, weight: Tensor, ranks: Ranks) -> None:
        super().__init__(weight)
        self.ranks = ranks

    def send(self, x: Tensor, onto: Tensor | None = None, scale: float = 1.0) -> Tensor:
        own = self._product(x[self.ranks.share(len(x))], onto, scale)
        return self.ranks.gather_rows(own, len(x))

    def arrive(self) -> None:
        self.ranks.arrive()


class UnitSynapses(_Shared):
    """Every rank has the weights to some of the units, sends all rows to those, and learns what they receive."""

    def __init__(self, weight: Tensor, ranks: Ranks) -> None:
        self.ranks, self.units = ranks, weight.shape[1]
        self.columns = ranks.share(self.units)
        super().__init__(weight[:, self.columns].contiguous())

    @property
    def shape(self) -> tuple[int, int]:
        return self.weight.shape[0], self.units

    def send(self, x: Tensor, onto: Tensor | None = None, scale: float = 1.0) -> Tensor:
        own = self._product(x, None if onto is None else onto[:, self.columns], scale)
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

    def whole(self, own: Tensor) -> Tensor:
        """(from, to) of the columns that each rank has."""
        gathered = self.ranks.gather_columns(own, self.units)
        self.ranks.arrive()
        return gathered
