"""The formats that streams are read from and written to: the one list of them.

Other packages add theirs through the entry-point group `ptncn.formats`; each entry is a `Format`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from ptncn.messages import unknown
from ptncn.registry import Registry
from ptncn.streaming.errors import StreamError
from ptncn.streaming.sources import Source
from ptncn.streaming.sources.csv import CsvReader
from ptncn.streaming.sources.files import COMPRESSIONS
from ptncn.streaming.sources.jsonl import JsonReader
from ptncn.streaming.sources.lines import LineReader
from ptncn.streaming.sources.parquet import ParquetReader
from ptncn.streaming.writers import CsvWriter, JsonWriter, Writer


@dataclass
class Input:
    """A file that is to be read, and how.

    Arguments:
        path: "-" is standard input; a name that ends in .gz or .zst is decompressed.
        follow: wait for more at the end, like `tail -F`.
        delimiter, header: of CSV, see `CsvReader`.
        longest: bytes that a line may have.
        poll: seconds between two looks at a file that is followed.
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
    """How rows are read and results written. A format without a reader or a writer serves one way only."""

    about: str
    extensions: tuple[str, ...]
    reader: Callable[[Input], Source] | None = None
    writer: Callable[[], Writer] | None = None
    begins_with: tuple[bytes, ...] = ()
    """First characters by which content is recognised where the file name does not say."""


def _read_csv(file: Input) -> Source:
    return CsvReader(file.lines, delimiter=file.delimiter, header=file.header)


def _read_parquet(file: Input) -> Source:
    if file.path == "-" or file.follow:
        raise StreamError("a Parquet file is read as a whole: it can neither come through a pipe nor be followed")
    return ParquetReader(file.path)


FORMATS = Registry[Format](
    "stream format",
    "ptncn.formats",
    {
        "csv": Format("comma-separated values", (".csv", ".tsv"), _read_csv, CsvWriter),
        "jsonl": Format(
            "one JSON object a line",
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
    """The format that a file name stands for, compressed or not.

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

    Without a format the end of the name decides, then the first character: a brace begins JSON lines.
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
    """A writer of a format; None takes the one of the file name, or CSV."""
    format = format or (format_of(path) if path else None) or "csv"
    if format not in writable():
        raise ValueError(unknown("output format", format, writable()))
    writer = FORMATS.find(format).writer
    assert writer is not None
    return writer()
