"""The file format of checkpoints: safetensors, with everything but the tensors as JSON in its metadata.

The checksum is the SHA-256 of the whole file with the checksum's own 64 digits replaced by zeros. In files of format 1,
written by ptncn 0.1.0, it covers only text and tensors; everything else in them must be exactly what 0.1.0 wrote.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

import torch
from safetensors import SafetensorError
from safetensors.torch import load as tensors_from
from safetensors.torch import save as to_bytes
from torch import Tensor

FORMAT = "ptncn-checkpoint"
FORMAT_VERSION = 2
KEYS = {"format", "format_version", "ptncn_version", "body", "sha256"}
MOST_HEADER_BYTES = 100_000_000
"""As in safetensors."""
BLANK = "0" * 64
UNFIT = (LookupError, TypeError, ValueError, RuntimeError, AttributeError, ArithmeticError, MemoryError)
"""Errors that a damaged or forged file may cause while it is read, and while a learner is built from it."""


class CheckpointError(ValueError):
    """The file is not a checkpoint that this version can load; the message says which file and why."""


def encode(text: str, tensors: Mapping[str, Tensor], version: str) -> bytes:
    """The bytes of a checkpoint, the same for the same content; `version` is that of the package."""
    metadata = {"format": FORMAT, "format_version": str(FORMAT_VERSION), "ptncn_version": version, "body": text}
    plain = to_bytes(dict(tensors))
    end = 8 + _header_size(plain)
    tree = {"__metadata__": {**metadata, "sha256": BLANK}, **json.loads(plain[8:end])}
    header = json.dumps(tree, separators=(",", ":")).encode()  # safetensors itself writes metadata in any order
    header += b" " * (-len(header) % 8)
    data = len(header).to_bytes(8, "little") + header + plain[end:]
    place = _checksum_place(header, BLANK) + 8
    return data[:place] + hashlib.sha256(data).hexdigest().encode() + data[place + len(BLANK) :]


def read(path: Path) -> tuple[str, dict[str, Tensor]]:
    """The text and the tensors of a file, after its checksum was verified."""
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no such checkpoint")
    try:
        with path.open("rb") as file:
            return decode(file, path.stat().st_size)
    except CheckpointError as error:
        raise CheckpointError(f"{path}: {error}") from error.__cause__
    except OSError as error:
        raise CheckpointError(f"{path}: cannot be read: {error.strerror}") from error


def decode(file: BinaryIO, size: int) -> tuple[str, dict[str, Tensor]]:
    """The text and the tensors in the result of `encode`, `size` bytes long."""
    try:
        return _decode(file, size)
    except CheckpointError:
        raise
    except (SafetensorError, *UNFIT) as error:
        raise CheckpointError(f"not a checkpoint, or cut short: {error}") from error


def _decode(file: BinaryIO, size: int) -> tuple[str, dict[str, Tensor]]:
    start = file.read(8)
    length = _header_size(start)
    if len(start) < 8 or length > min(size - 8, MOST_HEADER_BYTES):
        raise CheckpointError("not a checkpoint, or cut short")
    header = file.read(length)
    metadata = _metadata(header)
    data = start + header + file.read()
    tensors = tensors_from(data)
    digest = _digest_of_version_1 if metadata["format_version"] == "1" else _digest_of_file
    if digest(data, header, metadata, tensors) != metadata["sha256"]:
        raise CheckpointError("the content does not match its checksum: the file was altered")
    return metadata["body"], tensors


def _metadata(header: bytes) -> dict[str, str]:
    """The header without its tensors, if this version can read the file."""
    tree = json.loads(header, object_pairs_hook=_without_duplicates)
    metadata = tree.get("__metadata__") if isinstance(tree, dict) else None
    if not isinstance(metadata, dict) or metadata.get("format") != FORMAT:
        raise CheckpointError("a safetensors file, but not a ptncn checkpoint")
    version, writer = metadata.get("format_version"), metadata.get("ptncn_version")
    if version not in ("1", str(FORMAT_VERSION)):
        raise CheckpointError(
            f"checkpoint format {version}; this version reads formats 1 to {FORMAT_VERSION} "
            f"(the file was written by ptncn {writer})"
        )
    if set(metadata) != KEYS or not all(isinstance(value, str) for value in metadata.values()):
        raise CheckpointError(f"expected the metadata {', '.join(sorted(KEYS))}, got {', '.join(sorted(metadata))}")
    if version == "1" and writer != "0.1.0":
        raise CheckpointError(f"checkpoint format 1 was written by ptncn 0.1.0 only; this file says {writer}")
    return metadata


def _header_size(data: bytes) -> int:
    return int.from_bytes(data[:8], "little")


def _checksum_place(header: bytes, digest: str) -> int:
    key = b'"sha256":"'
    if header.count(key + digest.encode()) != 1:
        raise CheckpointError("the checksum was not found where it is written")
    return header.index(key + digest.encode()) + len(key)


def _digest_of_file(data: bytes, header: bytes, metadata: Mapping[str, str], tensors: Mapping[str, Tensor]) -> str:
    written = metadata["sha256"]
    if len(written) != len(BLANK):
        raise CheckpointError(f"expected a checksum of {len(BLANK)} digits, got {len(written)}")
    place = _checksum_place(header, written) + 8
    view = memoryview(data)
    digest = hashlib.sha256(view[:place])
    digest.update(BLANK.encode())
    digest.update(view[place + len(BLANK) :])
    return digest.hexdigest()


def _digest_of_version_1(data: bytes, header: bytes, metadata: Mapping[str, str], tensors: Mapping[str, Tensor]) -> str:
    digest = hashlib.sha256(metadata["body"].encode())
    for key in sorted(tensors):
        tensor = tensors[key].contiguous()
        digest.update(f"{key}{tensor.dtype}{tuple(tensor.shape)}".encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    tree = dict(pairs)
    if len(tree) != len(pairs):
        raise CheckpointError("a name occurs twice in the header")
    return tree


def flatten(tree: Any, name: str, tensors: dict[str, Tensor]) -> Any:
    """The tree with each tensor moved to `tensors` and named in its place; containers are tagged by type.

    >>> flatten({"a": (1, None)}, "extra", {})
    {'dict': [['a', {'tuple': [1, None]}]]}
    """
    if tree is None or isinstance(tree, bool | int | float | str):
        return tree
    if isinstance(tree, Tensor):
        while name in tensors:  # {1: …, "1": …}
            name += "'"
        tensors[name] = tree.detach().clone().contiguous()
        return {"tensor": name}
    if isinstance(tree, list | tuple):
        tag = "list" if isinstance(tree, list) else "tuple"
        return {tag: [flatten(item, f"{name}.{index}", tensors) for index, item in enumerate(tree)]}
    if isinstance(tree, Mapping):
        for key in tree:
            if not isinstance(key, str | int):
                raise TypeError(f"{name}: expected keys that are strings or integers, got {key!r}")
        return {"dict": [[key, flatten(value, f"{name}.{key}", tensors)] for key, value in tree.items()]}
    raise TypeError(f"{name}: expected a tensor, number, string, list or dict, got a {type(tree).__name__}")


def unflatten(tree: Any, tensors: dict[str, Tensor]) -> Any:
    """The inverse of `flatten`; removes each tensor it uses from `tensors`, so that unused ones are left over."""
    if tree is None or isinstance(tree, bool | int | float | str):
        return tree
    if not isinstance(tree, dict) or len(tree) != 1:
        raise ValueError(f"expected a number, a string or one tagged container, got {_shortened(tree)}")
    ((tag, content),) = tree.items()
    if tag == "tensor":
        if not isinstance(content, str) or content not in tensors:
            raise ValueError(f"tensor {_shortened(content)} is missing, or named twice")
        return tensors.pop(content).clone()  # into memory aligned as torch aligns it
    if tag not in ("list", "tuple", "dict") or not isinstance(content, list):
        raise ValueError(f"expected a tensor, list, tuple or dict, got {_shortened(tree)}")
    if tag == "dict":
        return {_key(pair): unflatten(pair[1], tensors) for pair in content}
    items = [unflatten(item, tensors) for item in content]
    return items if tag == "list" else tuple(items)


def _key(pair: Any) -> str | int:
    if not isinstance(pair, list) or len(pair) != 2 or not isinstance(pair[0], str | int):
        raise ValueError(f"expected [key, value], got {_shortened(pair)}")
    return pair[0]


def _shortened(tree: Any) -> str:
    text = repr(tree)
    return text if len(text) <= 60 else f"{text[:57]}..."
