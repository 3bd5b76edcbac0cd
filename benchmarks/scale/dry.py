"""Ranks that exchange nothing, to time the computation of one rank out of any number."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from ptncn import PTNCN
from ptncn.distributed import DataParallel, LayerParallel, Ranks
from ptncn.distributed.mesh import Message


class _NoMesh:
    def finish(self, messages: Iterable[Message]) -> None:
        pass


class DryRanks(Ranks):
    """Rank `rank` of `size`; what the others would send is what it would send itself.

    `log` has the exchanges: when something is sent, how many bytes to each other rank, and under which number; then
    when it is waited for, with 0 bytes.
    """

    def __init__(self, rank: int, size: int) -> None:
        self.group, self.rank, self.size, self.lost, self.sent = None, rank, size, False, 0
        self.log: list[tuple[float, int, int]] = []
        self.number = 0
        self._under_way = []
        self.mesh = _NoMesh()  # type: ignore[assignment]

    def note(self, size: int) -> int:
        """Something was sent; its number."""
        self.number += 1
        self.log.append((time.perf_counter(), size, self.number))
        return self.number

    def note_wait(self, number: int) -> None:
        self.log.append((time.perf_counter(), 0, number))

    def _exchange(self, own: Tensor, others: Mapping[int, Tensor], then: Callable[[], object] = lambda: None) -> None:
        self.note(own.nbytes)
        for place in others.values():
            place.view(-1)[: own.numel()] = own.reshape(-1)[: place.numel()]
        self._under_way.append(([], then))

    def arrive(self) -> None:
        if self._under_way:
            self.note_wait(self.number)
        super().arrive()

    def check_same(self, values: Any) -> None:
        pass


class DryNeighbours:
    """Zeros come from the ranks above and below."""

    def __init__(self, ranks: DryRanks) -> None:
        self.ranks = ranks

    def exchange(
        self,
        *,
        up: Sequence[Tensor] = (),
        down: Sequence[Tensor] = (),
        from_below: Sequence[int] = (),
        from_above: Sequence[int] = (),
        like: Tensor,
    ) -> Callable[[], tuple[list[Tensor], list[Tensor]]]:
        widths = [*from_below, *from_above]
        came = [[like.new_zeros(len(like), width) for width in side] for side in (from_below, from_above)]
        number = self.ranks.note(len(like) * max(widths, default=0) * like.element_size())

        def wait() -> tuple[list[Tensor], list[Tensor]]:
            self.ranks.note_wait(number)
            return came[0], came[1]

        return wait


def dry_step(net: PTNCN, kind: str, rank: int, size: int, rows: int) -> tuple[Callable[[Tensor], Any], DryRanks]:
    """A step of one rank's part of a network on the whole batch, and the ranks whose `log` it writes."""
    ranks = DryRanks(rank, size)
    if kind == "layers":
        layered = LayerParallel(net, ranks)
        layered.neighbours = DryNeighbours(ranks)  # type: ignore[assignment]
        state = layered.begin(rows)
        return lambda x: layered.step(x, state), ranks
    shared = DataParallel(net, ranks, split=kind)
    state = shared.begin(rows)
    own = shared.rows(rows)
    return lambda x: shared.step(x[own], state), ranks


def network(units: int, layers: int, inputs: int, **options: Any) -> PTNCN:
    torch.manual_seed(0)
    return PTNCN(inputs, [units] * layers, **{"preset": "best", **options})
