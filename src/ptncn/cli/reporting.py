"""What a command says on standard error."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import typer

from ptncn.messages import one_line

MOST = 20


class Reporter:
    """Prints the first 20 notices as they come, and at the end how many more there were."""

    def __init__(self) -> None:
        self._count = 0

    def notice(self, line: str) -> None:
        self._count += 1
        if self._count <= MOST:
            _say(line)
        if self._count == MOST:
            _say("further notices are only counted")

    def close(self, summary: str | None = None) -> None:
        if self._count > MOST:
            _say(f"{self._count - MOST:,} further notices")
        if summary is not None:
            _say(summary)


def _say(line: str) -> None:
    """A line on standard error, if it is still read: a notice must not stop the stream."""
    with suppress(OSError):
        print(f"ptncn: {line}", file=sys.stderr, flush=True)


@contextmanager
def one_line_errors() -> Iterator[None]:
    """An error is one line that names the file, and exit code 1; 141, as for SIGPIPE, if the reader went away."""
    try:
        yield
    except BrokenPipeError:
        _say("the output is no longer read: stopped")
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python flushes it once more at exit
        raise typer.Exit(141) from None
    except (ValueError, OSError, FloatingPointError) as error:
        print(f"Error: {one_line(error)}", file=sys.stderr)
        raise typer.Exit(1) from error
