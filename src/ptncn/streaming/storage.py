"""Storage of streams: as bytes, in checkpoints, and by key, with the least recently used on disk.

A blob consists of a magic word, the version, the checksum of the rest, the length of a JSON text, that text, and the
arrays one after another, little-endian. The checksum covers the length too. The text refers to an array by its type,
shape and offset. Nothing in a blob is executed.
"""

from __future__ import annotations

import json
import os
import sqlite3
import struct
import tempfile
import zlib
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import torch
from filelock import FileLock, SoftFileLock, Timeout
from numpy.typing import NDArray
from torch import Tensor

from ptncn.checkpoint import CheckpointError
from ptncn.streaming.sources import StreamError

MAGIC = b"ptncn-stream"
VERSION = 4
KINDS = ("f8", "f4", "i8", "i4", "u1", "b1")
"""The types of arrays."""
HEAD = struct.Struct("<12sHIQ")  # magic, version, CRC-32 of what follows, bytes of JSON

MALFORMED = (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RuntimeError, MemoryError)
"""Errors caused by content that has a valid checksum but was not written by a stream; RecursionError is a
RuntimeError."""


class BlobError(ValueError):
    """The bytes are not a blob that this version can read; the message says why."""


def pack(tree: Any) -> bytes:
    """
    >>> unpack(pack({"a": np.arange(3), "b": [1.5, None, "x"], "c": (True,)}))
    {'a': array([0, 1, 2]), 'b': [1.5, None, 'x'], 'c': (True,)}
    """
    arrays: list[bytes] = []
    text = json.dumps(_strip(tree, arrays, [0]), separators=(",", ":"), ensure_ascii=False).encode()
    body = b"".join([text, *arrays])
    return HEAD.pack(MAGIC, VERSION, _checksum(len(text), body), len(text)) + body


def unpack(data: bytes | memoryview) -> Any:
    """The inverse of `pack`; arrays are copies."""
    if len(data) < HEAD.size or bytes(data[: len(MAGIC)]) != MAGIC:
        raise BlobError("not the state of a stream, or cut short")
    _, version, checksum, length = HEAD.unpack_from(data)
    if version != VERSION:
        raise BlobError(f"state of version {version}; this version of ptncn reads {VERSION}")
    body = memoryview(data)[HEAD.size :]
    if _checksum(length, body) != checksum:
        raise BlobError("the content does not match its checksum: it was altered or cut short")
    try:
        return _fill(json.loads(bytes(body[:length])), body[length:])
    except MALFORMED as error:
        raise BlobError(f"the content is not what a stream writes: {error!r}") from error


