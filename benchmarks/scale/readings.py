"""Readings of several devices as CSV files, and the results of `ptncn stream --key` and of Spark for them."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np

from ptncn.streaming import Stream

OPTIONS = {"key": "device", "targets": ("load",), "timestamp": "time"}
SCORES = ("surprise", "anomaly", "alarm", "severity")


def write(folder: Path, *, devices: int, rows: int, files: int, seed: int) -> None:
    """Write `rows` rows for each device to this number of files; the rows of a device are in order of time."""
    rng = np.random.default_rng(seed)
    values = np.sin(np.arange(rows) / 5)[:, None] + rng.normal(scale=0.1, size=(rows, devices))
    folder.mkdir(parents=True)
    for number, part in enumerate(np.array_split(np.arange(rows), files)):
        lines = ["time,device,load"]
        lines += [f"{60 * i},device{d},{values[i, d].item()!r}" for i in part.tolist() for d in range(devices)]
        path = folder / f"{number:04}.csv"
        path.write_text("\n".join(lines) + "\n")
        os.utime(path, (1e9 + number, 1e9 + number))  # Spark reads files in the order of their modification times


def expected(folder: Path, horizon: int) -> dict[tuple[str, int], dict]:
    """By device and number, the results of one process that reads all files in order."""
    from ptncn.streaming import open_source

    rows, counts = {}, {}
    whole = folder.parent / "all.csv"
    parts = [path.read_text().splitlines() for path in sorted(folder.glob("*.csv"))]
    whole.write_text("\n".join([parts[0][0], *(line for part in parts for line in part[1:])]) + "\n")
    for out in Stream(open_source(str(whole)), horizon=horizon, **OPTIONS):
        index = counts[out.key] = counts.get(out.key, -1) + 1
        row = {"load": out.observed["load"]}
        if out.prediction is not None:
            row["load_predicted"] = out.prediction["load"]
        for step in range(horizon):
            name = f"load_ahead{step + 1}"
            row |= {name: out.forecast[step]["load"]}
            row |= {f"{name}_lower": out.lower[step]["load"], f"{name}_upper": out.upper[step]["load"]}
        row |= {name: getattr(out, name) for name in SCORES}
        rows[out.key, index] = {name: value for name, value in row.items() if value is not None}
    return rows


def said(folder: Path) -> list[tuple[tuple[str, int], dict]]:
    """The output of a query, according to its log of committed files."""
    rows = []
    committed = set()
    for log in (folder / "_spark_metadata").iterdir():
        if not log.name.startswith(".") and not log.name.endswith(".tmp"):
            entries = [json.loads(line) for line in log.read_text().splitlines()[1:]]
            committed |= {entry["path"].rsplit("/", 1)[1] for entry in entries}
    for name in committed:
        for line in (folder / name).read_text().splitlines():
            row = json.loads(line)
            place = row.pop("key"), row.pop("index")
            rows.append((place, {name: value for name, value in row.items() if name not in ("timestamp", "silent")}))
    return rows
