"""Messages between ranks that hold neighbouring layers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
import torch.distributed as dist
from torch import Tensor

from ptncn.distributed.ranks import Ranks

UP, DOWN = 1, 2
"""Tags of messages to the rank above and below."""

Received = tuple[list[Tensor], list[Tensor]]
"""What came from the rank below, and what from the one above."""


class Neighbours:
    """The ranks that hold the layers below and above. Both ends make the same calls in the same order."""

    def __init__(self, ranks: Ranks) -> None:
        self.ranks = ranks
        self.below = ranks.rank - 1 if ranks.rank > 0 else None
        self.above = ranks.rank + 1 if ranks.rank + 1 < ranks.size else None

    def exchange(
        self,
        *,
        up: Sequence[Tensor] = (),
        down: Sequence[Tensor] = (),
        from_below: Sequence[int] = (),
        from_above: Sequence[int] = (),
        like: Tensor,
    ) -> Callable[[], Received]:
        """Send (B, n) activities both ways; the call returns those that come, of these widths, once they are there.

        Where there is no neighbour, nothing is sent to it and nothing comes.
        """
        work = [self._send(up, self.above, UP), self._send(down, self.below, DOWN)]
        lower, first = self._receive(from_below, self.below, UP, like)
        upper, second = self._receive(from_above, self.above, DOWN, like)

        def wait() -> Received:
            with self.ranks.reaching():
                for each in (*work, first, second):
                    if each is not None:
                        each[0].wait()
            return lower, upper

        return wait

    def _send(self, parts: Sequence[Tensor], to: int | None, tag: int) -> tuple[dist.Work, Tensor] | None:
        if to is None or not parts:
            return None
        message = torch.cat([part.reshape(-1) for part in parts])
        self.ranks.sent += message.nbytes
        work = dist.isend(message, group=self.ranks.group, group_dst=to, tag=tag)
        assert work is not None
        return work, message  # which has to stay until it was sent

    def _receive(
        self, widths: Sequence[int], source: int | None, tag: int, like: Tensor
    ) -> tuple[list[Tensor], tuple[dist.Work, Tensor] | None]:
        if source is None or not widths:
            return [], None
        rows = len(like)
        message = like.new_empty(rows * sum(widths))
        work = dist.irecv(message, group=self.ranks.group, group_src=source, tag=tag)
        assert work is not None
        parts = torch.split(message, [rows * width for width in widths])
        return [part.view(rows, width) for part, width in zip(parts, widths, strict=True)], (work, message)
