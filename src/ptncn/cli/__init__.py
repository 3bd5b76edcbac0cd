"""The command line: `main` finds the commands, one module each."""

try:
    from ptncn.cli.main import app
except ModuleNotFoundError as error:
    if error.name not in ("typer", "rich"):
        raise
    raise SystemExit("The command line needs two more packages: pip install 'ptncn[all]'") from error

__all__ = ["app"]
