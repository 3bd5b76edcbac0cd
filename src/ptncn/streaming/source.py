"""What every source of rows is, and the one that wraps any iterable."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple, Protocol

from ptncn.streaming.errors import RowError, StreamError


class Row(NamedTuple):
    """One observation as it came."""

    line: int
    """Where it was: the line of a file, or the number of the row, from 1."""
    values: Mapping[str, Any]
    """By column: numbers, text, or None where nothing was observed."""


class Source(Protocol):
    """An iterator over rows that knows its position and outlives a bad row.

    `__next__` may raise a `RowError`; the next call then goes on with the row after the bad one.
    """

    name: str
    nan_is_missing: bool
    """Whether a NaN says "not observed" here, as in an array, or is a mistake, as in a file."""
    idle: Callable[[], None]
    """Called whenever the source is about to wait for more."""

    def __iter__(self) -> Iterator[Row]: ...

    def __next__(self) -> Row: ...

    def position(self) -> dict[str, Any]:
        """Where the row after the last good one begins: plain values for `seek` of the same source, opened anew."""

    def reject(self) -> None:
        """The last row was not good after all: `position` is before it."""

    def seek(self, position: Mapping[str, Any]) -> None:
        """Go on from a position."""


def nothing() -> None:
    """What a source does while it waits, unless told otherwise."""


class Rows:
    """Rows from any iterable of arrays, sequences or dicts; the columns of an array are called x0, x1, …

    >>> [row.values for row in Rows([[1.0, 2.0]])]
    [{'x0': 1.0, 'x1': 2.0}]
    """

    nan_is_missing = True

    def __init__(self, rows: Iterable[Any], name: str = "source") -> None:
        self.name = name
        self.idle: Callable[[], None] = nothing
        self._rows = iter(rows)
        self._read = 0
        self._before = self._good = 0

    def __iter__(self) -> Iterator[Row]:
        return self

    def __next__(self) -> Row:
        row = next(self._rows)
        self._read += 1
        values = self._as_mapping(row)
        self._before, self._good = self._good, self._read
        return Row(self._read, values)

    def position(self) -> dict[str, Any]:
        return {"rows": self._good}

    def reject(self) -> None:
        self._good = self._before

    def seek(self, position: Mapping[str, Any]) -> None:
        """Skip the rows that were consumed: an iterable begins at its beginning."""
        for _ in range(position["rows"]):
            if next(self._rows, self) is self:
                raise StreamError(f"{self.name}: ends before row {position['rows']}, where the checkpoint was made")
        self._read = self._good = position["rows"]

    def _as_mapping(self, row: Any) -> Mapping[str, Any]:
        if isinstance(row, Mapping):
            return row
        if hasattr(row, "tolist"):
            row = row.tolist()
        if isinstance(row, int | float):
            row = [row]
        if not isinstance(row, list | tuple):
            raise RowError(self.name, self._read, f"a {type(row).__name__}; an array, a list or a dict would be right")
        return {f"x{index}": value for index, value in enumerate(row)}
