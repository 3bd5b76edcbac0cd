"""What a command says on standard error."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import typer

MOST = 20


class Reporter:
    """Tells the first 20 notices as they come, and at the end how many more there were."""

    def __init__(self) -> None:
        self._told = 0

    def tell(self, line: str) -> None:
        self._told += 1
        if self._told <= MOST:
            print(f"ptncn: {line}", file=sys.stderr)
        if self._told == MOST:
            print("ptncn: further notices are only counted", file=sys.stderr)

    def close(self) -> None:
        if self._told > MOST:
            print(f"ptncn: {self._told - MOST:,} further notices", file=sys.stderr)


@contextmanager
def one_line_errors() -> Iterator[None]:
    """An error is one line that names the file, and exit code 1; 141, as for SIGPIPE, if the reader went away."""
    try:
        yield
    except BrokenPipeError:
        print("ptncn: nobody reads the output any more: stopped", file=sys.stderr)
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python flushes it once more on its way out
        raise typer.Exit(141) from None
    except (ValueError, OSError, FloatingPointError) as error:
        print(f"Error: {error}", file=sys.stderr)
        raise typer.Exit(1) from error
