"""The command line: `main` finds the commands, one module each."""

from ptncn.cli.main import app

__all__ = ["app"]
