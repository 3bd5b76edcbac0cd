"""Checkpoints: one file from which a run resumes bit for bit.

Loading one reads and verifies the file (`checkpoint_file.py`), compares sizes with the tensors, builds a learner by its
registry name and copies numbers into it. It never executes code from the file.
"""

from __future__ import annotations

import dataclasses
import json
import math
import os
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from ptncn.checkpoint_file import UNFIT, CheckpointError, encode, flatten, read, unflatten
from ptncn.learner import Learner, State
from ptncn.system import write_atomically

__all__ = [
    "Checkpoint",
    "CheckpointError",
    "check_count",
    "check_like",
    "load",
    "restore_state",
    "save",
    "stored_fields",
]

PARTS = {"kind", "options", "learner", "state", "extra"}


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
        "kind": learner.registry_name,
        "options": learner.options(),
        "learner": flatten(learner.snapshot(), "learner", tensors),
        "state": None if state is None else flatten(stored_fields(state), "state", tensors),
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
    state = restore_state(fields, fresh)
    learner.predict(state)  # has no side effects, and runs the learner's own checks
    return Checkpoint(learner, state, extra)


def stored_fields(state: State) -> dict[str, Any]:
    """The fields of a state by the names they have in files: `stored_as` in the field's metadata, or its own name."""
    return {_stored_name(field): getattr(state, field.name) for field in dataclasses.fields(state)}


def _stored_name(field: dataclasses.Field[Any]) -> str:
    name: str = field.metadata.get("stored_as", field.name)
    return name


FACTORIES = ("empty", "zeros", "ones", "full", "rand", "new_")
SPARE = 1_000_000
"""Numbers that a learner may allocate beyond those of its file."""
TIMES = 16
"""Numbers that a learner may allocate for each one in its file: gates, optimiser state and work space are copies."""


class Allowance(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Limits the total size of tensors made inside, in proportion to `numbers`; beyond it, ValueError is raised.

    >>> import torch
    >>> with Allowance(10):
    ...     torch.zeros(10**6, 10**6)
    Traceback (most recent call last):
    ValueError: its sizes require 1,000,000,000,000 numbers, but the file holds 10
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
                raise ValueError(f"its sizes require {self.made:,} numbers, but the file holds {self.numbers:,}")
        return func(*args, **(kwargs or {}))


def check_options(options: Any, tree: Any, numbers: int) -> None:
    """Refuse options that are not JSON values, or layers too large for the weights in the file."""
    if not isinstance(options, dict):
        raise ValueError(f"expected the options as a dict, got {type(options).__name__}")
    if "device" in options:
        raise ValueError(f"a file must not choose the device: {options['device']!r:.60}")
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
        raise ValueError(f"its sizes require at least {least:,} weights, but the file holds {numbers:,} numbers")


def check_like(loaded: Any, fresh: Any, where: str) -> None:
    """Refuse a tree whose tensors differ in shape or dtype from those of a new learner.

    Parts that are empty or None in the fresh tree are filled later and may hold anything; a dimension of 0 may have
    grown. Keys that only one tree has are left to the learner, which knows what earlier versions wrote.
    """
    if isinstance(fresh, Tensor):
        if not isinstance(loaded, Tensor) or loaded.dtype != fresh.dtype or not _same_shape(loaded, fresh):
            raise ValueError(f"{where}: expected {_described(fresh)}, got {_described(loaded)}")
    elif isinstance(fresh, Mapping):
        if not isinstance(loaded, Mapping):
            raise ValueError(f"{where}: expected a dict, got {_described(loaded)}")
        for key in fresh.keys() & loaded.keys():
            check_like(loaded[key], fresh[key], f"{where}.{key}")
    elif isinstance(fresh, list | tuple):
        if not isinstance(loaded, list | tuple) or (fresh and len(loaded) != len(fresh)):
            raise ValueError(f"{where}: expected {_described(fresh)}, got {_described(loaded)}")
        for index, (own, other) in enumerate(zip(loaded, fresh, strict=False)):
            check_like(own, other, f"{where}.{index}")
    elif fresh is not None:
        number = isinstance(fresh, int | float) and not isinstance(fresh, bool)
        if not isinstance(loaded, int | float if number else type(fresh)) or (number and isinstance(loaded, bool)):
            raise ValueError(f"{where}: expected {_described(fresh)}, got {_described(loaded)}")
        if number and isinstance(fresh, int) and fresh >= 0 and not 0 <= loaded < 2**63:
            raise ValueError(f"{where}: expected a count, got {loaded!r:.60}")


def restore_state(fields: Mapping[str, Any], fresh: Any) -> Any:
    """A state with these `stored_fields`, which must be like those of `fresh`, a new state with as many rows."""
    rows, dtype = fresh.batch_size, _precision(vars(fresh))
    attributes = {_stored_name(field): field.name for field in dataclasses.fields(fresh)}
    for name, attribute in attributes.items():
        own = getattr(fresh, attribute)
        if name not in fields:
            continue
        loaded = fields[name]
        check_like(loaded, own, f"state.{name}")
        fixed = isinstance(own, str) or (isinstance(own, tuple) and own and all(isinstance(n, int) for n in own))
        if fixed and loaded != own:
            raise ValueError(f"state.{name}: expected {own!r}, got {loaded!r:.60}")
        if own is None or (isinstance(own, list | tuple) and not own):
            _check_rows(loaded, rows, dtype, f"state.{name}")
    seen = fields.get("seen")
    if seen is not None and (not isinstance(seen, Tensor) or seen.dtype != torch.bool):
        raise ValueError(f"state.seen: expected True or False for each row, got {_described(seen)}")
    check_count(fields.get("steps", 0), "state.steps")
    unknown = fields.keys() - attributes.keys()
    if unknown:
        raise ValueError(f"state: unknown field {min(map(str, unknown))!r:.60}")
    return type(fresh)(**{attributes[name]: value for name, value in fields.items()})


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
    return next((dtype for dtype in map(_precision, parts) if dtype is not None), None)


def _same_shape(loaded: Tensor, fresh: Tensor) -> bool:
    return loaded.ndim == fresh.ndim and all(own in (0, n) for n, own in zip(loaded.shape, fresh.shape, strict=True))


def _described(tree: Any) -> str:
    if isinstance(tree, Tensor):
        return f"a tensor of shape {tuple(tree.shape)} in {str(tree.dtype).removeprefix('torch.')}"
    if isinstance(tree, list | tuple):
        return f"{len(tree)} items"
    return f"a {type(tree).__name__}"
