"""The two commands as a separate program, for tests that start processes: `python command.py stream …`."""

import typer

from ptncn.cli.forecast import forecast
from ptncn.cli.stream import stream

app = typer.Typer(pretty_exceptions_enable=False, add_completion=False)
app.command()(stream)
app.command()(forecast)

if __name__ == "__main__":
    app()
