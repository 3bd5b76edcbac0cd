"""Write a record as `docs/performance.md`, or print it as tables on the terminal."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from rich.console import Console
from rich.table import Table

from ptncn.system import write_atomically
from speed.cases import Row
from speed.machine import warning
from speed.roofline import roofline
from speed.sections import growth, long_runs, markdown_table, memory, options, profiles

T = TypeVar("T")
PAGE, FIGURE = "performance.md", "figures/roofline.svg"


def write_page(record_files: Sequence[Path], docs: Path) -> Path:
    """Write the page and its figure; return the page's path. Records after the first add sections."""
    full, *later = record_files
    page, figure = _rendered(full, lambda record: (make_page(record, full.name), roofline(record)))
    parts = [page, *(_rendered(file, partial(make_addition, name=file.name)) for file in later)]
    (docs / FIGURE).parent.mkdir(parents=True, exist_ok=True)
    write_atomically(docs / FIGURE, figure)
    write_atomically(docs / PAGE, "\n".join(parts).encode())
    return docs / PAGE


def _rendered(file: Path, render: Callable[[dict[str, Any]], T]) -> T:
    try:
        return render(json.loads(file.read_text()))
    except (json.JSONDecodeError, KeyError, TypeError) as error:
        raise ValueError(f"{file} is not a record of benchmarks/step.py: {error!r}") from error


def make_page(record: dict[str, Any], name: str) -> str:
    """Markdown; `name` is the name of the record's file in results/bench."""
    parts: list[Callable[[dict[str, Any]], Iterable[str]]] = [targets, times, roof, memory, growth, long_runs]
    lines = [*head(record, name)]
    for part in [*parts, options, profiles, details]:
        if section := list(part(record)):
            lines += ["", *section]
    return "\n".join(lines) + "\n"


def make_addition(record: dict[str, Any], name: str) -> str:
    """The section for a record of some cases, measured later than the full one."""
    machine = record["machine"]
    lines = [
        f"## Measured on {machine['date']}",
        "",
        f"Record: [`results/bench/{name}`](../results/bench/{name}), made by `{record['command']}` "
        f"on {machine['cpu']}, {machine['threads']} threads; load average before the start {machine['load']}.",
    ]
    if (line := warning(machine)) is not None:
        lines += ["", f"**Warning: {line}.**"]
    for part in (targets, times, options):
        if section := list(part(record)):
            lines += ["", *(f"#{line}" if line.startswith("##") else line for line in section)]
    return "\n".join(lines) + "\n"


def head(record: dict[str, Any], name: str) -> list[str]:
    machine = record["machine"]
    kernel = "with" if machine["compiled_kernel"] else "without"
    lines = [
        "# Performance",
        "",
        f"Record: [`results/bench/{name}`](../results/bench/{name}), made by",
        "",
        "```",
        f"python benchmarks/step.py --out results/bench/{name}",
        "python benchmarks/step.py --page results/bench/*.json",
        "```",
        "",
        f"{machine['cpu']}, {machine['cores']} cores, {machine['threads']} threads; torch {machine['torch']}, "
        f"ptncn {machine['ptncn']} {kernel} its compiled kernel; {machine['date']}; load average before the start "
        f"{machine['load']}. The run took {record['seconds'] / 60:.1f} minutes.",
    ]
    if (line := warning(machine)) is not None:
        lines += ["", f"**Warning: {line}.**"]
    return lines


def targets(record: dict[str, Any]) -> list[str]:
    if not record["targets"]:
        return []
    met = sum(each["met"] for each in record["targets"])
    rows = [
        (each["target"], each["reached"], "met" if each["met"] else "**missed**")
        for each in sorted(record["targets"], key=lambda each: each["met"])
    ]
    summary = f"{met} of {len(rows)} met."
    return ["## Targets", "", summary, "", *markdown_table(("target", "reached", ""), rows)]


