"""`ptncn bench`: how fast the network is, beside what the machine allows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from ptncn.bench.page import write_page
from ptncn.bench.run import EXTRAS, make_plan, run
from ptncn.bench.tables import show
from ptncn.files import write_atomically


def bench(
    quick: Annotated[bool, typer.Option("--quick", help="Within a minute: fewer contestants, fewer rounds.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the record as JSON instead of tables.")] = False,
    out: Annotated[Path | None, typer.Option(help="Write the record to this file as well.")] = None,
    shape: Annotated[
        list[str] | None, typer.Option(help="Inputs-layersxunits@batch, such as 4096-3x1000@20; may be repeated.")
    ] = None,
    what: Annotated[
        list[str] | None,
        typer.Option(help=f"A contestant, a learner, or one of {', '.join(EXTRAS)}; may be repeated. Default: all."),
    ] = None,
    page: Annotated[
        Path | None, typer.Option(help="Measure nothing: make docs/performance.md from this record.")
    ] = None,
    docs: Annotated[Path, typer.Option(help="Where --page writes to.")] = Path("docs"),
    seconds: Annotated[float | None, typer.Option(hidden=True, help="For the rows of a shape.")] = None,
) -> None:
    """Time a learning step against the products that it is made of, the textbook way, BPTT and online baselines.

    Everything is measured in turn, many times over; medians and interquartile ranges are reported. Run it alone on
    the machine: it says so if it was not. The whole takes a quarter of an hour.
    """
    errors = Console(stderr=True, highlight=False)
    try:
        if page is not None:
            typer.echo(f"wrote {write_page(page, docs)}")
            return
        plan = make_plan(quick=quick, shapes=shape or (), whats=what or (), seconds=seconds)
        with errors.status("") as status:
            record = run(plan, tell=lambda line: status.update(f"measuring {line}"))
        text = json.dumps(record, indent=1, ensure_ascii=False)
        if out is not None:
            out.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(out, f"{text}\n".encode())
    except (ValueError, OSError) as error:
        errors.print(f"Error: {error}", style="red", soft_wrap=True, markup=False)
        raise typer.Exit(1) from error
    if as_json:
        typer.echo(text)
    else:
        show(record, Console(highlight=False))
