"""Rows of CSV, through the csv module of Python, with the byte offset of each."""

from __future__ import annotations

import csv
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ptncn.streaming.errors import RowError, StreamError
from ptncn.streaming.lines import Line, LineReader
from ptncn.streaming.source import Row

DELIMITERS = ",;\t|"


class CsvReader:
    """The first line names the columns. So does a later one that repeats at least half of the names and has no
    number in it: files that were joined have several headers, and the last one counts.

    Arguments:
        delimiter: between two fields; None takes the likeliest of `, ; tab |` in the first line.
        header: False if there is none; the columns are then called x0, x1, …
    """

    nan_is_missing = False

    def __init__(self, lines: LineReader, *, delimiter: str | None = None, header: bool = True) -> None:
        self.name = lines.name
        self._lines, self._header = lines, header
        self._delimiter = delimiter
        self._names: list[str] = []
        self._names_set: frozenset[str] = frozenset()
        self._ahead: deque[Line] = deque()
        self._row: list[Line] = []
        self._before: tuple[Line, list[str]] | None = None
        self._done: tuple[Line, list[str]] | None = None  # the last line of the last good row, and its columns
        self._reader: Iterator[list[str]] | None = None

    @property
    def idle(self) -> Callable[[], None]:
        return self._lines.idle

    @idle.setter
    def idle(self, call: Callable[[], None]) -> None:
        self._lines.idle = call

    def __iter__(self) -> Iterator[Row]:
        return self

    def __next__(self) -> Row:
        if not self._names:
            self._begin()
        while True:
            fields = self._next_fields()
            line = self._row[0].number
            if not self._names_set.isdisjoint(fields) and self._is_header(fields):
                self._take_names(fields, line)
                continue
            if len(fields) != len(self._names):
                raise RowError(self.name, line, f"{len(fields)} fields; the header names {len(self._names)}")
            self._before, self._done = self._done, (self._row[-1], self._names)
            return Row(line, dict(zip(self._names, fields, strict=True)))

    def position(self) -> dict[str, Any]:
        line, names = self._done or (None, [])
        return {**self._lines.position_after(line), "names": names, "delimiter": self._delimiter}

    def reject(self) -> None:
        self._done = self._before

    def seek(self, position: Mapping[str, Any]) -> None:
        line = self._lines.seek(position)
        self._restore(position)
        self._done = None if line is None else (line, self._names)

    def continue_at(self, position: Mapping[str, Any]) -> None:
        """Go on with a live pipe, which may or may not say its header again."""
        self._lines.continue_at(position)
        self._restore(position)

    def _restore(self, position: Mapping[str, Any]) -> None:
        self._delimiter = position["delimiter"]
        if position["names"]:
            self._take_names(position["names"], 1)
            self._make_reader()

    def _begin(self) -> None:
        """Find the columns."""
        try:
            first = self._lines.read()
            if first is None:
                raise StreamError(f"{self.name}: empty; a line with the names of the columns was expected")
            if self._delimiter is None:
                text = self._decode(first)
                self._delimiter = max(DELIMITERS, key=text.count)
            self._ahead.append(first)
            self._make_reader()
            fields = self._next_fields()
        except RowError as error:
            raise StreamError(str(error)) from error
        except StopIteration:
            raise StreamError(f"{self.name}: blank; a line with the names of the columns was expected") from None
        if not self._header:
            self._ahead.extendleft(reversed(self._row))
            fields = [f"x{index}" for index in range(len(fields))]
        elif all(_is_number(field) for field in fields):
            raise StreamError(
                f"{self.name}: line {self._row[0].number}: numbers where the names of the columns were expected; "
                f"--no-header says that there are none"
            )
        self._take_names(fields, self._row[0].number)

    def _make_reader(self) -> None:
        assert self._delimiter is not None
        self._reader = csv.reader(_Texts(self._next_text), delimiter=self._delimiter, strict=True)

    def _take_names(self, fields: list[str], line: int) -> None:
        names = [field.strip() or f"column{index + 1}" for index, field in enumerate(fields)]
        for index, name in enumerate(names):
            if name in names[:index]:
                raise StreamError(f"{self.name}: line {line}: two columns are called {name!r}; give them other names")
        self._names, self._names_set = names, frozenset(names)

    def _is_header(self, fields: list[str]) -> bool:
        known = sum(field.strip() in self._names_set for field in fields)
        return 2 * known >= len(self._names) and not any(_is_number(field) for field in fields)

    def _next_fields(self) -> list[str]:
        """The fields of the next row that is not blank; a bad one takes no more than its first line with it."""
        assert self._reader is not None
        while True:
            self._row = []
            try:
                fields = next(self._reader)
            except (csv.Error, RowError) as error:
                if not self._row:
                    raise  # the line was too long to be read at all
                self._ahead.extendleft(reversed(self._row[1:]))
                if isinstance(error, RowError):
                    raise
                raise RowError(self.name, self._row[0].number, f"not CSV: {error}") from error
            if fields:
                return fields

    def _next_text(self) -> str:
        line = self._ahead.popleft() if self._ahead else self._lines.read()
        if line is None:
            raise StopIteration
        self._row.append(line)
        if len(self._row) > 1 and line.end - self._row[0].start > self._lines.longest:
            raise RowError(
                self.name,
                self._row[0].number,
                f"a quoted field goes on for more than {self._lines.longest:,} bytes; is a quote missing?",
            )
        return self._decode(line)

    def _decode(self, line: Line) -> str:
        try:
            return line.data.decode("utf-8-sig" if line.start == 0 else "utf-8")
        except UnicodeDecodeError as error:
            raise RowError(
                self.name,
                line.number,
                f"byte {error.start + 1} of the line, 0x{line.data[error.start]:02x}, is not UTF-8",
            ) from error


class _Texts:
    """An iterator that goes on after an exception, which a generator does not."""

    def __init__(self, call: Callable[[], str]) -> None:
        self._call = call

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        return self._call()


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
