"""Rows of CSV with the byte offset of each; quoted fields go through Python's csv module."""

from __future__ import annotations

import csv
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ptncn.streaming.errors import RowError, StreamError
from ptncn.streaming.sources import Block
from ptncn.streaming.sources.lines import Line, LineReader

DELIMITERS = ",;\t|"


class CsvReader:
    """The first line names the columns. So does a later one that repeats at least half of the names and has no
    number in it: files that were joined have several headers, and the last one counts.

    Arguments:
        delimiter: between two fields; None takes the most frequent of `, ; tab |` in the first line.
        header: False if there is none; the columns are then called x0, x1, …
    """

    def __init__(self, lines: LineReader, *, delimiter: str | None = None, header: bool = True) -> None:
        if delimiter is not None and len(delimiter) != 1:
            raise ValueError(f"delimiter: expected one character, got {delimiter!r}")
        self.name = lines.name
        self._lines, self._header = lines, header
        self._delimiter = delimiter
        self._names: tuple[str, ...] = ()
        self._known: frozenset[str] = frozenset()
        self._ahead: deque[Line] = deque()
        self._ended = False
        self._row: list[Line] = []
        self._before: tuple[Line | None, tuple[str, ...]] = (None, ())
        self._taken: list[tuple[Line, tuple[str, ...]]] = []  # the last line of each row of the block, its columns

    def read(self, most: int) -> Block | None:
        if self._taken:
            self._before, self._taken = self._taken[-1], []
        if not self._names and not self._begin():
            return Block(())
        block = Block(self._names)
        while len(block) < most:
            if not self._ahead and (block.rows or not self._fetch(most)):
                break
            try:
                fields = self._next_fields()
                number = self._row[0].number
                if not self._known.isdisjoint(fields) and self._is_header(fields):
                    self._ahead.extendleft(reversed(self._row))
                    if block.rows:
                        break
                    for _ in self._row:
                        self._ahead.popleft()
                    self._take_names(fields, number)
                    block.names = self._names
                    continue
                if not fields:
                    continue
                if len(fields) != len(self._names):
                    raise RowError(self.name, number, f"{len(fields)} fields; the header names {len(self._names)}")
            except RowError:
                if block.rows:
                    self._ahead.extendleft(reversed(self._row))
                    break  # first the rows before it
                raise
            block.rows.append(fields)
            block.lines.append(number)
            self._taken.append((self._row[-1], self._names))
        return None if self._ended and not block.rows and not self._ahead else block

    def position(self, count: int | None = None) -> dict[str, Any]:
        taken = self._taken if count is None else self._taken[:count]
        line, names = taken[-1] if taken else self._before
        return {**self._lines.position_after(line), "names": list(names), "delimiter": self._delimiter}

    def seek(self, position: Mapping[str, Any], *, live: bool = False) -> None:
        """A live pipe may or may not repeat its header."""
        line = self._lines.seek(position, live=live)
        self._delimiter = position["delimiter"]
        if position["names"]:
            self._take_names(position["names"], 1)
        self._before = line, self._names

    def _begin(self) -> bool:
        """Find the columns; False if nothing is there yet."""
        try:
            if not self._fetch(1):
                if not self._ended:
                    return False
                raise StreamError(f"{self.name}: empty; a line with the names of the columns was expected")
            if self._delimiter is None:
                text = self._ahead[0].decode(self.name)
                self._delimiter = max(DELIMITERS, key=text.count)
            while not (fields := self._next_fields()):
                if not self._ahead and not self._fetch(1) and self._ended:
                    raise StreamError(f"{self.name}: blank; a line with the names of the columns was expected")
        except RowError as error:
            raise StreamError(str(error)) from error
        if not self._header:
            self._ahead.extendleft(reversed(self._row))
            fields = [f"x{index}" for index in range(len(fields))]
        elif all(_is_number(field) for field in fields):
            raise StreamError(
                f"{self.name}: line {self._row[0].number}: numbers where the names of the columns were expected; "
                f"use --no-header if there are none"
            )
        self._take_names(fields, self._row[0].number)
        return True

    def _fetch(self, most: int) -> bool:
        """Read more lines; False if there are none now, and `_ended` if there never will be."""
        lines = self._lines.read(most)
        self._ended = lines is None
        self._ahead.extend(lines or ())
        return bool(lines)

    def _take_names(self, fields: list[str], line: int) -> None:
        names = [field.strip() or f"column{index + 1}" for index, field in enumerate(fields)]
        for index, name in enumerate(names):
            if name in names[:index]:
                raise StreamError(f"{self.name}: line {line}: two columns are called {name!r}; rename one of them")
        self._names, self._known = tuple(names), frozenset(names)

    def _is_header(self, fields: list[str]) -> bool:
        known = sum(field.strip() in self._known for field in fields)
        return 2 * known >= len(self._names) and not any(_is_number(field) for field in fields)

    def _next_fields(self) -> list[str]:
        """The fields of the next row, none for a blank one; a bad row takes no more than its first line with it."""
        assert self._delimiter is not None
        line = self._ahead.popleft() if self._ahead else None
        self._row = [] if line is None else [line]
        if line is None:
            return []
        data = line.data
        if b'"' in data or (b"\r" in data and b"\r" in data.removesuffix(b"\n").removesuffix(b"\r")):
            self._ahead.appendleft(line)
            return self._next_quoted()
        text = line.decode(self.name).rstrip("\r\n")
        return text.split(self._delimiter) if text else []

    def _next_quoted(self) -> list[str]:
        self._row = []
        try:
            return next(csv.reader(_Texts(self._next_text), delimiter=self._delimiter or ",", strict=True))
        except StopIteration:
            return []
        except (csv.Error, RowError) as error:
            if not self._row:
                raise  # the line was too long to be read at all
            self._ahead.extendleft(reversed(self._row[1:]))
            del self._row[1:]
            if isinstance(error, RowError):
                raise
            raise RowError(self.name, self._row[0].number, f"not CSV: {error}") from error

    def _next_text(self) -> str:
        """The next line of a quoted field; waits for it."""
        while not self._ahead:
            if not self._fetch(1) and self._ended:
                raise StopIteration
        line = self._ahead.popleft()
        self._row.append(line)
        if len(self._row) > 1 and line.end - self._row[0].start > self._lines.longest:
            raise RowError(
                self.name,
                self._row[0].number,
                f"a quoted field goes on for more than {self._lines.longest:,} bytes; is a quote missing?",
            )
        return line.decode(self.name)


class _Texts:
    """An iterator that survives an exception, which a generator does not."""

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
