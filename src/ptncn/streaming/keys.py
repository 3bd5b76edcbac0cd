"""Which stream is in which slot: by key, the least recently used going to disk where there is a limit."""

from __future__ import annotations

import os
import sqlite3
import tempfile
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass
class Assignment:
    """Rows that can be processed together."""

    slots: list[int]
    new: list[tuple[str, int]]
    """Keys that have to be put into a slot first: from the store, or as new streams."""
    evicted: list[tuple[str, int]]
    """Keys that have to leave their slot before that."""


class KeyTable:
    """Gives each key a slot, at most `limit` of them at a time.

    >>> table = KeyTable(limit=2)
    >>> table.assign(["a", "b", "a", "c"])  # c has to wait until the rows of b are done
    Assignment(slots=[0, 1, 0], new=[('a', 0), ('b', 1)], evicted=[])
    >>> table.assign(["c"])
    Assignment(slots=[1], new=[('c', 1)], evicted=[('b', 1)])
    """

    def __init__(self, limit: int | None = None) -> None:
        if limit is not None and limit < 1:
            raise ValueError(f"key_limit: expected a positive integer, got {limit}")
        self.limit = limit
        self.slots: OrderedDict[str, int] = OrderedDict()
        """The least recently used first."""

    def assign(self, keys: Sequence[str]) -> Assignment:
        """Slots for as many of the first rows as fit in together."""
        assignment = Assignment([], [], [])
        used: set[str] = set()
        for key in keys:
            slot = self.slots.get(key)
            if slot is None:
                if self.limit is None or len(self.slots) < self.limit:
                    slot = len(self.slots)
                else:
                    oldest = next(iter(self.slots))
                    if oldest in used:
                        break
                    slot = self.slots.pop(oldest)
                    assignment.evicted.append((oldest, slot))
                self.slots[key] = slot
                assignment.new.append((key, slot))
            elif self.limit is not None:
                self.slots.move_to_end(key)
            used.add(key)
            assignment.slots.append(slot)
        return assignment


class KeyStore:
    """The state of streams that are in no slot, in a temporary database next to the checkpoint."""

    def __init__(self, folder: str | None = None) -> None:
        handle, self.path = tempfile.mkstemp(prefix=".ptncn-keys-", suffix=".db", dir=folder)
        os.close(handle)
        self._base = sqlite3.connect(self.path, isolation_level=None)
        self._base.execute("PRAGMA journal_mode = OFF")  # a checkpoint, not this file, survives a crash
        self._base.execute("PRAGMA synchronous = OFF")
        self._base.execute("CREATE TABLE streams (key TEXT PRIMARY KEY, state BLOB)")

    def put(self, key: str, state: bytes) -> None:
        self._base.execute("INSERT OR REPLACE INTO streams VALUES (?, ?)", (key, state))

    def take(self, key: str) -> bytes | None:
        """The state of a key, which is then no longer here."""
        row: Any = self._base.execute("SELECT state FROM streams WHERE key = ?", (key,)).fetchone()
        if row is None:
            return None
        self._base.execute("DELETE FROM streams WHERE key = ?", (key,))
        return bytes(row[0])

    def __len__(self) -> int:
        return int(self._base.execute("SELECT COUNT(*) FROM streams").fetchone()[0])

    def __iter__(self) -> Iterator[tuple[str, bytes]]:
        yield from self._base.execute("SELECT key, state FROM streams ORDER BY rowid")

    def close(self) -> None:
        self._base.close()
        os.unlink(self.path)
