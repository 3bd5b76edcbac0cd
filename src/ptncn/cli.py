"""The command line: `ptncn --help`."""

from __future__ import annotations

import typer

from ptncn.commands.data import app as data
from ptncn.commands.demo import demo
from ptncn.commands.forecast import forecast
from ptncn.commands.learners import learners
from ptncn.commands.stream import stream

app = typer.Typer(
    name="ptncn",
    help="Learn sequences online: Parallel Temporal Neural Coding Networks and the learners they are compared with.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command()(demo)
app.command()(stream)
app.command()(forecast)
app.add_typer(data, name="data")
app.command()(learners)

if __name__ == "__main__":
    app()
