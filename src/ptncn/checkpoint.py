"""Checkpoints: one file from which a run resumes bit for bit.

A checkpoint is a safetensors file, with everything but the tensors as JSON in its metadata. Loading it verifies the
checksum, compares sizes with the tensors, builds a learner by its registry name and copies numbers into it. It never
executes code from the file.

The checksum is the SHA-256 of the whole file in which the checksum's own 64 digits are zeros. Files of format 1, which
ptncn 0.1.0 wrote, have one over text and tensors; what it leaves out of them must be exactly what 0.1.0 wrote there.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import os
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import torch
from safetensors import SafetensorError
from safetensors.torch import load as tensors_from
from safetensors.torch import save as to_bytes
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from ptncn.learner import Learner, State
from ptncn.system import write_atomically

__all__ = ["Checkpoint", "CheckpointError", "check_count", "check_like", "check_state", "load", "save"]

PARTS = {"kind", "options", "learner", "state", "extra"}
UNFIT = (LookupError, TypeError, ValueError, RuntimeError, AttributeError, ArithmeticError, MemoryError)
"""What a damaged or forged file may raise while it is read, and while a learner is built from it."""


class Checkpoint(NamedTuple):
    """The content of a checkpoint."""

    learner: Learner
    """The learner, ready to continue."""
    state: Any
    """The state saved with the learner, or None."""
    extra: Any
    """Anything else that was saved: a tree of tensors, numbers, strings, lists and dicts."""


def save(path: str | os.PathLike[str], learner: Learner, state: State | None = None, extra: Any = None) -> None:
    """Write a learner, with its state and any `extra` values, to one file.

    The write is atomic: an existing file stays until the new one is complete. `extra` is a tree of tensors, numbers,
    strings, lists and dicts.

    >>> import ptncn, torch
    >>> network = ptncn.PTNCN(2, [8], output="gaussian")
    >>> state = network.begin(batch_size=1)
    >>> _ = network.step(torch.ones(1, 2), state)
    >>> ptncn.save("run.ckpt", network, state, extra={"epoch": 3})
    >>> again, state_again, extra = ptncn.load("run.ckpt")
    >>> torch.equal(again.predict(state_again), network.predict(state)), extra
    (True, {'epoch': 3})
    """
    from ptncn import __version__

    tensors: dict[str, Tensor] = {}
    body = {
        "kind": learner.kind,
        "options": learner.options(),
        "learner": flatten(learner.snapshot(), "learner", tensors),
        "state": None if state is None else flatten(_fields(state), "state", tensors),
        "extra": flatten(extra, "extra", tensors),
    }
    write_atomically(Path(path), encode(json.dumps(body, sort_keys=True), tensors, __version__))


def load(path: str | os.PathLike[str], **options: Any) -> Checkpoint:
    """Read a checkpoint written by `save`, without executing anything in it.

    `options` override saved ones; a callable, such as a custom activation, must be passed again. Raises
    `CheckpointError` if the file is damaged, of an unknown format, or does not fit the learner it names.
    """
    path = Path(path)
    text, tensors = read(path)
    try:
        return _build(text, tensors, options)
    except UNFIT as error:
        reason = f"there is no {error}" if type(error) is KeyError else error
        raise CheckpointError(f"{path}: the checkpoint does not fit the learner it names: {reason}") from error


def _build(text: str, tensors: dict[str, Tensor], options: dict[str, Any]) -> Checkpoint:
    from ptncn.learners import make

    body = json.loads(text)
    if not isinstance(body, dict) or set(body) != PARTS:
        raise ValueError(f"expected {', '.join(sorted(PARTS))}")
    numbers = sum(tensor.numel() for tensor in tensors.values())
    learnt, fields, extra = (unflatten(body[part], tensors) for part in ("learner", "state", "extra"))
    if tensors:
        raise ValueError(f"nothing refers to the tensor {min(tensors)!r:.60}")
    if not isinstance(body["kind"], str):
        raise ValueError(f"expected the name of a learner, got {_described(body['kind'])}")
    check_options(body["options"], learnt, numbers)
    with Allowance(numbers):
        learner = make(body["kind"], **{**body["options"], **options})
    check_like(learnt, learner.snapshot(), "learner")
    learner.restore(learnt)
    if fields is None:
        return Checkpoint(learner, None, extra)
    with Allowance(numbers):
        fresh = learner.begin(fields["batch_size"])
    check_state(fields, fresh)
    state = type(fresh)(**fields)
    learner.predict(state)  # has no side effects, and runs the learner's own checks
    return Checkpoint(learner, state, extra)


def _fields(state: State) -> dict[str, Any]:
    return {field.name: getattr(state, field.name) for field in dataclasses.fields(state)}


FACTORIES = ("empty", "zeros", "ones", "full", "rand", "new_")
SPARE = 1_000_000
"""Numbers that a learner may allocate beyond those of its file."""
TIMES = 16
"""Numbers that a learner may allocate for each one in its file: gates, optimiser state and work space are copies."""


class Allowance(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Inside, tensors are made up to a total that is in proportion to `numbers`; the next one raises ValueError first.

    >>> import torch
    >>> with Allowance(10):
    ...     torch.zeros(10**6, 10**6)
    Traceback (most recent call last):
    ValueError: its sizes ask for 1,000,000,000,000 numbers, and the file holds 10
    """

    def __init__(self, numbers: int) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.numbers = numbers
        self.made = 0

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # nothing is compiled here, and importing the compiler takes a second

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func.__name__.startswith(FACTORIES):
            size = next((each for each in args if isinstance(each, list | tuple)), ())
            self.made += math.prod(size)
            if self.made > TIMES * self.numbers + SPARE:
                raise ValueError(f"its sizes ask for {self.made:,} numbers, and the file holds {self.numbers:,}")
        return func(*args, **(kwargs or {}))


