"""Rows of JSON lines: one object, or one list of numbers, a line."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

from ptncn.streaming.errors import RowError
from ptncn.streaming.sources import Block
from ptncn.streaming.sources.lines import Line, LineReader


class JsonReader:
    """The names of an object are columns; those of a list are called x0, x1, …; blank lines are skipped."""

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
                        break  # first the rows before it
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
