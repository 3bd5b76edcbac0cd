"""`ptncn` itself: every command exists and is listed with its help, and only the called one is imported."""

import subprocess
import sys
from importlib.metadata import version

import pytest
from typer.testing import CliRunner

from ptncn.cli import COMMANDS, app, load

runner = CliRunner()


def test_the_help_lists_every_command_with_a_description(monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    output = runner.invoke(app, ["--help"]).output
    for name in COMMANDS:
        (line,) = [line for line in output.splitlines() if line.strip("│ ").startswith(f"{name} ")]
        assert len(line.strip("│ ").split()) > 4
    assert runner.invoke(app, []).output.strip() == output.strip()


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_exists(name):
    assert callable(load(name))
    result = runner.invoke(app, [name, "--help"])
    assert result.exit_code == 0
    assert f"ptncn {name}" in result.output


def test_an_unknown_command_is_named():
    result = runner.invoke(app, ["lerners"])
    assert result.exit_code == 2
    assert "lerners" in result.stderr


def test_it_prints_its_version():
    assert runner.invoke(app, ["--version"]).output == f"ptncn {version('ptncn')}\n"


def test_help_imports_no_command():
    code = "import sys, ptncn.cli; print(sorted(name for name in sys.modules if name.startswith(('ptncn.', 'torch'))))"
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert output == "['ptncn.cli']\n"


@pytest.mark.parametrize(
    "arguments",
    [
        ["stream", "--horizon", "x", "feed.csv"],
        ["stream", "--horizon", "-1", "feed.csv"],
        ["train", "ptncn"],
        ["train", "ptncn", "digits", "--nosuch", "3"],
        ["nosuch"],
        ["data", "nosuch"],
        ["live", "--port", "99999999"],
    ],
)
def test_impossible_arguments_give_one_line_errors(arguments):
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 2
    assert result.stderr.startswith("Error: ")
    assert result.stderr.count("\n") == 1
    assert "--help" in result.stderr
