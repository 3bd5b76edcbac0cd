"""Read records from files and folders, and list the files that cannot be used, with reasons."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ptncn.experiments import EXPERIMENTS
from ptncn.experiments.experiment import Cells
from ptncn.records import Record, RecordError, read_record

BROKEN = (KeyError, TypeError, ValueError, IndexError, AttributeError, ZeroDivisionError)
"""Errors that the contents of a malformed record may cause."""
SCALES = ("paper", "laptop", "smoke")
"""The order on a page; others follow."""


@dataclass(frozen=True)
class RecordSource:
    """A finished run whose cells can be read."""

    record: Record
    file: Path
    cells: Cells


@dataclass
class Gathered:
    """All records in some files and folders."""

    sources: list[RecordSource] = field(default_factory=list)
    unfinished: list[tuple[Record, str]] = field(default_factory=list)
    """Runs that failed, did not finish, or lack a field, with the reason."""
    unreadable: list[str] = field(default_factory=list)
    """A line for each file that is not a record of this version."""

    def experiments(self) -> dict[str, list[str]]:
        """{experiment: scales} of every run, in the order of the paper, the paper's scale first."""
        scales: dict[str, set[str]] = {}
        for record in [*(source.record for source in self.sources), *(record for record, _ in self.unfinished)]:
            scales.setdefault(record.experiment, set()).add(record.scale)
        order = EXPERIMENTS.names()
        return {
            name: sorted(scales[name], key=lambda scale: (scale not in SCALES, [*SCALES, scale].index(scale), scale))
            for name in sorted(scales, key=order.index)
        }


def gather(places: Sequence[Path]) -> Gathered:
    """Read every record in files and folders once. A place without any JSON file is an error."""
    gathered, seen = Gathered(), set()
    for place in places:
        if not place.exists():
            raise ValueError(f"{place}: no such file or folder; `ptncn reproduce` writes records")
        files = sorted(place.rglob("*.json")) if place.is_dir() else [place]
        if not files:
            raise ValueError(f"{place}: no records in it; `ptncn reproduce discrete --out {place}` writes some")
        for file in files:
            if file.resolve() not in seen:
                seen.add(file.resolve())
                _add(gathered, file)
    _drop_repeated(gathered)
    return gathered


def _drop_repeated(gathered: Gathered) -> None:
    """Keep only the later of two records of the same run, so that the run does not count as two trials."""
    newest: dict[tuple[str, str, str, str, int], RecordSource] = {}
    for source in sorted(gathered.sources, key=lambda each: each.record.finished or ""):
        record = source.record
        key = (record.experiment, record.scale, record.row, record.data, record.seed)
        if key in newest:
            older = relative(newest[key].file)
            gathered.unreadable.append(f"{older}: the same run as {relative(source.file)}, which is newer")
        newest[key] = source
    kept = {source.file for source in newest.values()}
    gathered.sources = [source for source in gathered.sources if source.file in kept]


def _add(gathered: Gathered, file: Path) -> None:
    path = relative(file)
    try:
        record = read_record(file)
    except RecordError as error:
        gathered.unreadable.append(str(error).replace(str(file), path))
        return
    if record.experiment not in EXPERIMENTS:
        gathered.unreadable.append(f"{path}: a record of {record.experiment!r}, which is not a registered experiment")
        return
    if record.status != "finished":
        reason = "; ".join(map(str, record.notes)) or "it did not finish"
        gathered.unfinished.append((record, f"{path}: {record.status}: {reason}"))
        return
    try:
        cells = EXPERIMENTS.find(record.experiment).cells(record)
        _check(cells)
    except BROKEN as error:
        gathered.unfinished.append((record, f"{path}: finished, but its metrics are incomplete: {_reason(error)}"))
        return
    gathered.sources.append(RecordSource(record, file, cells))


def _check(cells: Cells) -> None:
    for metric, row in cells.items():
        for column, value in row.items():
            if not isinstance(value, int | float) or not math.isfinite(value):
                raise ValueError(f"{' '.join([metric, column]).strip()}: expected a number, got {str(value)[:40]!r}")


def _reason(error: Exception) -> str:
    return f"the field {error} is missing" if isinstance(error, KeyError) else str(error)


def relative(path: Path) -> str:
    """The path relative to the current folder if it lies below it, with forward slashes."""
    try:
        return path.resolve().relative_to(Path(os.getcwd()).resolve()).as_posix()
    except ValueError:
        return path.as_posix()
