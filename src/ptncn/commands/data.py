"""`ptncn data`: which datasets there are, getting them, checking them, looking at them."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, get_args

import typer
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from ptncn.data import DataError, cache_folder
from ptncn.data.catalog import DATASETS, Dataset, find_dataset
from ptncn.data.fetch import fetch as fetch_dataset
from ptncn.data.load import Split
from ptncn.data.show import EMBEDDED
from ptncn.data.show import show as show_dataset
from ptncn.data.status import Status, look_up

app = typer.Typer(
    help="The datasets: which there are, getting them, checking them, looking at them.", no_args_is_help=True
)
errors = Console(stderr=True)


@app.command("list", epilog="Example: ptncn data list --json")
def list_datasets(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for other programs.")] = False,
) -> None:
    """What datasets there are, where, how large, and whether they were found to be right.

    Every file that is there is read and checked. The embedded datasets need no download.
    """
    with _one_line_errors():
        known = _look_up_all(list(DATASETS.values()))
    if as_json:
        typer.echo(json.dumps([*map(_as_json, known), *_embedded_as_json()], indent=2, ensure_ascii=False))
        return
    table = Table("name", "what", "size", "state", box=None, pad_edge=False)
    for dataset, status in known:
        size = f"{status.bytes / 1e6:.1f} MB" if status.there else ""
        table.add_row(dataset.name, dataset.about, size, str(status))
    for name, (about, _) in EMBEDDED.items():
        table.add_row(name, about, "", "embedded")
    Console().print(table)
    typer.echo(f"\nThe cache is {cache_folder()}; the environment variable PTNCN_DATA chooses another.")


def _as_json(known: tuple[Dataset, Status]) -> dict[str, str | int]:
    dataset, status = known
    return {
        "name": dataset.name,
        "about": dataset.about,
        "licence": dataset.licence,
        "where": str(cache_folder() / dataset.name),
        "bytes": status.bytes,
        "state": str(status),
    }


def _embedded_as_json() -> list[dict[str, str | int]]:
    return [
        {"name": name, "about": about, "licence": licence, "where": "embedded", "bytes": 0, "state": "embedded"}
        for name, (about, licence) in EMBEDDED.items()
    ]


@app.command(epilog="Example: ptncn data fetch mnist ptb")
def fetch(
    names: Annotated[list[str], typer.Argument(help=f"Any of {', '.join(DATASETS)}; or all.")],
    replace: Annotated[
        bool, typer.Option("--replace", help="Download anew, also over a file that is not what it should be.")
    ] = False,
) -> None:
    """Download datasets into the cache and check them.

    Every mirror is tried in turn, and a file only takes its place once it was found to be right. After an
    interruption run it again: what is there already is not downloaded twice.
    """
    with _one_line_errors():
        for dataset in _choose(names):
            typer.echo(f"{dataset.name}: {dataset.about}; about {dataset.megabytes} MB; licence: {dataset.licence}")
            fetch_dataset(
                dataset, replace=replace, progress=sys.stderr.isatty(), tell=lambda line: typer.echo(f"  {line}")
            )


@app.command(epilog="Example: ptncn data verify mnist")
def verify(
    names: Annotated[
        list[str] | None, typer.Argument(help=f"Any of {', '.join(DATASETS)}; without a name, all that are there.")
    ] = None,
) -> None:
    """Read every file and compare its checksum; the exit code is 1 if any is wrong or missing."""
    with _one_line_errors():
        known = _look_up_all(_choose(names or ["all"]))
    if not names:
        known = [(dataset, status) for dataset, status in known if status.there]
    if not known:
        typer.echo(f"nothing to verify: no dataset is in {cache_folder()}")
    for dataset, status in known:
        for file in status.files:
            state = file.proof.value if file.proof else f"missing; ptncn data fetch {dataset.name}"
            typer.echo(file.problem or f"{file.path}: {state}")
    raise typer.Exit(0 if all(status.right for _, status in known) else 1)


@app.command(epilog="Example: ptncn data show letters --out letters.gif --objects 3")
def show(
    name: Annotated[str, typer.Argument(help="A dataset of `ptncn data list`, or a .npy, .gif or folder of your own.")],
    out: Annotated[
        Path | None, typer.Option(help="A .gif for an animated picture, a .png for a filmstrip. Default: NAME.gif")
    ] = None,
    split: Annotated[str, typer.Option(help=f"One of {', '.join(get_args(Split))}.")] = "train",
    count: Annotated[int, typer.Option(min=1, help="How many sequences.")] = 4,
    objects: Annotated[int, typer.Option(min=1, help="How many objects bounce about in a video of images.")] = 2,
    seed: Annotated[int, typer.Option(min=0, help="Which sequences, where they are generated.")] = 0,
) -> None:
    """Look at a dataset: images as bouncing video, text as text, a stream as a curve."""
    with _one_line_errors():
        for line in show_dataset(name, out, split=split, count=count, objects=objects, seed=seed):
            typer.echo(line)


def _choose(names: list[str]) -> list[Dataset]:
    return list(DATASETS.values()) if names == ["all"] else [find_dataset(name) for name in names]


def _look_up_all(datasets: list[Dataset]) -> list[tuple[Dataset, Status]]:
    with Progress(console=errors, transient=True, disable=not errors.is_terminal) as progress:
        task = progress.add_task("reading and checking", total=sum(len(dataset.files) for dataset in datasets))
        return [(dataset, look_up(dataset, lambda: progress.advance(task))) for dataset in datasets]


@contextmanager
def _one_line_errors() -> Iterator[None]:
    try:
        yield
    except (DataError, ValueError, OSError) as error:
        errors.print(f"Error: {error}", style="red", soft_wrap=True, markup=False, highlight=False)
        raise typer.Exit(1) from error
