"""Connections between all ranks, served by the thread that computes.

A step has many small exchanges. Gloo passes each to separate threads, which have to wait for a core if every core runs
a rank: about a millisecond per exchange. Here the rank itself reads and writes TCP sockets, and polls briefly before it
sleeps.
"""

from __future__ import annotations

import os
import secrets
import select
import socket
import time
from collections import deque
from collections.abc import Iterable
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from ptncn.system import usable_cores

SPIN = 0.002
"""Seconds that a rank polls before it sleeps, if every rank of the host has its own core."""
WORD, TOKEN = 64, 16
"""Bytes of an address, and of the token with which a rank connects."""


class Message:
    """A message in transit; `left` bytes remain to be sent or received."""

    __slots__ = ("left", "view")

    def __init__(self, tensor: Tensor) -> None:
        self.view = tensor.reshape(-1).numpy().view("uint8").data  # keeps the memory alive
        self.left = len(self.view)


class Mesh:
    """A connection to every other rank of a group. Messages between two ranks arrive in the order of their calls."""

    def __init__(self, group: dist.ProcessGroup | None, timeout: float) -> None:
        self.rank, self.size, self.timeout = dist.get_rank(group), dist.get_world_size(group), timeout
        self.peers = [peer for peer in range(self.size) if peer != self.rank]
        self._sockets = _connected(self.rank, self.size, group, timeout) if self.peers else {}
        self._out: dict[int, deque[Message]] = {peer: deque() for peer in self.peers}
        self._in: dict[int, deque[Message]] = {peer: deque() for peer in self.peers}
        here = int(os.environ.get("LOCAL_WORLD_SIZE", self.size))
        self._spin = SPIN if here * torch.get_num_threads() <= usable_cores() else 0.0

    def send(self, peer: int, tensor: Tensor) -> Message:
        """Start sending a contiguous tensor, which must not change until the message is finished."""
        return self._add(self._out[peer], tensor)

    def receive(self, peer: int, tensor: Tensor) -> Message:
        """Receive the next message of a rank into a contiguous tensor."""
        return self._add(self._in[peer], tensor)

    def finish(self, messages: Iterable[Message]) -> None:
        """Wait until these messages, and those before them, have been sent or received."""
        waiting = [message for message in messages if message.left]
        moved = time.monotonic()
        while waiting:
            if self.move():
                waiting = [message for message in waiting if message.left]
                moved = time.monotonic()
            elif (still := time.monotonic() - moved) > self.timeout:
                raise TimeoutError(f"nothing arrived for {self.timeout:.0f} s")
            elif still > self._spin:
                self._sleep()

    def move(self) -> bool:
        """Send and receive as much as possible without waiting; returns whether anything moved."""
        moved = False
        for peer, connection in self._sockets.items():
            for queue, work in ((self._out[peer], connection.send), (self._in[peer], connection.recv_into)):
                moved = _drain(queue, work, peer) or moved
        return moved

    def close(self) -> None:
        for connection in self._sockets.values():
            connection.close()

    def _add(self, queue: deque[Message], tensor: Tensor) -> Message:
        message = Message(tensor)
        if message.left:
            queue.append(message)
        return message

    def _sleep(self) -> None:
        poll = select.poll()
        for peer, connection in self._sockets.items():
            wanted = (select.POLLIN if self._in[peer] else 0) | (select.POLLOUT if self._out[peer] else 0)
            if wanted:
                poll.register(connection, wanted)
        poll.poll(1000 * min(self.timeout, 1.0))


def _drain(queue: deque[Message], work: Any, peer: int) -> bool:
    moved = False
    while queue:
        message = queue[0]
        try:
            count = work(message.view[len(message.view) - message.left :])
        except BlockingIOError:
            break
        if not count:
            raise ConnectionError(f"rank {peer} has ended")
        message.left -= count
        moved = True
        if message.left:
            break
        queue.popleft()
    return moved


def _connected(rank: int, size: int, group: dist.ProcessGroup | None, timeout: float) -> dict[int, socket.socket]:
    """Sockets to all other ranks: each connects to those before it and accepts those after it."""
    with socket.create_server((_own_address(), 0), backlog=size) as server:
        server.settimeout(timeout)
        host, port = server.getsockname()[:2]
        words = _words(f"{host} {port}", size, group)
        token = bytes.fromhex(_words(secrets.token_hex(TOKEN), size, group)[0])
        sockets: dict[int, socket.socket] = {}
        for peer in range(rank):
            host, port = words[peer].split()
            try:
                sockets[peer] = socket.create_connection((host, int(port)), timeout)
            except OSError as error:
                raise ConnectionError(f"cannot reach rank {peer} at {host}:{port}: {error.strerror or error}") from None
            sockets[peer].sendall(token + rank.to_bytes(4, "little"))
        while len(sockets) < size - 1:
            connection, _ = server.accept()
            connection.settimeout(timeout)
            greeting = connection.recv(TOKEN + 4, socket.MSG_WAITALL)
            if secrets.compare_digest(greeting[:TOKEN], token):
                sockets[int.from_bytes(greeting[TOKEN:], "little")] = connection
            else:  # another program
                connection.close()
    for connection in sockets.values():
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.setblocking(False)
    return dict(sorted(sockets.items()))


def _own_address() -> str:
    """The address of this host, as seen from the rendezvous host."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect((os.environ.get("MASTER_ADDR", "127.0.0.1"), int(os.environ.get("MASTER_PORT", 0)) or 1))
        return str(probe.getsockname()[0])


def _words(own: str, size: int, group: dist.ProcessGroup | None) -> list[str]:
    """Exchange one word per rank through the process group."""
    word = torch.frombuffer(bytearray(own.encode().ljust(WORD)), dtype=torch.uint8)
    words = [torch.empty(WORD, dtype=torch.uint8) for _ in range(size)]
    dist.all_gather(words, word, group=group)
    return [bytes(each.tolist()).decode().strip() for each in words]
