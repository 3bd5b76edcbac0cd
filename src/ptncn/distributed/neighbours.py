"""Messages between ranks with neighbouring layers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from ptncn.distributed.mesh import Message
from ptncn.distributed.ranks import Ranks

Received = tuple[list[Tensor], list[Tensor]]
"""The messages received from the ranks below and above."""


class Neighbours:
    """The ranks with the layers below and above. Both ends make the same calls in the same order."""

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
        sent = [*self._send(up, self.above), *self._send(down, self.below)]
        lower, first = self._receive(from_below, self.below, like)
        upper, second = self._receive(from_above, self.above, like)
        with self.ranks.reaching():
            self.ranks.mesh.move()

        def wait() -> Received:
            with self.ranks.reaching():
                self.ranks.mesh.finish([*sent, *first, *second])
            return lower, upper

        return wait

    def _send(self, parts: Sequence[Tensor], to: int | None) -> list[Message]:
        if to is None or not parts:
            return []
        whole = torch.cat([part.reshape(-1) for part in parts])
        self.ranks.sent += whole.nbytes
        return [self.ranks.mesh.send(to, whole)]

    def _receive(self, widths: Sequence[int], source: int | None, like: Tensor) -> tuple[list[Tensor], list[Message]]:
        if source is None or not widths:
            return [], []
        rows = len(like)
        whole = like.new_empty(rows * sum(widths))
        parts = torch.split(whole, [rows * width for width in widths])
        coming = [self.ranks.mesh.receive(source, whole)]
        return [part.view(rows, width) for part, width in zip(parts, widths, strict=True)], coming
