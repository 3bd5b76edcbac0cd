"""What can go wrong with a stream: one line that names the source and the line."""

from __future__ import annotations


class StreamError(ValueError):
    """The stream cannot continue; the message says why and what was expected."""


class RowError(StreamError):
    """One row of the source is not what it should be; the rows after it may be."""

    def __init__(self, source: str, line: int, problem: str) -> None:
        super().__init__(f"{source}: line {line}: {problem}")
        self.line = line


class DivergedError(Exception):
    """Learning has diverged: the prediction for row `row` of a block is not finite."""

    def __init__(self, row: int) -> None:
        super().__init__(row)
        self.row = row


class OutputError(OSError):
    """The output cannot be written. Lines were lost, so no checkpoint may claim that they were written."""
