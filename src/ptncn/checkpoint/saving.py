"""Save a learner with its state, and load it again."""

from __future__ import annotations

import dataclasses
import json
import os
from pathlib import Path
from typing import Any, NamedTuple

from torch import Tensor

from ptncn.checkpoint.container import CheckpointError, encode, flatten, read, unflatten
from ptncn.checkpoint.fit import Allowance, check_like, check_options, check_state
from ptncn.learner import Learner, State
from ptncn.system import write_atomically

PARTS = {"kind", "options", "learner", "state", "extra"}
UNFIT = (LookupError, TypeError, ValueError, RuntimeError, AttributeError, ArithmeticError, MemoryError)
"""What building a learner from a file that was made up may raise."""


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
        "learner": flatten(learner.snapshot(), "learner", tensors),
        "state": None if state is None else flatten(_fields(state), "state", tensors),
        "extra": flatten(extra, "extra", tensors),
    }
    write_atomically(Path(path), encode(json.dumps(body, sort_keys=True), tensors, __version__))


def load(path: str | os.PathLike[str], **options: Any) -> Checkpoint:
    """Read what `save` wrote. `options` replace saved ones, such as an activation of your own."""
    path = Path(path)
    text, tensors = read(path)
    try:
        return _build(text, tensors, options)
    except UNFIT as error:
        raise CheckpointError(f"{path}: the checkpoint does not fit the learner it names: {error}") from error


def _build(text: str, tensors: dict[str, Tensor], options: dict[str, Any]) -> Checkpoint:
    from ptncn.learners import make

    body = json.loads(text)
    if not isinstance(body, dict) or set(body) != PARTS:
        raise ValueError(f"expected {', '.join(sorted(PARTS))}")
    numbers = sum(tensor.numel() for tensor in tensors.values())
    learnt, fields, extra = (unflatten(body[part], tensors) for part in ("learner", "state", "extra"))
    if tensors:
        raise ValueError(f"nothing refers to the tensor {min(tensors)!r:.60}")
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
    return Checkpoint(learner, type(fresh)(**fields), extra)


def _fields(state: State) -> dict[str, Any]:
    return {field.name: getattr(state, field.name) for field in dataclasses.fields(state)}
