"""Commands whose options come in groups: each group is a dataclass, and a panel of the help."""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable
from typing import Annotated, Any, get_type_hints

import typer


def option(help: str, default: Any, *flags: str, **more: Any) -> Any:
    """A field of a group: an option with its help; without `flags` it is called like the field."""
    return dataclasses.field(default=default, metadata={"option": (help, flags, more)})


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """Let parameters that are dataclasses stand for an option a field; the docstring is the title of their panel.

    The rest of a command's parameters stay as they are.
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
        made = {}
        for name, kind in groups.items():
            made[name] = kind(**{field.name: values.pop(field.name) for field in dataclasses.fields(kind)})
        command(**made, **values)

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