def check_options(options: Any, tree: Any, numbers: int) -> None:
    """Refuse options that are not JSON values, or layers too large for the weights in the file."""
    if not isinstance(options, dict):
        raise ValueError(f"expected the options as a dict, got {type(options).__name__}")
    if "device" in options:
        raise ValueError(f"the device is not for a file to choose: {options['device']!r:.60}")
    if any(isinstance(value, float) and math.isnan(value) for value in options.values()):
        raise ValueError("an option is NaN")
    if not isinstance(tree, Mapping) or "weights" not in tree:
        return
    hidden = options.get("hidden_sizes", options.get("hidden_size", ()))
    sizes = [options.get("input_size", 0), *(hidden if isinstance(hidden, list | tuple) else [hidden])]
    if not all(isinstance(size, int) for size in sizes):
        raise ValueError(f"expected sizes that are integers, got {sizes!r:.60}")
    least = sum(below * above for below, above in pairwise(sizes))
    if least > numbers:
        raise ValueError(f"its sizes ask for {least:,} weights or more, and the file holds {numbers:,} numbers")


def check_like(given: Any, fresh: Any, where: str) -> None:
    """Refuse a tree whose tensors differ in shape or dtype from those of a new learner.

    What is empty or None in the fresh tree comes to be later, and may hold anything; a dimension of 0 may have grown.
    Keys that only one of them has are the learner's business: it knows what earlier versions wrote.
    """
    if isinstance(fresh, Tensor):
        if not isinstance(given, Tensor) or given.dtype != fresh.dtype or not _same_shape(given, fresh):
            raise ValueError(f"{where}: expected {_described(fresh)}, got {_described(given)}")
    elif isinstance(fresh, Mapping):
        if not isinstance(given, Mapping):
            raise ValueError(f"{where}: expected a dict, got {_described(given)}")
        for key in fresh.keys() & given.keys():
            check_like(given[key], fresh[key], f"{where}.{key}")
    elif isinstance(fresh, list | tuple):
        if not isinstance(given, list | tuple) or (fresh and len(given) != len(fresh)):
            raise ValueError(f"{where}: expected {_described(fresh)}, got {_described(given)}")
        for index, (own, other) in enumerate(zip(given, fresh, strict=False)):
            check_like(own, other, f"{where}.{index}")
    elif fresh is not None:
        number = isinstance(fresh, int | float) and not isinstance(fresh, bool)
        if not isinstance(given, int | float if number else type(fresh)) or (number and isinstance(given, bool)):
            raise ValueError(f"{where}: expected {_described(fresh)}, got {_described(given)}")
        if number and isinstance(fresh, int) and fresh >= 0 and not 0 <= given < 2**63:
            raise ValueError(f"{where}: expected a count, got {given!r:.60}")


