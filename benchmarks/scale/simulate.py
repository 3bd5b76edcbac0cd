"""Simulate ranks that compute, send and wait, on a machine with any number of cores, and the network between them.

A rank's program is a list of operations, which run in order:

    ["compute", seconds]
    ["send", number, [[rank, bytes], …]]
    ["wait", [[rank, number], …]]          for these messages

A core runs a rank until it waits, or until its time slice is over and another rank is ready. Ranks that compute at the
same time slow each other down, because they share caches and memory. The messages of a rank leave it one after another,
through a token bucket like that of `tc`.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

SLICE = 0.004
"""Seconds for which a rank keeps a core that another rank waits for: a tick of the Linux kernel's clock."""
NEVER = float("inf")


@dataclass(frozen=True)
class Network:
    """Costs of messages: `wait`, `message` and `byte` are seconds of a core; the others overlap with its work."""

    wait: float
    """Paid each time a rank sleeps, for falling asleep and waking up."""
    message: float
    """Half is paid by the sender and half by the receiver; the same applies to `byte`."""
    byte: float
    latency: float = 0.0
    a_byte: float = 0.0
    """Seconds that a byte takes to leave its rank."""
    burst: float = 0.0
    """Bytes that can leave at once after a pause."""

    def work(self, messages: int, size: float) -> float:
        return (messages * self.message + size * self.byte) / 2


@dataclass
class _Rank:
    steps: Iterator[float | None]
    """Seconds of work, or None to wait until everything has arrived."""
    slowdown: float
    work: float = 0.0
    left: float = -NEVER
    """The time at which everything that it sent has left."""
    arrived: dict[tuple[int, int], tuple[float, float]] = field(default_factory=dict)
    """Messages by rank and number: when each arrived or will arrive, and its bytes."""
    wanted: list[tuple[int, int]] = field(default_factory=list)

    def is_ready(self, now: float) -> bool:
        return all(self.arrived.get(message, (NEVER, 0))[0] <= now for message in self.wanted)


class _Machine:
    def __init__(
        self, programs: Sequence[Sequence[Any]], network: Network, cores: int, slowdown: Sequence[float]
    ) -> None:
        self.network, self.cores, self.now = network, cores, 0.0
        self.coming: list[float] = []
        """The time of the next arrival."""
        self.ranks = [
            _Rank(self._steps(number, program), slow)
            for number, (program, slow) in enumerate(zip(programs, slowdown, strict=True))
        ]

    def _steps(self, number: int, program: Sequence[Any]) -> Iterator[float | None]:
        for kind, *rest in program:
            if kind == "compute":
                yield rest[0]
            elif kind == "send":
                count, messages = rest
                yield self.network.work(len(messages), sum(size for _, size in messages))
                self._send(number, count, messages)
            else:
                own = self.ranks[number]
                own.wanted = [(source, count) for source, count in rest[0]]
                if not own.is_ready(self.now):
                    yield None
                    yield self.network.wait
                sizes = [own.arrived.pop(message)[1] for message in own.wanted]
                own.wanted = []
                yield self.network.work(len(sizes), sum(sizes))

    def _send(self, number: int, count: int, messages: Sequence[tuple[int, float]]) -> None:
        network, own = self.network, self.ranks[number]
        for peer, size in messages:
            own.left = max(own.left, self.now - network.burst * network.a_byte) + size * network.a_byte
            when = max(self.now, own.left) + network.latency
            self.ranks[peer].arrived[number, count] = when, size
            heapq.heappush(self.coming, when)

    def run(self, slice_: float) -> list[float]:
        ready, running, sleeping = deque(range(len(self.ranks))), dict[int, float](), set[int]()
        ends = [0.0] * len(self.ranks)
        while ready or running or sleeping:
            while ready and len(running) < self.cores:
                running[ready.popleft()] = self.now + slice_
            self._pass(running, bool(ready))
            for number in [number for number in running if self.ranks[number].work <= 1e-12]:
                rank = self.ranks[number]
                work = next(rank.steps, NEVER)
                if work is None or work == NEVER:
                    del running[number]
                    if work is None:
                        sleeping.add(number)
                    ends[number] = self.now
                else:
                    rank.work = work
            for number in [number for number in sleeping if self.ranks[number].is_ready(self.now)]:
                sleeping.remove(number)
                ready.append(number)
            for number in [number for number, end in running.items() if ready and end <= self.now]:
                del running[number]
                ready.append(number)
        return ends

    def _pass(self, running: dict[int, float], crowded: bool) -> None:
        """Advance the time to the next event."""
        pace = {number: self.ranks[number].slowdown if len(running) > 1 else 1.0 for number in running}
        moments = [self.now + self.ranks[number].work * pace[number] for number in running]
        moments += running.values() if crowded else []
        while self.coming and self.coming[0] <= self.now:
            heapq.heappop(self.coming)
        moments += self.coming[:1]
        if not moments:
            raise ValueError("programs: ranks wait for messages that no rank sends")
        passed = max(0.0, min(moments) - self.now)
        for number in running:
            self.ranks[number].work -= passed / pace[number]
        self.now = max(self.now, min(moments))


def simulated(
    programs: Sequence[Sequence[Any]],
    network: Network,
    *,
    cores: int,
    slowdown: Sequence[float] = (),
    slice_: float = SLICE,
) -> list[float]:
    """The time at which each rank ends, in seconds after the common start."""
    return _Machine(programs, network, cores, slowdown or [1.0] * len(programs)).run(slice_)
