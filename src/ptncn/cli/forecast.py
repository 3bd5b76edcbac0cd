"""`ptncn forecast`: forecast the next rows of a saved stream."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import torch
import typer

from ptncn.cli.common import one_line_errors
from ptncn.streaming.formats import FORMATS, format_of, make_writer, open_source, writable
from ptncn.streaming.output import Output
from ptncn.streaming.results import PICTURES, Forecast
from ptncn.streaming.stream import forecast_from


def forecast(
    checkpoint: Annotated[Path, typer.Argument(help="Checkpoint of `ptncn stream --checkpoint`.")],
    horizon: Annotated[int, typer.Option("--horizon", "-H", help="Steps to forecast.", min=1)] = 50,
    key: Annotated[str | None, typer.Option(help="Which stream to forecast, if the checkpoint holds several.")] = None,
    features: Annotated[
        str | None, typer.Option(help="File with the future values of features, one row per step.")
    ] = None,
    out: Annotated[
        list[Path] | None,
        typer.Option("--out", "-o", help="Table (.csv, .jsonl) or picture (.png, .svg, .pdf); repeatable."),
    ] = None,
    format: Annotated[str, typer.Option(help=f"Format of standard output: {', '.join(writable())}.")] = "csv",
) -> None:
    """Forecast the next rows of a stream from its checkpoint.

    The checkpoint is not changed. Steps have dates if the stream has timestamps. A picture also shows the last rows.

    \b
    Examples:
      ptncn forecast feed.ckpt --horizon 48 -o ahead.csv -o ahead.png
      ptncn forecast feed.ckpt --key pump-7 --features weather.csv
    """
    torch.set_num_threads(1)
    with one_line_errors():
        make_writer(format)
        for path in out or []:
            if path.suffix.lower() not in PICTURES and format_of(str(path)) not in writable():
                endings = [ending for name in writable() for ending in FORMATS.find(name).extensions]
                raise ValueError(f"{path}: expected a name that ends in {', '.join((*endings, *PICTURES))}")
        result = forecast_from(checkpoint, horizon, key=key, features=_read_features(features, horizon))
        for path in out or []:
            if path.suffix.lower() in PICTURES:
                result.draw(path)
            else:
                _write(result, None, str(path))
        if not out:
            _write(result, format, None)


def _read_features(path: str | None, horizon: int) -> list[dict[str, object]]:
    """The first rows of a file of features."""
    if path is None:
        return []
    source = open_source(path)
    rows: list[dict[str, object]] = []
    while len(rows) < horizon and (block := source.read(horizon - len(rows))) is not None:
        rows += [dict(zip(block.names, row, strict=True)) for row in block.rows]
    return rows


def _write(result: Forecast, format: str | None, path: str | None) -> None:
    output, writer = Output(path), make_writer(format, path)
    table = result.table()
    output.write(writer.header(table))
    output.write(writer.lines(table))
    output.flush()
    output.close()
