"""`ptncn report`: make a page of tables and figures from records."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import BarColumn, Progress, TextColumn

from ptncn.cli.common import errors, note, one_line_errors
from ptncn.report.pages import make_pages, write_markdown, write_report
from ptncn.report.sources import gather, relative

DEFAULT = (Path("results/paper"), Path("results/laptop"))


def report(
    records: Annotated[
        list[Path] | None,
        typer.Argument(help="Records, or folders of them. Default: results/paper and results/laptop."),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for the page, tables and figures. Default: report.")] = None,
    docs: Annotated[
        Path | None, typer.Option(help="Write only Markdown and its figures to this folder, such as docs/results.")
    ] = None,
) -> None:
    """Make a page from records: the paper's numbers, ours, and figures.

    Does not run any experiment; `ptncn reproduce` writes the records. Broken records, those of another version and
    those of failed runs are listed on the page; all others are shown.

    \b
    Examples:
      ptncn report
      ptncn report results/smoke --out report
      ptncn report --docs docs/results
    """
    places = records or [place for place in DEFAULT if place.exists()] or [DEFAULT[-1]]
    with one_line_errors():
        gathered = gather(places)
        columns = BarColumn(), TextColumn("{task.completed} of {task.total} experiments")
        with Progress(*columns, console=errors, transient=True) as progress:
            pages = list(progress.track(make_pages(gathered), total=len(gathered.experiments())))
        command = " ".join(["ptncn report", *(shlex.quote(relative(place)) for place in records or ())])
        if docs is not None:
            line = f"{command} --docs {shlex.quote(relative(docs))}"
            overview = write_markdown(pages, docs, unreadable=gathered.unreadable, command=line)
            typer.echo(f"Wrote {overview} and {len(pages)} page{'s' * (len(pages) != 1)}.")
        if out is not None or docs is None:
            place = out or Path("report")
            line = f"{command} --out {shlex.quote(relative(place))}"
            page = write_report(pages, place, unreadable=gathered.unreadable, command=line)
            typer.echo(f"Wrote {page}, with {len(pages)} experiment{'s' * (len(pages) != 1)}. Open it in a browser.")
    for line in [*gathered.unreadable, *(reason for _, reason in gathered.unfinished)]:
        note(f"Note: {line}")
