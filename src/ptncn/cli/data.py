"""`ptncn data`: list, download, check and preview datasets."""

from __future__ import annotations

import io
import json
import math
import sys
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from numpy.typing import NDArray
from PIL import Image
from rich.console import Console
from rich.progress import Progress
from rich.table import Table
from torch import Tensor

from ptncn.cli.common import errors, one_line_errors
from ptncn.data import (
    DATASETS,
    DataError,
    Dataset,
    Images,
    SequenceDataset,
    Text,
    TextStream,
    cache_folder,
    load_sequences,
)
from ptncn.data.download import CacheStatus, look_up
from ptncn.data.download import fetch as fetch_files
from ptncn.data.registry import make_videos
from ptncn.registry import unknown
from ptncn.system import write_atomically

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
        statuses = _look_up_all(list(DATASETS.values()))
    if as_json:
        typer.echo(json.dumps(list(map(_as_json, statuses)), indent=2, ensure_ascii=False))
        return
    table = Table("name", "what", "size", "state", box=None, pad_edge=False)
    for dataset, status in statuses:
        size = f"{status.bytes / 1e6:.1f} MB" if status.present else ""
        table.add_row(dataset.name, dataset.about, size, str(status))
    Console().print(table)
    typer.echo(f"\nThe cache is {cache_folder()}; set PTNCN_DATA to use another folder.")


def _as_json(entry: tuple[Dataset, CacheStatus]) -> dict[str, str | int]:
    dataset, status = entry
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
        statuses = _look_up_all(_choose(names or ["all"]))
    if not names:
        statuses = [(dataset, status) for dataset, status in statuses if status.present]
    if not statuses:
        typer.echo(f"nothing to verify: no dataset is in {cache_folder()}")
    for dataset, status in statuses:
        for file in status.files:
            state = file.proof.value if file.proof else f"missing; ptncn data fetch {dataset.name}"
            typer.echo(file.problem or f"{file.path}: {state}")
    raise typer.Exit(0 if all(status.correct for _, status in statuses) else 1)


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
    selected = downloads() if names == ["all"] else names
    for name in selected:
        if name not in downloads():
            raise DataError(unknown("dataset to download", name, downloads()))
    return [DATASETS[name] for name in selected]


def _look_up_all(datasets: list[Dataset]) -> list[tuple[Dataset, CacheStatus]]:
    with Progress(console=errors, transient=True, disable=not errors.is_terminal) as progress:
        task = progress.add_task("checking", total=sum(len(dataset.files) for dataset in datasets))
        return [(dataset, look_up(dataset.files, lambda: progress.advance(task))) for dataset in datasets]


GAP = 2
"""Pixels between pictures."""


def preview(name: str, out: Path | None, *, split: str, count: int, objects: int, seed: int) -> list[str]:
    """Write a picture of some sequences to `out`, or return sample text; returns lines to print."""
    data = _find(name, split, objects, seed)
    if isinstance(data, Text | TextStream):
        if out is not None:
            raise DataError(f"{name} is text, which is printed; leave out --out {out}")
        text = data.text if isinstance(data, TextStream) else data
        return [text.decode(text[i]) for i in range(min(count, len(text)))]
    limit = 1 if data.continuous else min(count, len(data))
    x, shape = data.batch(range(limit)).x, data.observation_shape
    path = out or Path(f"{Path(name).stem}.{'gif' if len(shape) == 2 else 'png'}")
    draw(x, shape, path)
    return [f"{path}: {x.shape[1]} × {x.shape[0]} steps of {name}"]


def _find(name: str, split: str, objects: int, seed: int) -> SequenceDataset:
    if name not in DATASETS:
        if Path(name).exists():
            return load_sequences(name)
        raise DataError(f"{name}: neither a dataset of `ptncn data list` nor a file or folder")
    entry = DATASETS[name]
    if split == "train" and "train" not in entry.splits:
        split = entry.splits[0]
    content = entry.open(split)
    return make_videos(content, name, split, objects=objects, seed=seed) if isinstance(content, Images) else content


def draw(x: Tensor, shape: tuple[int, ...], path: Path, *, enlarge: int = 2, milliseconds: int = 100) -> None:
    """Write sequences (T, B, n) as a picture, `x.gif` or `x.png`; `shape` is that of one observation.

    Observations with two axes are frames of numbers from 0 to 1: the GIF shows all sequences at once, the PNG has a
    row for each and a column for each time. Those with one axis are drawn as curves, of the first sequence, as PNG.
    """
    suffix = path.suffix.lower()
    if suffix not in (".gif", ".png"):
        raise DataError(f"{path}: pictures are written as .gif or .png")
    if len(shape) > 2 or (len(shape) < 2 and suffix == ".gif"):
        raise DataError(f"{path}: observations of shape {shape} cannot be drawn as {suffix}")
    if len(shape) < 2:
        _draw_curves(x[:, 0].numpy(), path)
        return
    frames = (x.reshape(*x.shape[:2], *shape).clamp(0, 1) * 255).round().byte().numpy()  # (T, B, height, width)
    if suffix == ".gif":
        columns = math.ceil(math.sqrt(frames.shape[1]))
        stills = [_picture(_grid(moment, columns), enlarge) for moment in frames]
        _save(path, "GIF", stills, duration=milliseconds, loop=0)
    else:
        strip = _grid(frames.swapaxes(0, 1).reshape(-1, *shape), columns=len(frames))
        _save(path, "PNG", [_picture(strip, enlarge)])


def _draw_curves(values: NDArray[np.float32], path: Path) -> None:
    from matplotlib.figure import Figure  # slow to import and seldom needed

    figure = Figure(figsize=(10, 3), layout="constrained")
    axes = figure.subplots()
    axes.plot(values, linewidth=1)
    axes.set_xlabel("step")
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png")
    _write(path, buffer.getvalue())


def _grid(pictures: NDArray[np.uint8], columns: int) -> NDArray[np.uint8]:
    """(N, height, width) side by side, row after row, on grey."""
    count, height, width = pictures.shape
    rows = math.ceil(count / columns)
    sheet = np.full((rows * (height + GAP) + GAP, columns * (width + GAP) + GAP), 96, np.uint8)
    for i, picture in enumerate(pictures):
        top, left = GAP + i // columns * (height + GAP), GAP + i % columns * (width + GAP)
        sheet[top : top + height, left : left + width] = picture
    return sheet


def _picture(sheet: NDArray[np.uint8], enlarge: int) -> Image.Image:
    return Image.fromarray(sheet.repeat(enlarge, axis=0).repeat(enlarge, axis=1))


def _save(path: Path, kind: str, pictures: list[Image.Image], **options: int) -> None:
    buffer = io.BytesIO()
    pictures[0].save(buffer, kind, save_all=len(pictures) > 1, append_images=pictures[1:], **options)
    _write(path, buffer.getvalue())


def _write(path: Path, content: bytes) -> None:
    try:
        write_atomically(path, content)
    except OSError as error:
        raise DataError(f"{path}: cannot be written: {error.strerror or error}") from error
