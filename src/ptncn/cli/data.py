"""`ptncn data`: list, download, check and preview datasets."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from ptncn.cli.common import errors, one_line_errors
from ptncn.data import DATASETS, DataError, Dataset, cache_folder
from ptncn.data.download import CacheStatus, look_up
from ptncn.data.download import fetch as fetch_files
from ptncn.data.preview import preview
from ptncn.registry import unknown

app = typer.Typer(help="List, download, check and preview datasets.", no_args_is_help=True)


def downloads() -> list[str]:
    """The names of datasets that have files to download."""
    return [name for name, dataset in DATASETS.items() if dataset.files]


@app.command("list", epilog="Example: ptncn data list --json")
def list_datasets(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for other programs.")] = False,
) -> None:
    """List every dataset: what it is, its size in the cache, and whether its files are correct.

    Every file in the cache is read and checked. Embedded datasets need no download.
    """
    with one_line_errors():
        known = _look_up_all(list(DATASETS.values()))
    if as_json:
        typer.echo(json.dumps(list(map(_as_json, known)), indent=2, ensure_ascii=False))
        return
    table = Table("name", "what", "size", "state", box=None, pad_edge=False)
    for dataset, status in known:
        size = f"{status.bytes / 1e6:.1f} MB" if status.present else ""
        table.add_row(dataset.name, dataset.about, size, str(status))
    Console().print(table)
    typer.echo(f"\nThe cache is {cache_folder()}; set PTNCN_DATA to use another folder.")


def _as_json(known: tuple[Dataset, CacheStatus]) -> dict[str, str | int]:
    dataset, status = known
    return {
        "name": dataset.name,
        "about": dataset.about,
        "licence": dataset.licence,
        "where": str(dataset.files[0].place.parent) if dataset.files else "embedded",
        "bytes": status.bytes,
        "state": str(status),
    }


@app.command(epilog="Example: ptncn data fetch mnist ptb")
def fetch(
    names: Annotated[list[str], typer.Argument(help=f"Any of {', '.join(downloads())}; or all.")],
    replace: Annotated[bool, typer.Option("--replace", help="Download again and overwrite existing files.")] = False,
) -> None:
    """Download datasets into the cache and check them.

    Mirrors are tried in turn, and only checked files enter the cache. After an interruption, run the command again:
    files that are already there are not downloaded twice.
    """
    with one_line_errors():
        for dataset in _choose(names):
            typer.echo(f"{dataset.name}: {dataset.about}; about {dataset.megabytes} MB; licence: {dataset.licence}")
            fetch_files(
                dataset.files,
                replace=replace,
                progress=sys.stderr.isatty(),
                report=lambda line: typer.echo(f"  {line}"),
            )


@app.command(epilog="Example: ptncn data verify mnist")
def verify(
    names: Annotated[
        list[str] | None, typer.Argument(help=f"Any of {', '.join(downloads())}; without a name, all in the cache.")
    ] = None,
) -> None:
    """Read every file and compare its checksum. The exit code is 1 if any is wrong or missing."""
    with one_line_errors():
        known = _look_up_all(_choose(names or ["all"]))
    if not names:
        known = [(dataset, status) for dataset, status in known if status.present]
    if not known:
        typer.echo(f"nothing to verify: no dataset is in {cache_folder()}")
    for dataset, status in known:
        for file in status.files:
            state = file.proof.value if file.proof else f"missing; ptncn data fetch {dataset.name}"
            typer.echo(file.problem or f"{file.path}: {state}")
    raise typer.Exit(0 if all(status.correct for _, status in known) else 1)


@app.command(epilog="Example: ptncn data show letters --out letters.gif --objects 3")
def show(
    name: Annotated[str, typer.Argument(help="A name from `ptncn data list`, or your own .npy file, GIF or folder.")],
    out: Annotated[
        Path | None, typer.Option(help="A .gif for an animated picture, a .png for a filmstrip. Default: NAME.gif")
    ] = None,
    split: Annotated[str, typer.Option(help="One of train, valid, test; train+valid for images.")] = "train",
    count: Annotated[int, typer.Option(min=1, help="Number of sequences.")] = 4,
    objects: Annotated[int, typer.Option(min=1, help="Number of objects in a bouncing video.")] = 2,
    seed: Annotated[int, typer.Option(min=0, help="Seed of generated sequences.")] = 0,
) -> None:
    """Preview a dataset: images as bouncing video, text as text, streams as curves."""
    with one_line_errors():
        for line in preview(name, out, split=split, count=count, objects=objects, seed=seed):
            typer.echo(line)


def _choose(names: list[str]) -> list[Dataset]:
    wanted = downloads() if names == ["all"] else names
    for name in wanted:
        if name not in downloads():
            raise DataError(unknown("dataset to download", name, downloads()))
    return [DATASETS[name] for name in wanted]


def _look_up_all(datasets: list[Dataset]) -> list[tuple[Dataset, CacheStatus]]:
    with Progress(console=errors, transient=True, disable=not errors.is_terminal) as progress:
        task = progress.add_task("checking", total=sum(len(dataset.files) for dataset in datasets))
        return [(dataset, look_up(dataset.files, lambda: progress.advance(task))) for dataset in datasets]
