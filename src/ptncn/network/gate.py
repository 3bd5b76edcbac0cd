"""Threads that share one network: any number may read its weights, or one may change them."""

from __future__ import annotations

import threading
from typing import Any


class Gate:
    """`with gate.reading:` overlaps with other readers; `with gate.writing:` excludes everyone else.

    A thread may write within its own writing. Writers go first: readers that come later wait for them.

    >>> gate = Gate()
    >>> with gate.writing, gate.writing:
    ...     pass
    """

    def __init__(self) -> None:
        self.condition = threading.Condition(threading.Lock())
        self.readers = 0
        self.waiting = 0
        self.writer: int | None = None
        self.depth = 0
        self.reading = _Reading(self)
        self.writing = _Writing(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return Gate, ()  # a copy of a network has a gate of its own


class _Reading:
    def __init__(self, gate: Gate) -> None:
        self.gate = gate

    def __enter__(self) -> None:
        gate = self.gate
        with gate.condition:
            while gate.writer is not None or gate.waiting:
                gate.condition.wait()
            gate.readers += 1

    def __exit__(self, *error: object) -> None:
        gate = self.gate
        with gate.condition:
            gate.readers -= 1
            if not gate.readers:
                gate.condition.notify_all()


class _Writing:
    def __init__(self, gate: Gate) -> None:
        self.gate = gate

    def __enter__(self) -> None:
        gate, me = self.gate, threading.get_ident()
        with gate.condition:
            if gate.writer != me:
                gate.waiting += 1
                try:
                    while gate.writer is not None or gate.readers:
                        gate.condition.wait()
                finally:
                    gate.waiting -= 1
                gate.writer = me
            gate.depth += 1

    def __exit__(self, *error: object) -> None:
        gate = self.gate
        with gate.condition:
            gate.depth -= 1
            if not gate.depth:
                gate.writer = None
                gate.condition.notify_all()
