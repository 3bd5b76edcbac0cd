"""Readers of CSV, JSON lines and Parquet. Each row has its position, so that reading can resume after it."""

from __future__ import annotations

import csv
import json
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from itertools import islice
from typing import Any

from ptncn.streaming.lines import Line, LineReader
from ptncn.streaming.sources import Block, RowError, StreamError

DELIMITERS = ",;\t|"


class CsvReader:
    """Reads CSV. The first line names the columns. Because concatenated files have several headers, a later line that
    repeats at least half of the names and contains no number is a header too, and applies from there on.

    Arguments:
        delimiter: the field separator; None takes the most frequent of `, ; tab |` in the first line.
        header: False if there is no header; the columns are then called x0, x1, …
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
                    break  # return the rows before it first
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
        """A live pipe may or may not repeat the header."""
        line = self._lines.seek(position, live=live)
        self._delimiter = position["delimiter"]
        if position["names"]:
            self._take_names(position["names"], 1)
        self._before = line, self._names

    def _begin(self) -> bool:
        """Find the columns; False if no line is available yet."""
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
        """Read more lines; False if none are available, with `_ended` set at the end of the source."""
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
        """The fields of the next row, empty for a blank line. For a bad row, only its first line is consumed."""
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
                raise  # the line was too long to be read
            self._ahead.extendleft(reversed(self._row[1:]))
            del self._row[1:]
            if isinstance(error, RowError):
                raise
            raise RowError(self.name, self._row[0].number, f"not CSV: {error}") from error

    def _next_text(self) -> str:
        """The next line of a quoted field; waits until it is available."""
        while not self._ahead:
            if not self._fetch(1) and self._ended:
                raise StopIteration
        line = self._ahead.popleft()
        self._row.append(line)
        if len(self._row) > 1 and line.end - self._row[0].start > self._lines.longest:
            raise RowError(
                self.name,
                self._row[0].number,
                f"a quoted field is longer than {self._lines.longest:,} bytes; is a quote missing?",
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


class JsonReader:
    """Reads one JSON object or list per line. The columns of a list are called x0, x1, …; blank lines are skipped."""

    def __init__(self, lines: LineReader) -> None:
        self.name = lines.name
        self._lines = lines
        self._ahead: deque[Line] = deque()
        self._before: Line | None = None
        self._taken: list[Line] = []

    def read(self, most: int) -> Block | None:
        if self._taken:
            self._before, self._taken = self._taken[-1], []
        block = Block(())
        while len(block) < most:
            if not self._ahead:
                if block.rows:
                    break
                lines = self._lines.read(most)
                if lines is None:
                    return None
                if not lines:
                    break
                self._ahead.extend(lines)
            line = self._ahead[0]
            if line.data.strip():
                try:
                    names, values = self._parse(line)
                except RowError:
                    if block.rows:
                        break  # return the rows before it first
                    self._ahead.popleft()
                    raise
                if not block.rows:
                    block.names = names
                elif names != block.names:
                    break
                block.rows.append(values)
                block.lines.append(line.number)
                self._taken.append(line)
            self._ahead.popleft()
        return block

    def position(self, count: int | None = None) -> dict[str, Any]:
        taken = self._taken if count is None else self._taken[:count]
        return self._lines.position_after(taken[-1] if taken else self._before)

    def seek(self, position: Mapping[str, Any], *, live: bool = False) -> None:
        self._before = self._lines.seek(position, live=live)

    def _parse(self, line: Line) -> tuple[tuple[str, ...], Sequence[Any]]:
        try:
            values = json.loads(line.decode(self.name))
        except RecursionError:
            raise RowError(self.name, line.number, "not JSON that can be read: nested too deeply") from None
        except RowError:
            raise
        except ValueError as error:
            raise RowError(self.name, line.number, f"not JSON: {error}") from error
        if isinstance(values, dict):
            return tuple(values), list(values.values())
        if isinstance(values, list):
            return tuple(f"x{index}" for index in range(len(values))), values
        raise RowError(self.name, line.number, f"expected an object, got {type(values).__name__} {values!r:.40}")


BATCH = 1000


class ParquetReader:
    """Reads Parquet; needs pyarrow (`pip install ptncn[parquet]`). Line numbers are row numbers, from 1."""

    def __init__(self, path: str) -> None:
        try:
            pyarrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
        except ImportError as error:
            raise StreamError(f"{path}: Parquet needs pyarrow: pip install 'ptncn[parquet]'") from error
        self.name = path
        # what pyarrow raises for damaged files, such as invalid names and impossible sizes
        self._broken = (pyarrow.ArrowException, OSError, ValueError, OverflowError, MemoryError)
        try:
            self._file = parquet.ParquetFile(path)
            self._names = tuple(self._file.schema_arrow.names)
            meta = self._file.metadata
            self._groups = [meta.row_group(index).num_rows for index in range(meta.num_row_groups)]
        except self._broken as error:
            raise StreamError(f"{path}: not a Parquet file that can be read: {error}") from error
        if min(self._groups, default=0) < 0 or sum(self._groups) != meta.num_rows:
            raise StreamError(
                f"{path}: damaged: its row groups hold {sum(self._groups)} rows, but the file declares {meta.num_rows}"
            )
        self._rows = self._read_from(0)
        self._row = self._count = 0

    def read(self, most: int) -> Block | None:
        try:
            rows = list(islice(self._rows, most))
        except self._broken as error:
            raise StreamError(f"{self.name}: damaged after row {self._row}: {error}") from error
        self._count = len(rows)
        if not rows:
            return None
        lines = list(range(self._row + 1, self._row + 1 + len(rows)))
        self._row += len(rows)
        return Block(self._names, rows, lines)

    def position(self, count: int | None = None) -> dict[str, Any]:
        read = self._row if count is None else self._row - self._count + min(count, self._count)
        return {"rows": read, "of": self._file.metadata.num_rows}

    def seek(self, position: Mapping[str, Any], *, live: bool = False) -> None:
        if position["of"] != self._file.metadata.num_rows:
            raise StreamError(
                f"{self.name}: {self._file.metadata.num_rows} rows; the checkpoint was made with {position['of']}: "
                f"--resume needs the same file"
            )
        self._row, self._count = position["rows"], 0
        self._rows = self._read_from(self._row)

    def _read_from(self, row: int) -> Iterator[Sequence[Any]]:
        """Rows from `row` on; row groups before it are not read."""
        groups, left = list(range(len(self._groups))), sum(self._groups) - row
        while groups and self._groups[groups[0]] <= row:
            row -= self._groups[groups.pop(0)]
        if not groups or not self._names:
            return
        for batch in self._file.iter_batches(BATCH, row_groups=groups):
            part = batch.slice(min(row, batch.num_rows))
            yield from zip(*(column.to_pylist() for column in part.columns), strict=True)
            row = max(0, row - batch.num_rows)
            left -= part.num_rows
        if left:
            raise StreamError(f"{self.name}: damaged: {left} rows fewer than the file declares")
