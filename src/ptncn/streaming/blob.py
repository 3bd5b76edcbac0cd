"""Trees of numbers, text and arrays as bytes: small, versioned, checked, and nothing in them is executed.

A blob is a magic word, the version, the checksum of the rest, the length of a JSON text, that text, and the arrays
one behind another, little-endian. The checksum covers that length too. In the text an array stands as its
type, its shape and its place.
"""

from __future__ import annotations

import json
import os
import struct
import zlib
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import torch
from filelock import FileLock, SoftFileLock, Timeout
from torch import Tensor

from ptncn.checkpoint import CheckpointError
from ptncn.streaming.errors import StreamError

MAGIC = b"ptncn-stream"
VERSION = 1
KINDS = ("f8", "f4", "i8", "i4", "u1", "b1")
"""The types of arrays."""
HEAD = struct.Struct("<12sHIQ")  # magic, version, CRC-32 of what follows, bytes of JSON

MALFORMED = (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RuntimeError, MemoryError)
"""What content may raise that has the right checksum but was not written by a stream; RecursionError is among them."""


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
    """What `pack` was given; tensors come back as tensors, arrays as arrays of their own."""
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
    """The tree with each array moved to `arrays`; containers are tagged by their type."""
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
        raise ValueError(f"expected a number, a text or a tagged container, got a {type(tree).__name__}")
    ((tag, content),) = tree.items()
    if tag == "a":
        kind, shape, at = content
        if kind not in KINDS or at < 0 or any(size < 0 for size in shape):
            raise ValueError(f"an array cannot be like {content!r}")
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

    The system lets go of the lock when the process dies, however it dies, so that nothing stale can be in the way.

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
        if not isinstance(self._lock, SoftFileLock):  # which keeps notes of its own in the file
            with suppress(OSError):  # Windows lets no second handle write to a locked file
                self.path.write_text(f"{os.getpid()}\n", encoding="ascii")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with suppress(OSError):  # Windows keeps a file that is open
            self.path.unlink()
        self._lock.release()

    def _holder(self) -> str:
        try:
            first = self.path.read_text(encoding="ascii", errors="replace").partition("\n")[0].strip()
        except OSError:
            first = ""
        return f"process {first}" if first.isdecimal() else "another process"
