"""Ranks that exchange nothing, to time the computation of one rank out of any number of ranks."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from statistics import median
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
    """Rank `rank` of `size`. Instead of the other ranks' data it uses its own.

    `log` records the times at which messages would be sent and waited for, as operations of `simulate.py`.
    """

    def __init__(self, rank: int, size: int) -> None:
        self.group, self.rank, self.size, self.lost, self.sent = None, rank, size, False, 0
        self.log: list[tuple[float, list[Any]]] = []
        self.number = 0
        self._awaited: list[list[int]] = []
        self._under_way = []
        self.mesh = _NoMesh()  # type: ignore[assignment]

    def note_sent(self, sizes: Mapping[int, int]) -> int:
        """Record a message to each of these ranks, given its bytes; return the number of the messages."""
        self.number += 1
        self.log.append((time.perf_counter(), ["send", self.number, [[peer, size] for peer, size in sizes.items()]]))
        return self.number

    def note_wait(self, messages: list[list[int]]) -> None:
        self.log.append((time.perf_counter(), ["wait", messages]))

    def _exchange(self, own: Tensor, others: Mapping[int, Tensor], then: Callable[[], object] = lambda: None) -> None:
        number = self.note_sent(dict.fromkeys(others, own.nbytes))
        self._awaited += [[peer, number] for peer in others]
        for place in others.values():
            place.view(-1)[: own.numel()] = own.reshape(-1)[: place.numel()]
        self._under_way.append(([], then))

    def arrive(self) -> None:
        if self._awaited:
            self.note_wait(self._awaited)
            self._awaited = []
        super().arrive()

    def check_same(self, values: Any) -> None:
        pass

    def program(self, step: Callable[[Tensor], Any], frames: Tensor) -> list[list[Any]]:
        """The operations of a step, each with its median duration over these frames."""
        seconds: list[list[float]] = []
        for x in frames:
            self.number = 0
            self.log.clear()
            before = time.perf_counter()
            step(x)
            moments = [before, *(at for at, _ in self.log), time.perf_counter()]
            seconds.append([after - before for before, after in pairwise(moments)])
        first, *rest = ([["compute", median(taken)]] for taken in zip(*seconds, strict=True))
        return first + [
            operation for (_, what), after in zip(self.log, rest, strict=True) for operation in (what, *after)
        ]


class DryNeighbours:
    """The ranks above and below are replaced by zeros."""

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
        ranks, rows = self.ranks, len(like)
        above, below = ranks.rank + 1, ranks.rank - 1
        sizes = {above: sum(part.nbytes for part in up)} if above < ranks.size and up else {}
        sizes |= {below: sum(part.nbytes for part in down)} if below >= 0 and down else {}
        number = ranks.note_sent(sizes)
        awaited = [[peer, number] for peer, widths in ((below, from_below), (above, from_above)) if widths]
        received = [[like.new_zeros(rows, width) for width in side] for side in (from_below, from_above)]

        def wait() -> tuple[list[Tensor], list[Tensor]]:
            ranks.note_wait(awaited)
            return received[0], received[1]

        return wait


def dry_step(net: PTNCN, kind: str, rank: int, size: int, rows: int) -> tuple[Callable[[Tensor], Any], DryRanks]:
    """A step of one rank's part of a network on the whole batch, and the ranks, which contain its `log`."""
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
