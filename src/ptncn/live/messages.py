"""Messages between page and server, and the visitors who exchange them.

A visitor sends JSON text, `{"type": …, "value": …}`, and each type has its own check. The server sends JSON text, or a
packed message: a JSON header followed by an array in binary form.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
import struct
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from ptncn.registry import unknown

LARGEST = 4096
"""Maximum bytes of a visitor's message."""

Check = Callable[[Any], Any]
"""Returns the value of a message if it is valid; otherwise raises ValueError."""


class Command(NamedTuple):
    """A message that passed its check."""

    type: str
    value: Any


def parse(text: str, checks: Mapping[str, Check]) -> Command:
    """Parse a command; raise a ValueError with the reason if it is invalid.

    >>> parse('{"type": "objects", "value": 3}', {"objects": whole(1, 5)})
    Command(type='objects', value=3)
    """
    if len(text.encode(errors="replace")) > LARGEST:
        raise ValueError(f"message: expected at most {LARGEST:,} bytes")
    try:
        tree = json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        raise ValueError("message: expected JSON") from None
    if not isinstance(tree, dict) or not isinstance(tree.get("type"), str):
        raise ValueError('message: expected {"type": …, "value": …}')
    kind = tree["type"]
    if kind not in checks:
        raise ValueError(unknown("message", kind[:40], checks))
    try:
        return Command(kind, checks[kind](tree.get("value")))
    except ValueError as error:
        raise ValueError(f"{kind}: {error}") from None


def pack(header: Mapping[str, Any], payload: bytes = b"") -> bytes:
    """The length of the header in four bytes, the header padded to a multiple of eight, and the payload.

    >>> len(pack({"type": "frame"}, bytes(10)))
    34
    """
    text = json.dumps(header, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    text += b" " * (-(4 + len(text)) % 8)
    return struct.pack("<I", len(text)) + text + payload


def finite(value: float) -> float | None:
    """A number rounded to six digits, in a form that JSON can represent."""
    return float(f"{value:.6g}") if math.isfinite(value) else None


class Visitor:
    """One open page."""

    def __init__(self) -> None:
        self.view: dict[str, Any] = {}
        """The part of the stream that this visitor sees."""
        self.notices: deque[dict[str, Any]] = deque(maxlen=8)
        """Pending answers."""
        self._sent: dict[str, Any] = {}

    def changed(self, topic: str, version: Any) -> bool:
        """Whether this version of a topic is new to the visitor; marks it as sent."""
        if self._sent.get(topic, self) == version:
            return False
        self._sent[topic] = version
        return True


# Checks


def nothing(value: Any) -> None:
    if value is not None:
        raise ValueError("expected no value")


def flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"expected true or false, got {_short(value)}")
    return value


def whole(low: int, high: int) -> Check:
    def check(value: Any) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
            raise ValueError(f"expected a whole number from {low} to {high}, got {_short(value)}")
        return value

    return check


def number(low: float, high: float) -> Check:
    def check(value: Any) -> float:
        if not isinstance(value, int | float) or isinstance(value, bool) or not low <= value <= high:
            raise ValueError(f"expected a number from {low} to {high}, got {_short(value)}")
        return float(value)

    return check


def one_of(choices: Callable[[], list[str]]) -> Check:
    """The choices are looked up at each check, because they may change."""

    def check(value: Any) -> str:
        if not isinstance(value, str) or value not in choices():
            raise ValueError(f"expected one of {', '.join(choices())}, got {_short(value)}")
        return value

    return check


def text(longest: int) -> Check:
    def check(value: Any) -> str:
        if not isinstance(value, str) or len(value) > longest:
            raise ValueError(f"expected a string of at most {longest} characters, got {_short(value)}")
        return value

    return check


def optional(check: Check) -> Check:
    return lambda value: None if value is None else check(value)


def fields(**checks: Check) -> Check:
    """An object with exactly these fields; a missing one counts as null."""

    def check(value: Any) -> dict[str, Any]:
        if not isinstance(value, dict) or not value.keys() <= checks.keys():
            raise ValueError(f"expected an object with {', '.join(checks)}")
        checked = {}
        for name, each in checks.items():
            try:
                checked[name] = each(value.get(name))
            except ValueError as error:
                raise ValueError(f"{name}: {error}") from None
        return checked

    return check


def grey_bytes(count: int) -> Check:
    """Pixels in base64, one byte each."""

    def check(value: Any) -> bytes:
        try:
            pixels = base64.b64decode(value, validate=True) if isinstance(value, str) else b""
        except (ValueError, binascii.Error):
            pixels = b""
        if len(pixels) != count:
            raise ValueError(f"expected {count} pixels in base64")
        if not any(pixels):
            raise ValueError("expected a drawing, got an empty one")
        return pixels

    return check


def _short(value: Any) -> str:
    return repr(value)[:40]


def _no_constant(name: str) -> float:
    raise ValueError(name)
