"""The processes that share a network, and their messages."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import Tensor
from torch.nn.functional import pad

from ptncn.distributed.mesh import Mesh, Message
from ptncn.system import one_line

WORD = 64
"""Compared bytes of a value."""
PATIENCE = timedelta(minutes=5)
"""Time after which a rank considers the others lost."""


class RanksError(ValueError):
    """The ranks are inconsistent, or cannot reach each other."""


@contextmanager
def connect(timeout: timedelta = PATIENCE) -> Iterator[Ranks]:
    """Join the ranks that `torchrun` started, or form a group of one."""
    if "RANK" not in os.environ:
        os.environ |= {"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "0"}
    address = f"{os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}"
    try:
        dist.init_process_group("gloo", timeout=timeout)
    except (dist.DistError, RuntimeError, ValueError) as error:
        raise RanksError(f"ranks: cannot connect at {address}: {one_line(error)}") from error
    ranks = None
    try:
        ranks = Ranks(timeout=timeout)
        yield ranks
    finally:
        if ranks is not None:
            ranks.mesh.close()
        dist.destroy_process_group()


class Ranks:
    """The ranks of a process group. All of them make the same calls in the same order."""

    def __init__(self, group: dist.ProcessGroup | None = None, timeout: timedelta = PATIENCE) -> None:
        if not dist.is_initialized():
            raise RanksError("ranks: expected a process group; use ptncn.distributed.connect(), or torchrun")
        self.group = group
        self.rank, self.size = dist.get_rank(group), dist.get_world_size(group)
        self.lost = False
        """Whether another rank could not be reached."""
        self.sent = 0
        """Bytes that this rank has sent."""
        self._under_way: list[tuple[list[Message], Callable[[], object]]] = []
        with self.reaching():
            self.mesh = Mesh(group, timeout.total_seconds())

    @contextmanager
    def reaching(self) -> Iterator[None]:
        """Guards an exchange: if it fails, the other ranks are lost."""
        try:
            yield
        except (RuntimeError, OSError) as error:
            self.lost = True
            raise RanksError(f"rank {self.rank} lost another rank: {one_line(error)}") from error

    @property
    def peers(self) -> list[int]:
        """The other ranks."""
        return [peer for peer in range(self.size) if peer != self.rank]

    def share(self, count: int, rank: int | None = None) -> slice:
        """The rows or units of this or another rank out of `count`, divided evenly except for the last rank."""
        each, rank = -(-count // self.size), self.rank if rank is None else rank
        return slice(min(rank * each, count), min((rank + 1) * each, count))

    def gather_rows(self, own: Tensor, count: int) -> Tensor:
        """(count, n) the rows of all ranks, in the order of ranks; complete after `arrive`."""
        each = -(-count // self.size)
        whole = own.new_empty(each * self.size, *own.shape[1:])
        self._gather(whole, _padded(own, each))
        return whole[:count]

    def gather_columns(self, own: Tensor, count: int) -> Tensor:
        """(B, count) the columns of all ranks; complete after `arrive`."""
        each, rows = -(-count // self.size), len(own)
        blocks = own.new_empty(self.size, rows, each)
        whole = own.new_empty(rows, count)

        def place() -> None:
            for rank, block in enumerate(blocks):
                part = whole[:, rank * each : (rank + 1) * each]
                part.copy_(block[:, : part.shape[1]])

        own = own.contiguous() if own.shape[1] == each else pad(own, (0, each - own.shape[1]))
        self._gather(blocks, own, then=place)
        return whole

    def fill_rows(self, whole: Tensor) -> None:
        """Send this rank's rows of a contiguous (count, n), and receive the others; complete after `arrive`."""
        own = whole[self.share(len(whole))]
        self._exchange(own, {peer: whole[self.share(len(whole), peer)] for peer in self.peers})

    def fill_columns(self, whole: Tensor) -> None:
        """The same for columns."""
        count = whole.shape[1]
        parts = {peer: whole[:, self.share(count, peer)] for peer in self.peers}
        received = {peer: whole.new_empty(part.shape) for peer, part in parts.items()}

        def place() -> None:
            for peer, part in parts.items():
                part.copy_(received[peer])

        self._exchange(whole[:, self.share(count)].contiguous(), received, then=place)

    def arrive(self) -> None:
        """Wait for everything that is being gathered."""
        with self.reaching():
            self.mesh.finish(message for messages, _ in self._under_way for message in messages)
        for _, then in self._under_way:
            then()
        self._under_way.clear()

    def add_up(self, value: Tensor) -> Tensor:
        """The sum over all ranks, in place and in the order of ranks, so that all have the same bits."""
        parts = self.gather_rows(value.reshape(1, -1), self.size)
        self.arrive()
        return value.copy_(parts.sum(0).view_as(value))

    def spread(self, value: Tensor, source: int) -> Tensor:
        """Copy `value` of rank `source` to all ranks."""
        with self.reaching():
            dist.broadcast(value, group=self.group, group_src=source)
        return value

    def spread_rows(self, value: Tensor, source: int) -> Tensor:
        """The same for a tensor whose number of rows is unknown to the others."""
        rows = int(self.spread(torch.tensor([len(value)]), source))
        value = value.contiguous() if rows == len(value) else value.new_empty(rows, *value.shape[1:])
        return self.spread(value, source) if rows else value

    def any(self, *flags: bool) -> list[bool]:
        """For each of the flags, whether it is set on any rank."""
        raised = self.gather_rows(torch.tensor([flags]), self.size)
        self.arrive()
        return [bool(flag) for flag in raised.any(0)]

    def check_same(self, values: Mapping[str, str]) -> None:
        """Compare named values, up to `WORD` bytes each; all ranks raise the same error if any differ."""
        words = b"".join(value.encode()[:WORD].ljust(WORD) for value in values.values())
        own = torch.frombuffer(bytearray(words), dtype=torch.uint8).view(1, -1)
        everyone = self.gather_rows(own, self.size)
        self.arrive()
        for place, name in enumerate(values):
            reported = [
                bytes(row[place * WORD : (place + 1) * WORD].tolist()).decode(errors="replace").strip()
                for row in everyone
            ]
            for rank, value in enumerate(reported):
                if value != reported[0]:
                    raise RanksError(f"{name}: expected {reported[0]} on rank {rank}, as on rank 0, got {value}")

    def _gather(self, whole: Tensor, own: Tensor, then: Callable[[], object] = lambda: None) -> None:
        blocks = whole.view(self.size, -1)
        blocks[self.rank] = own.view(-1)
        self._exchange(own, {peer: blocks[peer] for peer in self.peers}, then)

    def _exchange(self, own: Tensor, others: Mapping[int, Tensor], then: Callable[[], object] = lambda: None) -> None:
        """Send `own` to all, and receive what each of the others sends into its place."""
        messages = [self.mesh.send(peer, own) for peer in others]
        messages += [self.mesh.receive(peer, place) for peer, place in others.items()]
        self.sent += own.nbytes * len(others)
        self._under_way.append((messages, then))
        with self.reaching():
            self.mesh.move()


def _padded(own: Tensor, rows: int) -> Tensor:
    """The same as a contiguous tensor, padded with rows of zeros."""
    if len(own) == rows:
        return own.contiguous()
    return torch.cat([own, own.new_zeros(rows - len(own), *own.shape[1:])])
