"""Trees of tensors, numbers, strings, lists and dicts as JSON with the tensors beside it, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor


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
    """What `flatten` was given; takes each tensor out of `tensors`, so that those that nothing names are left over."""
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
