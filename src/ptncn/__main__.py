"""`python -m ptncn`: the command line."""

from ptncn.cli import app

app(prog_name="ptncn")