def times(record: dict[str, Any]) -> list[str]:
    lines = ["## Times", "", "Milliseconds per step: median and interquartile range over interleaved samples."]
    for (shape, batch), rows in _by_shape(record["rows"]).items():
        cells = [
            (
                f"`{row['what']}`",
                f"{row['ms']:.3f}",
                f"{row['iqr']:.3f}",
                f"{1000 / row['ms']:,.0f}",
                "" if row["limit"] == row["what"] else f"{row['ratio']:.2f} × {row['limit']}",
            )
            for row in rows
        ]
        lines += ["", f"### {shape}, batch {batch}", ""]
        lines += markdown_table(("case", "ms", "IQR", "steps per second", "ratio"), cells)
        skipped = [each for each in record["skipped"] if (each["shape"], each["batch"]) == (shape, batch)]
        for each in skipped:
            lines += ["", f"`{each['what']}` is left out: {each['reason']}."]
    return lines if record["rows"] else []


def roof(record: dict[str, Any]) -> list[str]:
    machine = record["machine"]
    methods = ", ".join(f"{name} {ms:.2f}" for name, ms in sorted(machine["read_ms"].items(), key=lambda item: item[1]))
    return [
        "## Roofline",
        "",
        f"![Roofline]({FIGURE})",
        "",
        f"A large matrix product reaches {machine['gflops']:.0f} GFLOP/s; {machine['read_by']} reads "
        f"{machine['gigabytes_a_second']:.1f} GB/s. Milliseconds to read all weights of the largest network once: "
        f"{methods}.",
    ]


def details(record: dict[str, Any]) -> list[str]:
    return [
        "## How it is measured",
        "",
        "1. All cases of a shape are built first and are then timed in turn, about 0.15 s per sample; a case with "
        "longer samples skips rounds. The time of a step is the time of a sample divided by its number of steps.",
        "2. At batch 1, a sample of a network covers a whole number of cycles of deferred updates, so that it includes "
        "the time for writing them.",
        "3. Learners that unroll are timed over sequences of 20 frames, including the update at the end. `lstm-bptt` "
        "predicts each frame as it arrives; `lstm-bptt-whole` gets the whole sequence at once, as in offline training.",
        "4. `products` times only the matrix products of a step, into preallocated memory; `products-learnt-e` "
        "includes the updates of E, and `products-eval` has no updates. `read` is one pass over as many bytes as the "
        "weights have, by the fastest method listed above.",
        "5. Observations are dense float32 noise in [0, 1]. Networks have biases, unit rescaling and max-norm 30. E is "
        "fixed unless the name contains `transpose` or `temporal`.",
        "6. `textbook` is the direct implementation in `benchmarks/speed/textbook.py`: separate matrices, dense "
        "gradients, every norm at every step. Tests check that it gives the same numbers as the network.",
        "7. Learners that need too much memory are left out; the tables give the reason.",
    ]


def show(record: dict[str, Any], console: Console) -> None:
    """Print the times and the targets."""
    machine = record["machine"]
    console.print(
        f"{machine['cpu']}, {machine['threads']} threads, torch {machine['torch']}: "
        f"{machine['gflops']:.0f} GFLOP/s, {machine['gigabytes_a_second']:.1f} GB/s ({machine['read_by']})"
    )
    for (shape, batch), rows in _by_shape(record["rows"]).items():
        console.print(_times(f"{shape}, batch {batch}", rows))
    for each in record["skipped"]:
        where = f"{each['shape']}, batch {each['batch']}"
        console.print(f"{where}: {each['what']} is left out: {each['reason']}", style="dim")
    if record["targets"]:
        table = Table("target", "reached", "", title="Targets", title_justify="left", box=None)
        for each in record["targets"]:
            table.add_row(each["target"], each["reached"], "[green]met[/]" if each["met"] else "[red]missed[/]")
        console.print(table)
    if (line := warning(machine)) is not None:
        console.print(f"Warning: {line}.", style="yellow")


def _times(title: str, rows: list[Row]) -> Table:
    table = Table("case", title=title, title_justify="left", box=None)
    for heading in ("ms per step", "± IQR", "per second", "ratio"):
        table.add_column(heading, justify="right")
    table.add_column("to")
    for row in rows:
        rate = f"{1000 / row['ms']:,.0f}"
        limit = "" if row["limit"] == row["what"] else row["limit"]
        table.add_row(row["what"], f"{row['ms']:.3f}", f"{row['iqr']:.3f}", rate, f"{row['ratio']:.2f}", limit)
    return table


def _by_shape(rows: Iterable[Row]) -> dict[tuple[str, int], list[Row]]:
    shapes: dict[tuple[str, int], list[Row]] = {}
    for row in rows:
        shapes.setdefault((row["shape"], row["batch"]), []).append(row)
    return shapes
