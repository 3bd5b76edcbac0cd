"""The registry of input and output formats of streams, and the writers.

Other packages add theirs through the entry-point group `ptncn.formats`; each entry is a `Format`.
"""

from __future__ import annotations

import ctypes
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from ptncn.kernels import address, open_library
from ptncn.registry import Registry, unknown
from ptncn.streaming.lines import COMPRESSIONS, LineReader
from ptncn.streaming.readers import CsvReader, JsonReader, ParquetReader
from ptncn.streaming.sources import Source, StreamError


@dataclass(slots=True)
class Field:
    """One column of a table.

    Arguments:
        name: its name in a flat table: `load.ahead1`.
        path: its place in a nested object: ("forecast", 0, "load").
        values: one per row.
        kind: "whole" numbers; "exact" floats with all digits; "float" with nine; "text", empty for None; "flag", 0 or
            1. NaN is written as an empty field.
        origin: an array (n, …) of which the values are a column, and which one; neighbours are then copied together.
    """

    name: str
    path: tuple[str | int, ...]
    values: Sequence[Any] | NDArray[Any]
    kind: Literal["whole", "exact", "float", "text", "flag"]
    origin: tuple[NDArray[Any], int] | None = None


Table = list[Field]


class Writer(Protocol):
    def header(self, table: Table) -> str:
        """The text before the first line."""

    def lines(self, table: Table) -> str | bytes:
        """A line for each row; bytes are UTF-8."""


class CsvWriter:
    """One field per column, with flat names.

    >>> table = [Field("a", ("a",), [1.5, float("nan")], "exact"), Field("note", ("note",), ["x,y", None], "text")]
    >>> print(CsvWriter().header(table) + CsvWriter().lines(table).decode(), end="")
    a,note
    1.5,"x,y"
    ,
    """

    def header(self, table: Table) -> str:
        return ",".join(_quoted(field.name) for field in table) + "\n"

    def lines(self, table: Table) -> bytes:
        return _lines(["", *[","] * (len(table) - 1), "\n"], table, "", _quoted, ("0", "1"))


class JsonWriter:
    """One object per line, nested by the paths of the table.

    >>> table = [Field("a", ("seen", "a"), [1.5, float("nan")], "exact"), Field("b", ("b",), [1, 0], "flag")]
    >>> print(JsonWriter().lines(table).decode(), end="")
    {"seen":{"a":1.5},"b":true}
    {"seen":{"a":null},"b":false}
    """

    def header(self, table: Table) -> str:
        return ""

    def lines(self, table: Table) -> bytes:
        root: dict[str, Any] = {}
        for index, field in enumerate(table):
            _place(root, field.path, f"\0{index}\0")
        text = json.dumps(root, ensure_ascii=False, separators=(",", ":")) + "\n"
        parts = re.split(r'"\\u0000(\d+)\\u0000"', text)  # literals, and between them the numbers of the fields
        ordered = [table[int(index)] for index in parts[1::2]]
        return _lines(parts[::2], ordered, "null", _as_json, ("false", "true"))


def _lines(
    literals: list[str], table: Table, nothing: str, text: Callable[[Any], str], flags: tuple[str, str]
) -> bytes:
    """A line for each row: the fields of the table between the literals. The longest run of floats is most of a wide
    table, and is written straight into the lines."""

    def column(run: range) -> list[str]:
        field = table[run.start]
        if field.kind == "float":
            return _format_rows(_gather(table[run.start : run.stop]), literals[run.start + 1 : run.stop], nothing)
        if field.kind == "exact":
            return [nothing if value != value else repr(value) for value in np.asarray(field.values).tolist()]
        if field.kind == "text":
            return [nothing if value is None else text(value) for value in field.values]
        if field.kind == "flag":
            return [flags[bool(value)] for value in field.values]
        return list(map(str, field.values))

    def join(before: str, runs: list[range]) -> list[bytes]:
        """For each row, the text of the runs, with a literal before them and after each."""
        template = before.replace("%", "%%") + "".join("%s" + literals[run.stop].replace("%", "%%") for run in runs)
        if not runs:
            return [before.encode()] * len(table[0].values)
        return [(template % row).encode() for row in zip(*map(column, runs), strict=True)]

    runs = _runs(table)
    at = max(range(len(runs)), key=lambda index: len(runs[index]) * (table[runs[index].start].kind == "float"))
    longest = runs[at]
    if table[longest.start].kind != "float":
        return b"".join(join(literals[0], runs))
    heads, tails = join(literals[0], runs[:at]), join(literals[longest.stop], runs[at + 1 :])
    values = _gather(table[longest.start : longest.stop])
    return _write_rows(values, literals[longest.start + 1 : longest.stop], nothing, heads, tails)


