"""The protocol of sources, their errors, and a source for any iterable."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable


class StreamError(ValueError):
    """The stream cannot continue; the message says why and what was expected."""


class LineError(StreamError):
    """The stream cannot continue because of a line of the source."""

    def __init__(self, source: str, line: int, problem: str) -> None:
        super().__init__(f"{source}: line {line}: {problem}")
        self.line, self.problem = line, problem


class RowError(LineError):
    """One row of the source is bad; later rows may be good."""


@dataclass(slots=True)
class Block:
    """Consecutive rows with the same columns."""

    names: tuple[str, ...]
    rows: list[Sequence[Any]] = field(default_factory=list)
    """Numbers, text, or None where nothing was observed, in the order of `names`."""
    lines: list[int] = field(default_factory=list)
    """The line of each row in its file, or its number, from 1."""

    def __len__(self) -> int:
        return len(self.rows)


@runtime_checkable
class Source(Protocol):
    """A source returns rows in blocks, knows its position after each row, and can continue after a bad row."""

    name: str

    def read(self, most: int) -> Block | None:
        """Up to `most` available rows; an empty block if there are none yet, None at the end.

        A bad row raises a `RowError` after the rows before it have been returned; the next call continues after it.
        """

    def position(self, count: int | None = None) -> dict[str, Any]:
        """The position after the first `count` rows of the last block (None: all), as plain values for `seek`."""

    def seek(self, position: Mapping[str, Any], *, live: bool = False) -> None:
        """Continue from a position of the same source, reopened. `live`: a pipe that is already there."""


class IterableSource:
    """Rows from any iterable of arrays, sequences or dicts; the columns of an array are called x0, x1, …

    >>> IterableSource([[1.0, 2.0]]).read(1)
    Block(names=('x0', 'x1'), rows=[[1.0, 2.0]], lines=[1])
    """

    def __init__(self, rows: Iterable[Any], name: str = "source") -> None:
        self.name = name
        self._rows = iter(rows)
        self._read = 0
        self._before, self._lines = 0, [0]
        self._ahead: tuple[tuple[str, ...], Sequence[Any]] | None = None

    def read(self, most: int) -> Block | None:
        self._before = self._lines[-1] if self._lines else self._before
        block = self._read_block(most)
        self._lines = [] if block is None else block.lines
        return block

    def _read_block(self, most: int) -> Block | None:
        block: Block | None = None
        while block is None or len(block) < most:
            if self._ahead is None:
                row = next(self._rows, self)
                if row is self:
                    break
                self._read += 1
                self._ahead = self._split(row)
            names, values = self._ahead
            if block is None:
                block = Block(names)
            elif names != block.names:
                break  # rows with other columns start a new block
            block.rows.append(values)
            block.lines.append(self._read)
            self._ahead = None
        return block

    def position(self, count: int | None = None) -> dict[str, Any]:
        lines = self._lines if count is None else self._lines[:count]
        return {"rows": lines[-1] if lines else self._before}

    def seek(self, position: Mapping[str, Any], *, live: bool = False) -> None:
        """Skip the rows that were consumed: an iterable starts at its beginning unless it is live."""
        for _ in range(0 if live else position["rows"]):
            if next(self._rows, self) is self:
                raise StreamError(f"{self.name}: ends before row {position['rows']}, where the checkpoint was made")
        self._read = self._before = position["rows"]
        self._lines = []

    def _split(self, row: Any) -> tuple[tuple[str, ...], Sequence[Any]]:
        if isinstance(row, Mapping):
            return tuple(row), list(row.values())
        if hasattr(row, "tolist"):
            row = row.tolist()
        if isinstance(row, int | float):
            row = [row]
        if not isinstance(row, list | tuple):
            raise RowError(self.name, self._read, f"expected an array, a list or a dict, got {type(row).__name__}")
        return tuple(f"x{index}" for index in range(len(row))), row