def check_state(fields: Mapping[str, Any], fresh: Any) -> None:
    """Refuse a state whose fields differ in kind from those of a new one with as many rows."""
    rows, dtype = fresh.batch_size, _precision(vars(fresh))
    for field in dataclasses.fields(fresh):
        name, own = field.name, getattr(fresh, field.name)
        if name not in fields:
            continue
        given = fields[name]
        check_like(given, own, f"state.{name}")
        fixed = isinstance(own, str) or (isinstance(own, tuple) and own and all(isinstance(n, int) for n in own))
        if fixed and given != own:
            raise ValueError(f"state.{name}: expected {own!r}, got {given!r:.60}")
        if own is None or (isinstance(own, list | tuple) and not own):
            _check_rows(given, rows, dtype, f"state.{name}")
    seen = fields.get("seen")
    if seen is not None and (not isinstance(seen, Tensor) or seen.dtype != torch.bool):
        raise ValueError(f"state.seen: expected True or False for each row, got {_described(seen)}")
    check_count(fields.get("steps", 0), "state.steps")


def check_count(value: Any, where: str) -> int:
    if type(value) is not int or not 0 <= value < 2**63:
        raise ValueError(f"{where}: expected a count, got {value!r:.60}")
    return value


def _check_rows(tree: Any, rows: int, dtype: torch.dtype | None, where: str) -> None:
    if isinstance(tree, Tensor):
        if not tree.ndim or len(tree) != rows:
            raise ValueError(f"{where}: expected {rows} rows, got {_described(tree)}")
        if tree.is_floating_point() and tree.dtype != (dtype or tree.dtype):
            raise ValueError(f"{where}: expected {dtype}, got {_described(tree)}")
    elif isinstance(tree, list | tuple):
        for item in tree:
            _check_rows(item, rows, dtype, where)
    elif isinstance(tree, str | dict):
        raise ValueError(f"{where}: expected tensors of {rows} rows, got {_described(tree)}")


def _precision(tree: Any) -> torch.dtype | None:
    """The type of the first real numbers in a tree."""
    if isinstance(tree, Tensor):
        return tree.dtype if tree.is_floating_point() else None
    parts = tree.values() if isinstance(tree, Mapping) else tree if isinstance(tree, list | tuple) else ()
    return next((found for found in map(_precision, parts) if found is not None), None)


def _same_shape(given: Tensor, fresh: Tensor) -> bool:
    return given.ndim == fresh.ndim and all(own in (0, n) for n, own in zip(given.shape, fresh.shape, strict=True))


def _described(tree: Any) -> str:
    if isinstance(tree, Tensor):
        return f"a tensor of shape {tuple(tree.shape)} in {str(tree.dtype).removeprefix('torch.')}"
    if isinstance(tree, list | tuple):
        return f"{len(tree)} items"
    return f"a {type(tree).__name__}"


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


FORMAT = "ptncn-checkpoint"
FORMAT_VERSION = 2
KEYS = {"format", "format_version", "ptncn_version", "body", "sha256"}
MOST_HEADER_BYTES = 100_000_000
"""As in safetensors."""
BLANK = "0" * 64


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
