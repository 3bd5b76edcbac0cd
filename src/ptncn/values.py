"""Option values given as text: `--option lr=1e-3`, `--option biases=False`."""

from __future__ import annotations

import ast
from typing import Any

WORDS = {"true": True, "false": False, "none": None, "null": None}


def parse_value(text: str) -> Any:
    """The Python value that a text stands for; text that is no number, list, dict or constant stays text.

    >>> [parse_value(text) for text in ("True", "false", "None", "1e-3", "[1, 2]", "adam")]
    [True, False, None, 0.001, [1, 2], 'adam']
    """
    if text.strip().lower() in WORDS:
        return WORDS[text.strip().lower()]
    try:
        return ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return text


def parse_option(text: str) -> tuple[str, Any]:
    """The name and the value of NAME=VALUE.

    >>> parse_option("hidden_sizes=[500, 500]")
    ('hidden_sizes', [500, 500])
    """
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise ValueError(f"option {text!r}: expected NAME=VALUE, such as lr=0.001")
    return name, parse_value(value)
