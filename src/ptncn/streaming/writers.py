"""Tables as lines of text: CSV, or JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol


@dataclass(slots=True)
class Field:
    """One column of a table.

    Arguments:
        name: its name in a flat table: `load.ahead1`.
        path: its place in a nested object: ("forecast", 0, "load").
        values: one a row.
        kind: "whole" numbers; "exact" floats with all their digits; "float" with nine; "text", with None for nothing;
            "flag", 0 or 1. A NaN is written as nothing.
    """

    name: str
    path: tuple[str | int, ...]
    values: Sequence[Any]
    kind: Literal["whole", "exact", "float", "text", "flag"]


Table = list[Field]


class Writer(Protocol):
    def header(self, table: Table) -> str:
        """What comes before the first line."""

    def lines(self, table: Table) -> str:
        """A line for each row."""


class CsvWriter:
    """A field for each column of the table, by its flat name.

    >>> table = [Field("a", ("a",), [1.5, float("nan")], "exact"), Field("note", ("note",), ["x,y", None], "text")]
    >>> print(CsvWriter().header(table) + CsvWriter().lines(table), end="")
    a,note
    1.5,"x,y"
    ,
    """

    def header(self, table: Table) -> str:
        return ",".join(_quoted(field.name) for field in table) + "\n"

    def lines(self, table: Table) -> str:
        template = ",".join(_conversion(field) for field in table) + "\n"
        return _fill(template, [_column(field, "", _quoted) for field in table])


class JsonWriter:
    """An object a line, nested as the paths of the table say.

    >>> table = [Field("a", ("seen", "a"), [1.5, float("nan")], "exact"), Field("b", ("b",), [1, 0], "flag")]
    >>> print(JsonWriter().lines(table), end="")
    {"seen":{"a":1.5},"b":true}
    {"seen":{"a":null},"b":false}
    """

    def header(self, table: Table) -> str:
        return ""

    def lines(self, table: Table) -> str:
        root: dict[str, Any] = {}
        for index, field in enumerate(table):
            _place(root, field.path, f"\0{index}\0")
        template = json.dumps(root, ensure_ascii=False, separators=(",", ":")).replace("%", "%%") + "\n"
        for index, field in enumerate(table):
            template = template.replace(
                f'"\\u0000{index}\\u0000"', _conversion(field) if field.kind != "flag" else "%s"
            )
        return _fill(template, [_column(field, "null", _as_json, ("false", "true")) for field in table])


def _fill(template: str, columns: list[Sequence[Any]]) -> str:
    return "".join([template % row for row in zip(*columns, strict=True)])


def _conversion(field: Field) -> str:
    if field.kind in ("exact", "float"):
        return "%s" if _has_gaps(field.values) else "%r" if field.kind == "exact" else "%.9g"
    return "%s" if field.kind == "text" else "%d"


def _column(field: Field, nothing: str, text: Any, flags: tuple[str, str] | None = None) -> Sequence[Any]:
    """The values as the conversion wants them."""
    values = field.values
    if field.kind in ("exact", "float") and _has_gaps(values):
        form = "%r" if field.kind == "exact" else "%.9g"
        return [nothing if value != value else form % value for value in values]
    if field.kind == "text":
        return [nothing if value is None else text(value) for value in values]
    if field.kind == "flag" and flags is not None:
        return [flags[bool(value)] for value in values]
    return values


def _has_gaps(values: Sequence[float]) -> bool:
    total = sum(values)
    return total != total


def _quoted(value: Any) -> str:
    text = str(value)
    if any(mark in text for mark in ',"\n\r'):
        return '"' + text.replace('"', '""') + '"'
    return text


def _as_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _place(root: Any, path: tuple[str | int, ...], leaf: str) -> None:
    """Put a leaf into nested dicts and lists, which are made on the way."""
    node = root
    for step, after in zip(path, (*path[1:], None), strict=True):
        inner: Any = leaf if after is None else [] if isinstance(after, int) else {}
        if isinstance(step, int):
            if step == len(node):
                node.append(inner)
        elif step not in node:
            node[step] = inner
        node = node[step]