def _runs(table: Table) -> list[range]:
    """The fields that are formatted together: successive floats, and any other field by itself."""
    runs: list[range] = []
    for index, field in enumerate(table):
        if runs and field.kind == "float" == table[index - 1].kind:
            runs[-1] = range(runs[-1].start, index + 1)
        else:
            runs.append(range(index, index + 1))
    return runs


def _gather(fields: Table) -> NDArray[np.float64]:
    """(n, fields) their values."""
    values, at = np.empty((len(fields[0].values), len(fields))), 0
    while at < len(fields):
        end, origin = at + 1, fields[at].origin
        if origin is None:
            values[:, at] = fields[at].values
        else:
            whole, column = origin
            while end < len(fields) and _continues(fields[end].origin, whole, column + end - at):
                end += 1
            values[:, at:end] = whole[:, column : column + end - at]
        at = end
    return values


def _continues(origin: tuple[NDArray[Any], int] | None, whole: NDArray[Any], column: int) -> bool:
    return origin is not None and origin[0] is whole and origin[1] == column


def format_floats(columns: Sequence[Sequence[float] | NDArray[Any]], between: Sequence[str], nothing: str) -> list[str]:
    """Format the rows of some columns with nine digits, separated by `between`; NaN becomes `nothing`.

    >>> format_floats([[0.1, 1e20], [float("nan"), -2.5]], [";"], "-")
    ['0.1;-', '1e+20;-2.5']
    """
    values = np.stack([np.asarray(column, dtype=np.float64) for column in columns], axis=1)
    return _format_rows(values, between, nothing)


def _format_rows(values: NDArray[np.float64], between: Sequence[str], nothing: str) -> list[str]:
    rows = len(values)
    return _write_rows(values, between, nothing, [b""] * rows, [b"\n"] * rows).decode().split("\n")[:-1]


def _write_rows(
    values: NDArray[np.float64], between: Sequence[str], nothing: str, heads: list[bytes], tails: list[bytes]
) -> bytes:
    """The rows, separated by `between`, each after its head and before its tail; NaN becomes `nothing`."""
    library = _load_formatter()
    if library is None or not values.size:
        parts = [[nothing if value != value else f"{value:.9g}" for value in column.tolist()] for column in values.T]
        template = "%s" + "".join(text.replace("%", "%%") + "%s" for text in between)
        lines = [(template % row).encode() for row in zip(*parts, strict=True)]
        return b"".join(piece for line in zip(heads, lines, tails, strict=True) for piece in line)
    texts = [text.encode() for text in between]
    rows, width = values.shape
    empty = nothing.encode()
    ends, head_ends, tail_ends = map(_ends, (texts, heads, tails))
    size = int(rows * (ends[-1] + width * max(LONGEST, len(empty))) + head_ends[-1] + tail_ends[-1])
    out = np.empty(size, dtype=np.uint8)
    length = library.format_rows(
        address("values", values, np.float64, rows, width),
        ctypes.c_int64(rows),
        ctypes.c_int64(width),
        b"".join(texts),
        address("ends", ends, np.int64, width),
        empty,
        b"".join(heads),
        address("ends of heads", head_ends, np.int64, rows + 1),
        b"".join(tails),
        address("ends of tails", tail_ends, np.int64, rows + 1),
        address("out", out, np.uint8, size),
        ctypes.c_int64(size),
    )
    assert length >= 0
    return out[:length].tobytes()


def _ends(texts: Sequence[bytes]) -> NDArray[np.int64]:
    """Where texts that follow each other begin, and where the last ends."""
    return np.cumsum([0, *map(len, texts)], dtype=np.int64)


LONGEST = 24
"""Maximum characters of a number, as in `kernels/format.c`."""


@cache
def _load_formatter() -> ctypes.CDLL | None:
    return open_library("_format", {"format_rows": ctypes.c_int64})


