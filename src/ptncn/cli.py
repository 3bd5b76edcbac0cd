"""The command line: `ptncn --help`."""

from __future__ import annotations

import typer

app = typer.Typer(
    name="ptncn",
    help="Learn sequences online: Parallel Temporal Neural Coding Networks and the learners they are compared with.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

if __name__ == "__main__":
    app()
