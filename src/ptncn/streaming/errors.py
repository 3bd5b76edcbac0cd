"""What can go wrong with a stream, said in one line that names the source and the line."""

from __future__ import annotations


class StreamError(ValueError):
    """The stream cannot go on; the message says why and what would be right."""


class RowError(StreamError):
    """One row of the source is not what it should be; the rows after it may be."""

    def __init__(self, source: str, line: int, problem: str) -> None:
        super().__init__(f"{source}: line {line}: {problem}")
        self.line = line


class OutputError(OSError):
    """The output takes no more. Lines were lost on their way, so that nothing may be saved that says they were not."""


class StopRequestedError(Exception):
    """Raised while the source waits for more, to leave the wait: somebody asked the stream to stop."""