def _quoted(value: Any) -> str:
    text = str(value)
    if any(mark in text for mark in ',"\n\r'):
        return '"' + text.replace('"', '""') + '"'
    return text


def _as_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _place(root: Any, path: tuple[str | int, ...], leaf: str) -> None:
    """Put a leaf into nested dicts and lists, creating them as needed."""
    node = root
    for step, after in zip(path, (*path[1:], None), strict=True):
        inner: Any = leaf if after is None else [] if isinstance(after, int) else {}
        if isinstance(step, int):
            if step == len(node):
                node.append(inner)
        elif step not in node:
            node[step] = inner
        node = node[step]


@dataclass
class Input:
    """An input file and how to read it.

    Arguments:
        path: "-" is standard input; a name that ends in .gz or .zst is decompressed.
        follow: wait for more at the end, like `tail -F`.
        delimiter, header: of CSV, see `CsvReader`.
        longest: maximum length of a line, in bytes.
        poll: seconds between two reads of a followed file.
    """

    path: str
    follow: bool = False
    delimiter: str | None = None
    header: bool = True
    longest: int = 1_000_000
    poll: float = 0.1

    @cached_property
    def lines(self) -> LineReader:
        return LineReader(self.path, follow=self.follow, longest=self.longest, poll=self.poll)


@dataclass(frozen=True)
class Format:
    """A reader of rows and a writer of results; either may be missing."""

    about: str
    extensions: tuple[str, ...]
    reader: Callable[[Input], Source] | None = None
    writer: Callable[[], Writer] | None = None
    begins_with: tuple[bytes, ...] = ()
    """First characters that identify the format if the file name does not."""


def _read_csv(file: Input) -> Source:
    return CsvReader(file.lines, delimiter=file.delimiter, header=file.header)


def _read_parquet(file: Input) -> Source:
    if file.path == "-" or file.follow:
        raise StreamError("a Parquet file is read as a whole: it cannot come from a pipe or be followed")
    return ParquetReader(file.path)


FORMATS = Registry[Format](
    "stream format",
    "ptncn.formats",
    {
        "csv": Format("comma-separated values", (".csv", ".tsv"), _read_csv, CsvWriter),
        "jsonl": Format(
            "one JSON object per line",
            (".jsonl", ".ndjson", ".json"),
            lambda file: JsonReader(file.lines),
            JsonWriter,
            (b"{", b"["),
        ),
        "parquet": Format("Apache Parquet", (".parquet", ".pq"), _read_parquet),
    },
)


def readable() -> list[str]:
    return [name for name, format in FORMATS.items() if format.reader is not None]


def writable() -> list[str]:
    return [name for name, format in FORMATS.items() if format.writer is not None]


def format_of(path: str) -> str | None:
    """The format by file name, compressed or not.

    >>> format_of("feed.csv.gz"), format_of("feed")
    ('csv', None)
    """
    suffixes = [suffix.lower() for suffix in Path(path).suffixes]
    if suffixes and suffixes[-1] in COMPRESSIONS:
        del suffixes[-1]
    return next((name for name, format in FORMATS.items() if suffixes[-1:] and suffixes[-1] in format.extensions), None)


def open_source(
    path: str,
    format: str | None = None,
    *,
    follow: bool = False,
    delimiter: str | None = None,
    header: bool = True,
    longest: int = 1_000_000,
    poll: float = 0.1,
) -> Source:
    """A source of rows; "-" is standard input. See `Input` for the options.

    Without a format, the file extension decides, then the first character: a brace means JSON lines.
    """
    if format is not None and format not in readable():
        raise ValueError(unknown("input format", format, readable()))
    file = Input(path, follow, delimiter, header, longest, poll)
    format = format or format_of(path)
    if format is None:
        first = file.lines.peek().lstrip()[:1]
        format = next((name for name, each in FORMATS.items() if first and first in each.begins_with), "csv")
    reader = FORMATS.find(format).reader
    assert reader is not None
    return reader(file)


def make_writer(format: str | None, path: str | None = None) -> Writer:
    """The writer of a format; None: by the file name, else CSV."""
    format = format or (format_of(path) if path else None) or "csv"
    if format not in writable():
        raise ValueError(unknown("output format", format, writable()))
    writer = FORMATS.find(format).writer
    assert writer is not None
    return writer()