def read_checkpoint(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The content of a stream's checkpoint."""
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no such checkpoint")
    data = path.read_bytes()
    try:
        tree = unpack(data)
    except BlobError as error:
        if data[8:9] == b"{" and b"ptncn-checkpoint" in data[: 1 << 20]:
            raise CheckpointError(
                f"{path}: not a checkpoint of a stream of this version: it holds a learner, or a stream of an earlier "
                f"version, which had another model; start a new one"
            ) from error
        raise CheckpointError(f"{path}: not a checkpoint of a stream: {error}") from error
    if not isinstance(tree, dict):
        raise CheckpointError(f"{path}: not a checkpoint of a stream: it holds a {type(tree).__name__}")
    return tree


def _checksum(length: int, body: bytes | memoryview) -> int:
    return zlib.crc32(body, zlib.crc32(length.to_bytes(8, "little")))


def _strip(tree: Any, arrays: list[bytes], at: list[int]) -> Any:
    """The tree with all arrays moved to `arrays`; containers are tagged with their types."""
    if tree is None or isinstance(tree, bool | int | float | str):
        return tree
    if isinstance(tree, Tensor):
        return {"t": _strip(tree.detach().cpu().numpy(), arrays, at)}
    if isinstance(tree, np.generic):
        return _strip(tree.item(), arrays, at)
    if isinstance(tree, np.ndarray):
        if tree.dtype.str.lstrip("<>=|") not in KINDS:
            raise TypeError(f"an array of {tree.dtype} cannot be saved; expected one of {', '.join(KINDS)}")
        data = np.ascontiguousarray(tree, dtype=tree.dtype.newbyteorder("<")).tobytes()
        arrays.append(data)
        at[0] += len(data)
        return {"a": [tree.dtype.str.lstrip("<>=|"), list(tree.shape), at[0] - len(data)]}
    if isinstance(tree, bytes):
        return {"b": _strip(np.frombuffer(tree, dtype=np.uint8), arrays, at)}
    if isinstance(tree, list | tuple):
        return {"l" if isinstance(tree, list) else "u": [_strip(item, arrays, at) for item in tree]}
    if isinstance(tree, Mapping):
        return {"d": [[_strip(key, arrays, at), _strip(value, arrays, at)] for key, value in tree.items()]}
    raise TypeError(f"a {type(tree).__name__} cannot be saved; expected arrays, numbers, text, lists or dicts")


def _fill(tree: Any, data: memoryview) -> Any:
    if tree is None or isinstance(tree, bool | int | float | str):
        return tree
    if not isinstance(tree, dict):
        raise ValueError(f"expected a number, a string or a tagged container, got a {type(tree).__name__}")
    ((tag, content),) = tree.items()
    if tag == "a":
        kind, shape, at = content
        if kind not in KINDS or at < 0 or any(size < 0 for size in shape):
            raise ValueError(f"invalid array: {content!r}")
        dtype = np.dtype(f"<{kind}" if np.dtype(kind).itemsize > 1 else kind)
        return np.frombuffer(data, dtype, int(np.prod(shape)), at).reshape(shape).astype(dtype.newbyteorder("="))
    if tag == "t":
        return torch.from_numpy(_fill(content, data))
    if tag == "b":
        return _fill(content, data).tobytes()
    if tag == "d":
        return {_fill(key, data): _fill(value, data) for key, value in content}
    if tag not in ("l", "u"):
        raise ValueError(f"unknown tag {tag!r}")
    items = [_fill(item, data) for item in content]
    return items if tag == "l" else tuple(items)


class CheckpointLock:
    """Holds `<checkpoint>.lock` while a process writes the checkpoint.

    The system releases the lock when the process ends, however it ends, so there are no stale locks.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, CheckpointLock(Path(folder) / "a"):
    ...     os.listdir(folder)
    ['a.lock']
    """

    def __init__(self, checkpoint: str | os.PathLike[str]) -> None:
        self.checkpoint = Path(os.path.realpath(checkpoint))
        self.path = self.checkpoint.with_name(f"{self.checkpoint.name}.lock")
        self._lock = FileLock(self.path, timeout=0)

    def __enter__(self) -> CheckpointLock:
        try:
            self._lock.acquire()
        except Timeout:
            raise StreamError(f"{self.checkpoint}: {self._holder()} is writing this checkpoint already") from None
        except OSError as error:
            raise StreamError(f"{self.path}: cannot be written: {error.strerror}") from error
        if not isinstance(self._lock, SoftFileLock):  # written to the lock file for error messages
            with suppress(OSError):  # on Windows a second handle cannot write to a locked file
                self.path.write_text(f"{os.getpid()}\n", encoding="ascii")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with suppress(OSError):  # on Windows an open file cannot be removed
            self.path.unlink()
        self._lock.release()

    def _holder(self) -> str:
        try:
            pid = self.path.read_text(encoding="ascii", errors="replace").partition("\n")[0].strip()
        except OSError:
            pid = ""
        return f"process {pid}" if pid.isdecimal() else "another process"


Array = NDArray[np.float64]


def grow(array: NDArray[Any], rows: int) -> None:
    """Add rows of zeros, in place if the system allows it, to avoid a second copy of all streams.

    Views of the array become invalid.
    """
    array.resize((rows, *array.shape[1:]), refcheck=False)


class StateRows:
    """Saves and restores (streams, width) `state`, or one row of it."""

    state: Array

    def tree(self, row: int | None = None) -> dict[str, Array]:
        """The state of all streams, or of one of them."""
        return {"state": (self.state if row is None else self.state[row : row + 1]).copy()}

    def load_tree(self, tree: Mapping[str, Array], row: int | None = None) -> None:
        state = np.asarray(tree["state"], dtype=np.float64)
        expected = (len(self.state) if row is None else 1, self.state.shape[1])
        if state.shape != expected:
            raise ValueError(f"state: expected {expected}, got {state.shape}")
        self.state[slice(None) if row is None else slice(row, row + 1)] = state


@dataclass
class Assignment:
    """The slots of the rows that can be processed together."""

    slots: list[int]
    new: list[tuple[str, int]]
    """Keys to load into a slot first, from the store or as new streams."""
    evicted: list[tuple[str, int]]
    """Keys to move out of their slots before that."""


class KeyTable:
    """Gives each key a slot, at most `limit` of them at a time.

    >>> table = KeyTable(limit=2)
    >>> table.assign(["a", "b", "a", "c"])  # c waits until the rows of b are processed
    Assignment(slots=[0, 1, 0], new=[('a', 0), ('b', 1)], evicted=[])
    >>> table.assign(["c"])
    Assignment(slots=[1], new=[('c', 1)], evicted=[('b', 1)])
    """

    def __init__(self, limit: int | None = None) -> None:
        if limit is not None and limit < 1:
            raise ValueError(f"key_limit: expected a positive integer, got {limit}")
        self.limit = limit
        self.slots: OrderedDict[str, int] = OrderedDict()
        """All keys with a slot, the least recently used first."""
        self.free: list[int] = []
        """Slots of forgotten keys."""

    @property
    def room(self) -> int:
        """Number of slots assigned so far."""
        return len(self.slots) + len(self.free)

    def forget(self, key: str) -> None:
        self.free.append(self.slots.pop(key))

    def assign(self, keys: Sequence[str]) -> Assignment:
        """Slots for as many of the first rows as fit at the same time."""
        known = [self.slots.get(key, -1) for key in keys]
        if -1 not in known:
            if self.limit is not None:
                for key in reversed(dict.fromkeys(reversed(keys))):
                    self.slots.move_to_end(key)
            return Assignment(known, [], [])
        assignment = Assignment([], [], [])
        used: set[str] = set()
        for key in keys:
            slot = self.slots.get(key)
            if slot is None:
                if self.limit is None or len(self.slots) < self.limit:
                    slot = self.free.pop() if self.free else len(self.slots)
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
    """The state of streams without a slot, in a temporary database next to the checkpoint."""

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
        """Remove and return the state of a key."""
        row: Any = self._base.execute("SELECT state FROM streams WHERE key = ?", (key,)).fetchone()
        if row is None:
            return None
        self._base.execute("DELETE FROM streams WHERE key = ?", (key,))
        return bytes(row[0])

    def __contains__(self, key: str) -> bool:
        return self._base.execute("SELECT 1 FROM streams WHERE key = ?", (key,)).fetchone() is not None

    def __len__(self) -> int:
        return int(self._base.execute("SELECT COUNT(*) FROM streams").fetchone()[0])

    def __iter__(self) -> Iterator[tuple[str, bytes]]:
        yield from self._base.execute("SELECT key, state FROM streams ORDER BY rowid")

    def close(self) -> None:
        self._base.close()
        os.unlink(self.path)
