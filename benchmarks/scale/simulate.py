"""Simulate ranks that compute, send and wait, on a machine with any number of cores, and the network between them.

A rank's program is a list of operations, which run in order:

    ["compute", seconds]
    ["send", number, [[rank, bytes], …]]
    ["wait", [[rank, number], …]]          for these messages

A core runs a rank until it waits, or until its time slice is over and another rank is in the core's queue. A rank stays
on its core, unless that is busy when it wakes up and another is idle, or unless another has been idle for a while.
Ranks that compute at the same time slow each other down, because they share caches and memory. The messages of a rank
leave it one after another, through a token bucket like that of `tc`.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

SLICE = 0.004
"""Seconds for which a rank keeps a core that another rank waits for: a tick of the Linux kernel's clock."""
BALANCE = 0.002
"""Seconds after which an idle core takes a rank from the queue of another: Linux does so at the next tick, which comes
half a tick later on average."""
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

    def run(self, slice_: float, balance: float) -> list[float]:
        """Each core has a queue. A rank that wakes up goes to its last core, or to an idle one if that is busy."""
        queues = [deque[int]() for _ in range(self.cores)]
        ends = [0.0] * len(self.ranks)
        for number in range(len(self.ranks)):
            queues[number % self.cores].append(number)
        cores = dict[int, int]()  # the rank that each core runs
        running = dict[int, float]()  # the end of each rank's time slice
        sleeping = dict[int, int]()  # the last core of each rank
        idle = [0.0] * self.cores  # since when
        while any(queues) or running or sleeping:
            for core, queue in enumerate(queues):
                others = max(queues, key=len)
                if core not in cores and not queue and others and self.now - idle[core] >= balance - 1e-12:
                    queue.append(others.pop())
                if core not in cores and queue:
                    cores[core] = queue.popleft()
                    running[cores[core]] = self.now + slice_
            crowded = [running[number] for core, number in cores.items() if queues[core]]
            if any(queues):
                crowded += [idle[core] + balance for core in range(self.cores) if core not in cores]
            self._pass(running, crowded)
            for core, number in list(cores.items()):
                rank = self.ranks[number]
                while rank.work <= 1e-12:
                    work = next(rank.steps, NEVER)
                    if work is not None and work != NEVER:
                        rank.work = work
                        continue
                    del running[number], cores[core]
                    idle[core], ends[number] = self.now, self.now
                    if work is None:
                        sleeping[number] = core
                    break
            for number in [number for number in sleeping if self.ranks[number].is_ready(self.now)]:
                core = sleeping.pop(number)
                free = [each for each in range(self.cores) if each not in cores and not queues[each]]
                queues[core if core in free or not free else free[0]].append(number)
            for core, number in list(cores.items()):
                if queues[core] and running[number] <= self.now:
                    del running[number], cores[core]
                    queues[core].append(number)
        return ends

    def _pass(self, running: dict[int, float], limits: Sequence[float]) -> None:
        """Advance the time to the next event."""
        pace = {number: self.ranks[number].slowdown if len(running) > 1 else 1.0 for number in running}
        moments = [self.now + self.ranks[number].work * pace[number] for number in running]
        moments += limits
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
    balance: float = BALANCE,
) -> list[float]:
    """The time at which each rank ends, in seconds after the common start."""
    return _Machine(programs, network, cores, slowdown or [1.0] * len(programs)).run(slice_, balance)
