"""Shared by several commands: one-line errors, notices, lists, NAME=VALUE options, groups of options."""

from __future__ import annotations

import ast
import dataclasses
import functools
import inspect
import os
import shlex
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Annotated, Any, get_type_hints

import typer
from rich.console import Console

from ptncn.system import one_line

errors = Console(stderr=True, highlight=False)

OPTION_HELP = "An option of the learner, NAME=VALUE, such as lr=0.001; repeatable."


@contextmanager
def one_line_errors() -> Iterator[None]:
    """Print expected errors on one line and exit with code 1, or with 141, as for SIGPIPE, if the output was closed."""
    try:
        yield
    except BrokenPipeError:
        _print_notice("the output was closed: stopped")
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python flushes it again at exit
        raise typer.Exit(141) from None
    except (ValueError, OSError, MemoryError, FloatingPointError) as error:  # ValueErrors: data, checkpoints, records
        errors.print(f"Error: {one_line(error)}", style="red", soft_wrap=True, markup=False)
        raise typer.Exit(1) from error


def note(line: str, style: str | None = None) -> None:
    """Print a line on stderr."""
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


def print_resume_command(resume: str = " --resume") -> None:
    """Print the command that continues this one."""
    command = shlex.join(argument for argument in sys.argv[1:] if argument != "--resume")
    note(f"\nStopped; checkpoints are kept. Continue with:\n  ptncn {command}{resume}")


SHOWN_NOTICES = 20


class Notices:
    """Prints the first 20 notices, and at the end the number of further ones."""

    def __init__(self) -> None:
        self._count = 0

    def notice(self, line: str) -> None:
        self._count += 1
        if self._count <= SHOWN_NOTICES:
            _print_notice(line)
        if self._count == SHOWN_NOTICES:
            _print_notice("further notices are counted but not shown")

    def close(self, summary: str | None = None) -> None:
        if self._count > SHOWN_NOTICES:
            _print_notice(f"{self._count - SHOWN_NOTICES:,} further notices")
        if summary is not None:
            _print_notice(summary)


def _print_notice(line: str) -> None:
    """Print a line on stderr; if that is closed, ignore it, since a notice must not stop the stream."""
    with suppress(OSError):
        print(f"ptncn: {line}", file=sys.stderr, flush=True)


def option(help: str, default: Any, *flags: str, **more: Any) -> Any:
    """A field of a group of options: its help and default; without `flags` it is named after the field."""
    return dataclasses.field(default=default, metadata={"option": (help, flags, more)})


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """Turn the fields of dataclass parameters into options; the docstring of the class titles their panel.

    Other parameters of the command are unchanged.
    """
    hints = get_type_hints(command, include_extras=True)
    hints.pop("return", None)
    groups: dict[str, Any] = {name: kind for name, kind in hints.items() if dataclasses.is_dataclass(kind)}
    parameters = []
    for name, parameter in inspect.signature(command).parameters.items():
        if name in groups:
            parameters += _options(groups[name])
        else:
            parameters.append(parameter.replace(annotation=hints[name], kind=inspect.Parameter.KEYWORD_ONLY))

    @functools.wraps(command)
    def run(**values: Any) -> None:
        arguments = {}
        for name, kind in groups.items():
            arguments[name] = kind(**{field.name: values.pop(field.name) for field in dataclasses.fields(kind)})
        command(**arguments, **values)

    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


def _options(kind: Any) -> list[inspect.Parameter]:
    hints: dict[str, Any] = get_type_hints(kind)
    panel = inspect.cleandoc(kind.__doc__).rstrip(".")
    parameters = []
    for field in dataclasses.fields(kind):
        help, flags, more = field.metadata["option"]
        described = typer.Option(*flags, help=help, rich_help_panel=panel, **more)
        parameters.append(
            inspect.Parameter(
                field.name,
                inspect.Parameter.KEYWORD_ONLY,
                default=field.default,
                annotation=Annotated[(hints[field.name], described)],
            )
        )
    return parameters


WORDS = {"true": True, "false": False, "none": None, "null": None}


def parse_value(text: str) -> Any:
    """Parse a number, list, dict or constant; anything else stays text. Words need no quotes, which shells take away.

    >>> [parse_value(text) for text in ("True", "false", "None", "1e-3", "[1, 2]", "adam", "[tanh, none]")]
    [True, False, None, 0.001, [1, 2], 'adam', ['tanh', None]]
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Python warns about text that resembles a number
            return ast.literal_eval(_Words().visit(ast.parse(text.strip(), mode="eval")))
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return text


class _Words(ast.NodeTransformer):
    def visit_Name(self, node: ast.Name) -> ast.Constant:
        return ast.Constant(WORDS.get(node.id.lower(), node.id))


def parse_option(text: str) -> tuple[str, Any]:
    """The name and the value of NAME=VALUE.

    >>> parse_option("hidden_sizes=[500, 500]")
    ('hidden_sizes', [500, 500])
    """
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise ValueError(f"option {text!r}: expected NAME=VALUE, such as lr=0.001")
    return name, parse_value(value)
