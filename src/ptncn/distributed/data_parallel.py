"""Data parallelism on factors: ranks exchange activities (B·n numbers), never gradients (n²).

A step of the network consists mostly of a few products of activities with weights, which the ranks divide. Each rank
gathers the results, so that all of them have the drives, predictions and errors of the whole batch. These include the
factors of every update, so each rank takes the same step as a single process. Every rank computes everything else.

If the kernel supports the rules, it takes the step and calls back for exchanges (`KernelSharing`); the ranks then have
the same bits as one process. Otherwise PyTorch takes the step, with products from the synapses below, and the results
are equal up to rounding.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ptncn.distributed.ranks import Ranks, RanksError
from ptncn.learner import check_mask
from ptncn.network.ptncn import PTNCN
from ptncn.network.state import PTNCNState, PTNCNStep
from ptncn.updates import Synapses
from ptncn.updates.factors import multiply

SPLITS = ("rows", "units")
BY_ROWS, BY_COLUMNS = 1, 2
"""Codes of `kernels/step.h`."""
_EXCHANGE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
_ARRIVE = ctypes.CFUNCTYPE(ctypes.c_int64)


class DataParallel:
    """A P-TNCN that learns from the rows of all ranks, as one process would from the whole batch.

    Arguments:
        net: the same network on all ranks; from now on, use it only through this object.
        ranks: the ranks that share it; by default all of the process group.
        split: "rows": a rank passes its own rows through all weights, and updates all weights from all rows. "units": a
            rank passes all rows to its share of the units of each layer, and updates only the weights into those units.
            Each rank then does 1/N of the work, with the same amount of communication.
        whole: `step` gets the whole batch on every rank instead of the rank's own rows.

    States, predictions and errors are those of the whole batch.
    """

    registry_name = PTNCN.registry_name

    def __init__(self, net: PTNCN, ranks: Ranks | None = None, *, split: str = "units", whole: bool = False) -> None:
        if split not in SPLITS:
            raise ValueError(f"split={split!r}: choose one of: {', '.join(SPLITS)}")
        self.net, self.ranks = net, ranks or Ranks()
        self.split, self.whole = split, whole
        self.input_size, self.output = net.input_size, net.output
        self.ranks.check_same(describe(net) | {"split": split, "whole": str(whole)})
        net.share(self._make_columns, KernelSharing(self.ranks, split))
        self.compiled = net.is_compiled
        if not self.compiled:
            net.share(self._make_synapses)
            self._divide_moments()

    def rows(self, batch_size: int) -> slice:
        """The rows of a batch that this rank passes to `step`."""
        return slice(0, batch_size) if self.whole else self.ranks.share(batch_size)

    def begin(self, batch_size: int) -> PTNCNState:
        """A state for `batch_size` new sequences, counted over all ranks."""
        return self.net.begin(batch_size)

    def step(self, x: Tensor, state: PTNCNState, *, learn: bool = True, mask: Tensor | None = None) -> PTNCNStep:
        """Like the network's `step`; `x` and `mask` have this rank's rows, the result has those of all ranks."""
        if not self.whole:
            x, mask = self._gather(x, state, mask)
        if self.compiled and not state.is_contiguous():
            raise ValueError("state: expected what begin() returned, got one that was sliced")
        return self.net.step(x, state, learn=learn, mask=mask)

    def end(self, state: PTNCNState) -> None:
        self.net.end(state)

    def predict(self, state: PTNCNState) -> Tensor:
        return self.net.predict(state)

    def dream(self, state: PTNCNState, steps: int, *, sample: bool = False) -> Tensor:
        """Like the network's."""
        whole, self.whole = self.whole, True
        try:
            return self.net.dream(state, steps, sample=sample)
        finally:
            self.whole = whole

    @property
    def lr(self) -> float:
        return self.net.lr

    @lr.setter
    def lr(self, value: float) -> None:
        self.net.lr = value

    # Checkpoints are those of the network

    def options(self) -> dict[str, Any]:
        return self.net.options()

    def snapshot(self) -> dict[str, Any]:
        """The snapshot of the whole network; all ranks must call this."""
        tree = self.net.snapshot()
        for name, part in self._divided().items():
            tree["weights"][name] = part.gathered(part.weight)
            if not self.compiled:
                tree["postponed"][name] = tuple(part.weight.new_empty(0, width) for width in part.shape)
            moments = tree["learning"]["moments"]
            for key in self._divided_moments(name):
                moments[key] = part.gathered(moments[key])
        return tree

    def restore(self, tree: Mapping[str, Any]) -> None:
        """Restore a snapshot of the network, made by any number of ranks."""
        if self.compiled:
            self.net.restore(tree)
            return
        weights, queues = dict(tree["weights"]), dict(tree["postponed"])
        moments = dict(tree["learning"]["moments"])
        for name, part in self._divided().items():
            pre, post = queues[name]
            weights[name] = weights[name] + pre.T @ post
            queues[name] = pre[:0], part.own(post[:0])
            for key in self._divided_moments(name):
                moments[key] = part.own(moments[key])
        learning = {**tree["learning"], "moments": moments}
        self.net.restore({**tree, "weights": weights, "postponed": queues, "learning": learning})

    # Inside

    def _gather(self, x: Tensor, state: PTNCNState, mask: Tensor | None) -> tuple[Tensor, Tensor | None]:
        batch_size, own = state.batch_size, self.ranks.share(state.batch_size)
        like = state.corrected
        x = torch.as_tensor(x, dtype=like.dtype, device=like.device)
        if x.shape != (own.stop - own.start, self.input_size):
            raise ValueError(
                f"observation: expected the {own.stop - own.start} rows of rank {self.ranks.rank}, "
                f"{self.input_size} numbers each, got shape {tuple(x.shape)}"
            )
        mask = check_mask(mask, len(x), like.device)
        everything = x if mask is None else torch.cat([x, mask[:, None].to(x)], 1)
        gathered = self.ranks.gather_rows(everything, batch_size)
        self.ranks.arrive()
        return (gathered, None) if mask is None else (gathered[:, :-1], gathered[:, -1].bool())

    def _make_columns(self, name: str, weight: Tensor) -> Synapses:
        """The synapses of a weight for the kernel, which divides only the products with R, W and E."""
        divided = self.split == "units" and name[0] in "RWE"
        return ColumnSynapses(weight, self.ranks) if divided else Synapses(weight)

    def _make_synapses(self, name: str, weight: Tensor) -> Synapses:
        """The synapses of a weight for steps in PyTorch."""
        if self.split == "rows":
            return RowSynapses(weight, self.ranks)
        if self.net.readout is not None and name in ("W1", "E1"):  # least squares changes all of them at once
            return Synapses(weight)
        return UnitSynapses(weight, self.ranks)

    def _divided(self) -> dict[str, Any]:
        """The matrices for which this rank has, or keeps up to date, only some columns."""
        parts = {name: part for layer in self.net.layers for name, part in layer.synapses().items()}
        return {name: part for name, part in parts.items() if isinstance(part, UnitSynapses | ColumnSynapses)}

    def _divided_moments(self, name: str) -> list[str]:
        """The moments with the shape of the weights; those of Adafactor are smaller, and every rank has all of them."""
        optimizer = self.net.learning.optimizer
        named = {f"{name}_{moment}" for moment in optimizer.moments}
        return [key for key, value in optimizer.named_buffers() if key in named and value.dim() == 2]

    def _divide_moments(self) -> None:
        optimizer = self.net.learning.optimizer
        for name, part in self._divided().items():
            for key in self._divided_moments(name):
                setattr(optimizer, key, part.own(getattr(optimizer, key)).contiguous())


def describe(net: PTNCN) -> dict[str, str]:
    """Values that must be equal on all ranks."""
    from ptncn import __version__

    weights = hashlib.sha256()
    for _, weight in sorted(net.state_dict().items()):
        weights.update(weight.cpu().contiguous().numpy().tobytes())
    options = json.dumps(net.options(), sort_keys=True, default=str)
    return {
        "version of ptncn": __version__,
        "version of torch": torch.__version__,
        "options of the network": hashlib.sha256(options.encode()).hexdigest()[:12],
        "weights": weights.hexdigest()[:12],
    }


__all__ = ["DataParallel", "RanksError", "describe"]


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
