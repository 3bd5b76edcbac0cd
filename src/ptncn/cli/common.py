"""What several commands share: one-line errors, comma-separated lists, options as NAME=VALUE."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import typer
from rich.console import Console

from ptncn.messages import one_line
from ptncn.values import parse_option

errors = Console(stderr=True, highlight=False)

OPTION_HELP = "An option of the learner, NAME=VALUE, such as lr=0.001; repeatable."


@contextmanager
def one_line_errors() -> Iterator[None]:
    """Print an expected error as one line and exit with code 1."""
    try:
        yield
    except (ValueError, OSError, MemoryError) as error:  # data, checkpoint and record errors are ValueErrors
        errors.print(f"Error: {one_line(error)}", style="red", soft_wrap=True, markup=False)
        raise typer.Exit(1) from error


def note(line: str, style: str | None = None) -> None:
    """A line on stderr."""
    errors.print(line, style=style, markup=False, soft_wrap=True)


def split_names(values: list[str] | None) -> list[str] | None:
    """
    >>> split_names(["ptncn,copy", "mean"])
    ['ptncn', 'copy', 'mean']
    """
    return [part for value in values for part in value.split(",") if part] if values else None


def parse_options(pairs: list[str] | None) -> dict[str, Any]:
    """
    >>> parse_options(["lr=0.01", "error_rule=fixed", "biases=false"])
    {'lr': 0.01, 'error_rule': 'fixed', 'biases': False}
    """
    return dict(parse_option(pair) for pair in pairs or [])


def say_how_to_continue(resume: str = " --resume") -> None:
    """Print the command that was given, with the option that continues it."""
    command = shlex.join(argument for argument in sys.argv[1:] if argument != "--resume")
    note(f"\nStopped; checkpoints are kept. Continue with:\n  ptncn {command}{resume}")
