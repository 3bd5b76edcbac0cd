"""One safe file that resumes a run bit for bit.

A checkpoint is a safetensors file: tensors as they are, and everything else as JSON in its metadata. Loading
one builds a learner from the registry by name and copies numbers into it; nothing in the file is executed.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save as to_bytes
from torch import Tensor

from ptncn.files import write_atomically
from ptncn.learner import Learner, State

FORMAT = "ptncn-checkpoint"
FORMAT_VERSION = 1


class CheckpointError(ValueError):
    """The file is not a checkpoint that this version can load; the message says which and why."""


class Checkpoint(NamedTuple):
    learner: Learner
    state: Any
    """The state that was saved beside the learner, or None."""
    extra: Any
    """Whatever else was saved: a tree of tensors, numbers, strings, lists and dicts."""


def save(path: str | os.PathLike[str], learner: Learner, state: State | None = None, extra: Any = None) -> None:
    """Write learner, state and `extra` to `path`, atomically: the old file stays until the new one is whole."""
    from ptncn import __version__

    tensors: dict[str, Tensor] = {}
    body = {
        "kind": learner.kind,
        "options": learner.options(),
        "learner": _flatten(learner.snapshot(), "learner", tensors),
        "state": None if state is None else _flatten(_fields(state), "state", tensors),
        "extra": _flatten(extra, "extra", tensors),
    }
    text = json.dumps(body, sort_keys=True)
    metadata = {
        "format": FORMAT,
        "format_version": str(FORMAT_VERSION),
        "ptncn_version": __version__,
        "body": text,
        "sha256": _digest(text, tensors),
    }
    write_atomically(Path(path), to_bytes(tensors, metadata))


def load(path: str | os.PathLike[str], **options: Any) -> Checkpoint:
    """Read what `save` wrote. `options` replace saved ones, such as an activation of one's own."""
    from ptncn.learners import make

    path = Path(path)
    body, tensors = _read(path)
    try:
        learner = make(body["kind"], **{**body["options"], **options})
        learner.restore(_unflatten(body["learner"], tensors))
        state = None
        if body["state"] is not None:
            fields = _unflatten(body["state"], tensors)
            template = learner.begin(fields["batch_size"])
            state = type(template)(**fields)
        return Checkpoint(learner, state, _unflatten(body["extra"], tensors))
    except (KeyError, TypeError, ValueError, RuntimeError, AttributeError) as error:
        raise CheckpointError(f"{path}: the checkpoint does not fit the learner it names: {error}") from error


def _read(path: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no such checkpoint")
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118 (not a dict)
    except (SafetensorError, OSError, ValueError) as error:
        raise CheckpointError(f"{path}: not a checkpoint, or cut short: {error}") from error
    if metadata.get("format") != FORMAT:
        raise CheckpointError(f"{path}: a safetensors file, but not a ptncn checkpoint")
    if metadata.get("format_version") != str(FORMAT_VERSION):
        raise CheckpointError(
            f"{path}: checkpoint format {metadata.get('format_version')}; this version reads {FORMAT_VERSION} "
            f"(the file was written by ptncn {metadata.get('ptncn_version')})"
        )
    text = metadata.get("body", "")
    if _digest(text, tensors) != metadata.get("sha256"):
        raise CheckpointError(f"{path}: the content does not match its checksum: the file was altered")
    body = json.loads(text)
    return body, tensors


def _digest(text: str, tensors: Mapping[str, Tensor]) -> str:
    digest = hashlib.sha256(text.encode())
    for key in sorted(tensors):
        tensor = tensors[key].detach().cpu().contiguous()
        digest.update(f"{key}{tensor.dtype}{tuple(tensor.shape)}".encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def _fields(state: State) -> dict[str, Any]:
    return {field.name: getattr(state, field.name) for field in dataclasses.fields(state)}


def _flatten(tree: Any, name: str, tensors: dict[str, Tensor]) -> Any:
    """The tree with each tensor moved to `tensors` and named in its place; containers are tagged by type."""
    if tree is None or isinstance(tree, bool | int | float | str):
        return tree
    if isinstance(tree, Tensor):
        tensors[name] = tree.detach().clone().contiguous()
        return {"tensor": name}
    if isinstance(tree, list | tuple):
        tag = "list" if isinstance(tree, list) else "tuple"
        return {tag: [_flatten(item, f"{name}.{index}", tensors) for index, item in enumerate(tree)]}
    if isinstance(tree, Mapping):
        return {"dict": [[key, _flatten(value, f"{name}.{key}", tensors)] for key, value in tree.items()]}
    raise TypeError(f"{name} is a {type(tree).__name__}; checkpoints hold tensors, numbers, text, lists and dicts")


def _unflatten(tree: Any, tensors: Mapping[str, Tensor]) -> Any:
    if not isinstance(tree, dict):
        return tree
    ((tag, content),) = tree.items()
    if tag == "tensor":
        return tensors[content].clone()
    if tag == "dict":
        return {key: _unflatten(value, tensors) for key, value in content}
    items = [_unflatten(item, tensors) for item in content]
    return items if tag == "list" else tuple(items)
