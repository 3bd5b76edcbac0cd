"""Rows of JSON lines: one object, or one list of numbers, a line."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ptncn.streaming.errors import RowError
from ptncn.streaming.lines import Line, LineReader
from ptncn.streaming.source import Row


class JsonReader:
    """Names of an object are columns; those of a list are called x0, x1, …; blank lines count for nothing."""

    nan_is_missing = False

    def __init__(self, lines: LineReader) -> None:
        self.name = lines.name
        self._lines = lines
        self._before: Line | None = None
        self._done: Line | None = None

    @property
    def idle(self) -> Callable[[], None]:
        return self._lines.idle

    @idle.setter
    def idle(self, call: Callable[[], None]) -> None:
        self._lines.idle = call

    def __iter__(self) -> Iterator[Row]:
        return self

    def __next__(self) -> Row:
        while (line := self._lines.read()) is not None:
            if not line.data.strip():
                continue
            values = self._parse(line)
            self._before, self._done = self._done, line
            return Row(line.number, values)
        raise StopIteration

    def position(self) -> dict[str, Any]:
        return self._lines.position_after(self._done)

    def reject(self) -> None:
        self._done = self._before

    def seek(self, position: Mapping[str, Any]) -> None:
        self._done = self._lines.seek(position)

    def continue_at(self, position: Mapping[str, Any]) -> None:
        """Go on with a live pipe."""
        self._lines.continue_at(position)

    def _parse(self, line: Line) -> Mapping[str, Any]:
        try:
            values = json.loads(line.data.decode("utf-8-sig" if line.start == 0 else "utf-8"))
        except UnicodeDecodeError as error:
            raise RowError(
                self.name,
                line.number,
                f"byte {error.start + 1} of the line, 0x{line.data[error.start]:02x}, is not UTF-8",
            ) from error
        except RecursionError:
            raise RowError(self.name, line.number, "not JSON that can be read: nested too deeply") from None
        except ValueError as error:
            raise RowError(self.name, line.number, f"not JSON: {error}") from error
        if isinstance(values, dict):
            return values
        if isinstance(values, list):
            return {f"x{index}": value for index, value in enumerate(values)}
        raise RowError(self.name, line.number, f"{type(values).__name__} {values!r:.40}; an object would be right")
