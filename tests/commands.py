"""Calls of `ptncn` in this process."""

from typer.testing import CliRunner

from ptncn.cli import app


def call(*arguments, exit_code=0):
    """The result of a command that exits with `exit_code`, without a traceback."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == exit_code, result.output
    assert "Traceback" not in result.output
    return result
