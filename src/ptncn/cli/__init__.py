"""The command line, `ptncn --help`: one module per command, imported when the command is called."""

from __future__ import annotations

import ast
import inspect
import sys
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

from ptncn import __version__

try:
    import typer
    from typer.core import TyperCommand, TyperGroup
except ModuleNotFoundError as error:
    if error.name not in ("typer", "rich"):
        raise
    raise SystemExit("The command line needs two more packages: pip install 'ptncn[all]'") from error

__all__ = ["app"]

COMMANDS = {
    **{name: name for name in ("demo", "live", "stream", "forecast", "learners", "data", "reproduce", "train")},
    "eval": "evaluate",
    **{name: name for name in ("tune", "report")},
}
"""{command: module of `ptncn.cli`}; a module has a function of its name, or an `app` with subcommands."""


class LazyGroup(TyperGroup):
    """Imports a command only when it is called, so that `ptncn --help` is quick."""

    def main(self, *args: Any, **extra: Any) -> Any:
        """Run a command; errors in its arguments are printed on one line, like all others."""
        if not extra.get("standalone_mode", True):
            return super().main(*args, **extra)
        try:
            code = super().main(*args, **{**extra, "standalone_mode": False})
        except typer.Abort:
            sys.exit(1)
        except Exception as error:
            if not hasattr(error, "format_message"):  # those of click, which Typer uses or contains
                raise
            if type(error).__name__ == "NoArgsIsHelpError":
                error.show()  # type: ignore[attr-defined]
            else:
                context = getattr(error, "ctx", None)
                hint = "" if context is None else f"; see {context.command_path} --help"
                print(f"Error: {' '.join(error.format_message().split()).rstrip('.')}{hint}", file=sys.stderr)
            sys.exit(error.exit_code)  # type: ignore[attr-defined]
        sys.exit(code if isinstance(code, int) else 0)

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """A placeholder whose help is the first line of the module's docstring, “`ptncn NAME`: what it does”."""
        if cmd_name not in COMMANDS:
            return None
        path = Path(__file__).parent / f"{COMMANDS[cmd_name]}.py"
        about = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        line = about.partition("\n")[0].partition(": ")[2]
        return TyperCommand(cmd_name, help=line[:1].upper() + line[1:])

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, _, rest = super().resolve_command(ctx, args)
        return name, None if name is None else load(name), rest


def load(name: str) -> Any:
    """Import a command."""
    module = import_module(f"ptncn.cli.{COMMANDS[name]}")
    if hasattr(module, "app"):
        return typer.main.get_group(module.app)
    single = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    command = getattr(module, COMMANDS[name])
    single.command(name, help=reflow(command.__doc__ or ""))(command)
    return typer.main.get_command(single)


def reflow(text: str) -> str:
    """A docstring with one line per paragraph, so that help fits any width; paragraphs marked \\b keep their lines."""
    paragraphs = inspect.cleandoc(text).split("\n\n")
    return "\n\n".join(each if each.startswith("\b") else each.replace("\n", " ") for each in paragraphs)


app = typer.Typer(
    name="ptncn", cls=LazyGroup, no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False
)


def print_version(requested: bool) -> None:
    if requested:
        typer.echo(f"ptncn {__version__}")
        raise typer.Exit


@app.callback()
def ptncn(
    version: Annotated[
        bool, typer.Option("--version", callback=print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Learn sequences online: Parallel Temporal Neural Coding Networks and the learners they are compared with.

    Start with `ptncn demo`, or with your own feed: `ptncn stream feed.csv --out predictions.csv`.
    """
