"""The right reader for a file."""

from __future__ import annotations

from pathlib import Path

from ptncn.streaming.csv_reader import CsvReader
from ptncn.streaming.errors import StreamError
from ptncn.streaming.json_reader import JsonReader
from ptncn.streaming.lines import LineReader
from ptncn.streaming.parquet_reader import ParquetReader

SUFFIXES = {
    ".csv": "csv",
    ".tsv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".parquet": "parquet",
    ".pq": "parquet",
}
FORMATS = ("csv", "jsonl", "parquet")


def open_source(
    path: str,
    format: str | None = None,
    *,
    follow: bool = False,
    delimiter: str | None = None,
    header: bool = True,
    longest: int = 1_000_000,
    poll: float = 0.1,
) -> CsvReader | JsonReader | ParquetReader:
    """A reader of rows; "-" is standard input.

    Without a format, the end of the name tells; and where it does not, the first character: a brace begins JSON lines.
    """
    if format is not None and format not in FORMATS:
        raise ValueError(f"unknown format {format!r}; choose one of: {', '.join(FORMATS)}")
    format = format or SUFFIXES.get(Path(path).suffix.lower())
    if format == "parquet":
        if path == "-" or follow:
            raise StreamError("a Parquet file is read as a whole: it can neither come through a pipe nor be followed")
        return ParquetReader(path)
    lines = LineReader(path, follow=follow, longest=longest, poll=poll)
    if format is None:
        format = "jsonl" if lines.peek().lstrip()[:1] in (b"{", b"[") else "csv"
    return JsonReader(lines) if format == "jsonl" else CsvReader(lines, delimiter=delimiter, header=header)
