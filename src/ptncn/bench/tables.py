"""A record on the terminal."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.table import Table

from ptncn.bench.machine import warning
from ptncn.bench.rows import Row


def show(record: dict[str, Any], console: Console) -> None:
    machine = record["machine"]
    console.print(
        f"{machine['cpu']}, {machine['threads']} threads, torch {machine['torch']}: "
        f"{machine['gflops']:.0f} GFLOP/s, {machine['gigabytes_a_second']:.1f} GB/s ({machine['read_by']})"
    )
    for shape, batch in dict.fromkeys((row["shape"], row["batch"]) for row in record["rows"]):
        rows = [row for row in record["rows"] if (row["shape"], row["batch"]) == (shape, batch)]
        console.print(_times(f"{shape}, batch {batch}", rows))
    for each in record["skipped"]:
        console.print(f"{each['shape']}, batch {each['batch']}: {each['what']} left out: {each['reason']}", style="dim")
    if record["targets"]:
        console.print(_targets(record["targets"]))
    if (line := warning(machine)) is not None:
        console.print(f"Warning: {line}.", style="yellow")


def _times(title: str, rows: list[Row]) -> Table:
    table = Table("what", title=title, title_justify="left", box=None)
    for heading in ("ms a step", "± IQR", "a second", "ratio"):
        table.add_column(heading, justify="right")
    table.add_column("to")
    for row in rows:
        rate = f"{1000 / row['ms']:,.0f}"
        limit = "" if row["limit"] == row["what"] else row["limit"]
        table.add_row(row["what"], f"{row['ms']:.3f}", f"{row['iqr']:.3f}", rate, f"{row['ratio']:.2f}", limit)
    return table


def _targets(targets: list[dict[str, Any]]) -> Table:
    table = Table("target", "reached", "", title="Targets", title_justify="left", box=None)
    for each in targets:
        table.add_row(each["target"], each["reached"], "[green]met[/]" if each["met"] else "[red]missed[/]")
    return table
