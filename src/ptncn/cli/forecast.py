"""`ptncn forecast`: what a saved learner expects to come."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import torch
import typer

from ptncn.streaming.forecasting import PICTURES, Forecast, forecast_from
from ptncn.streaming.formats import csv_text, join
from ptncn.streaming.output import Output
from ptncn.streaming.reporting import one_line_errors

TABLES = {".csv": "csv", ".jsonl": "jsonl", ".json": "jsonl", ".ndjson": "jsonl"}


def forecast(
    checkpoint: Annotated[Path, typer.Argument(help="A file that `ptncn stream --checkpoint` wrote.")],
    horizon: Annotated[int, typer.Option("--horizon", "-H", help="Steps to forecast.", min=1)] = 50,
    out: Annotated[
        list[Path] | None,
        typer.Option("--out", "-o", help="A table (.csv, .jsonl) or a picture (.png, .svg, .pdf); again for more."),
    ] = None,
    format: Annotated[str, typer.Option(help="Of standard output, where there is no --out: csv or jsonl.")] = "csv",
) -> None:
    """Forecast from a checkpoint, without a stream: each prediction is taken for what happened next.

    The checkpoint is only read. A picture shows the last observations, too.
    """
    torch.set_num_threads(1)
    with one_line_errors():
        if format not in TABLES.values():
            raise ValueError(f"unknown format {format!r}; choose one of: csv, jsonl")
        for path in out or []:
            if path.suffix.lower() not in (*TABLES, *PICTURES):
                raise ValueError(f"{path}: a name that ends in {', '.join((*TABLES, *PICTURES))} would be right")
        result = forecast_from(checkpoint, horizon)
        for path in out or []:
            if path.suffix.lower() in PICTURES:
                result.draw(path)
            else:
                _write(result, TABLES[path.suffix.lower()], str(path))
        if not out:
            _write(result, format, None)


def _write(result: Forecast, format: str, path: str | None) -> None:
    output = Output(path)
    if format == "csv":
        output.write(join(["step", *result.names]))
        for step, row in enumerate(result.rows):
            output.write(",".join([str(step + 1), *map(csv_text, row.values())]) + "\n")
    else:
        for step, row in enumerate(result.rows):
            output.write(result.as_json(step + 1, row))
    output.flush()
    output.close()
