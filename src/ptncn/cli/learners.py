"""`ptncn learners`: list every learner with a description."""

from __future__ import annotations

import json
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from ptncn.learners.registry import describe, names


def learners(
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON object instead of a table.")] = False,
) -> None:
    """List every learner: its name, what it is, when it learns, and what its state grows with."""
    entries = {name: describe(name) for name in names()}
    if as_json:
        rows = {
            name: {"about": entry.about, "learns": entry.learns, "memory": entry.memory}
            for name, entry in entries.items()
        }
        typer.echo(json.dumps(rows, indent=2, ensure_ascii=False))
        return
    table = Table("name", "what it is", "learns", "state", box=None, pad_edge=False)
    for name, entry in entries.items():
        table.add_row(name, entry.about, entry.learns, entry.memory)
    console = Console()
    console.print(table)
    console.print(
        "\nState: B sequences per batch, n inputs, H hidden units, P weights, T steps."
        "\nonline: learns at each step; unrolled: through stored steps."
        "\nTry one: ptncn train NAME digits, or ptncn stream FILE --learner NAME.",
        style="dim",
    )
