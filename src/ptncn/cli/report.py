"""`ptncn report`: one page, tables and figures from the records of runs."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from ptncn.report.chapter import make_chapters
from ptncn.report.sources import gather, relative
from ptncn.report.write import write_markdown, write_report

errors = Console(stderr=True, highlight=False)


def report(
    records: Annotated[
        list[Path] | None, typer.Argument(help="Records, or folders of them. Default: results/laptop.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for the page, tables and figures. Default: report.")] = None,
    docs: Annotated[
        Path | None, typer.Option(help="Write only Markdown with its figures here, as docs/results has it.")
    ] = None,
) -> None:
    """Make a page from records: the paper's numbers, ours beside them, and figures.

    It runs nothing: `ptncn reproduce` writes the records. A record that is broken, of another version, or of a run
    that failed is named on the page, and everything else is shown.

    \b
    Examples:
      ptncn report
      ptncn report results/smoke --out report
      ptncn report results/laptop --docs docs/results
    """
    places = records or [Path("results/laptop")]
    try:
        found = gather(places)
        chapters = []
        columns = BarColumn(), TextColumn("{task.completed} of {task.total} tables of the paper")
        with Progress(*columns, console=errors, transient=True) as progress:
            for chapter in progress.track(make_chapters(found), total=len(found.groups())):
                chapters.append(chapter)
        shown = " ".join(shlex.quote(relative(place)) for place in places)
        if docs is not None:
            write_markdown(
                chapters,
                docs,
                unreadable=found.unreadable,
                command=f"ptncn report {shown} --docs {shlex.quote(relative(docs))}",
            )
            typer.echo(f"{docs / 'README.md'}: an overview, and {len(chapters)} pages")
        if out is not None or docs is None:
            place = out or Path("report")
            line = f"ptncn report {shown} --out {shlex.quote(relative(place))}"
            page = write_report(chapters, place, unreadable=found.unreadable, command=line)
            typer.echo(f"{page}: {len(chapters)} tables of the paper; open it in a browser")
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        errors.print(
            f"Error: {where}cannot be read or written: {error.strerror or error}",
            style="red",
            markup=False,
            soft_wrap=True,
        )
        raise typer.Exit(1) from error
    except ValueError as error:
        errors.print(f"Error: {error}", style="red", soft_wrap=True, markup=False)
        raise typer.Exit(1) from error
    for line in [*found.unreadable, *(why for _, why in found.unfinished)]:
        errors.print(f"Note: {line}", markup=False, soft_wrap=True)
