"""`python -m ptncn`: the command line."""

from ptncn.cli import app

if __name__ == "__main__":
    app(prog_name="ptncn")
