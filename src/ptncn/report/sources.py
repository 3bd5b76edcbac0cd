"""Where the numbers come from: records, each with its file, and a line on every file that is none."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ptncn.experiments import EXPERIMENTS, find_experiment
from ptncn.experiments.experiment import Cells
from ptncn.records import Record, RecordError, read_record

BROKEN = (KeyError, TypeError, ValueError, IndexError, AttributeError, ZeroDivisionError)
"""What code that reads the insides of a record raises when they are not what they should be."""


@dataclass(frozen=True)
class Source:
    """A finished run whose cells can be read."""

    record: Record
    file: Path
    cells: Cells


@dataclass
class Gathered:
    """All that was found."""

    sources: list[Source] = field(default_factory=list)
    unfinished: list[tuple[Record, str]] = field(default_factory=list)
    """Runs that failed, are not over, or lack a field, with the reason."""
    unreadable: list[str] = field(default_factory=list)
    """A line for each file that is no record of this version."""

    def groups(self) -> list[tuple[str, str]]:
        """(experiment, scale) of every run, in the paper's order."""
        records = [source.record for source in self.sources] + [record for record, _ in self.unfinished]
        found = {(record.experiment, record.scale) for record in records}
        return sorted(found, key=lambda pair: (EXPERIMENTS.names().index(pair[0]), pair[1]))


def gather(places: Sequence[Path]) -> Gathered:
    """Read every record in files and folders, each once. Only a place without any JSON file is an error."""
    found, seen = Gathered(), set()
    for place in places:
        if not place.exists():
            raise ValueError(f"{place}: no such file or folder; records are written by `ptncn reproduce`")
        files = sorted(place.rglob("*.json")) if place.is_dir() else [place]
        if not files:
            raise ValueError(f"{place}: no records in it; `ptncn reproduce discrete --out {place}` writes some")
        for file in files:
            if file.resolve() not in seen:
                seen.add(file.resolve())
                _add(found, file)
    _drop_repeated(found)
    return found


def _drop_repeated(found: Gathered) -> None:
    """Of a run that was done twice the later one counts: it would pass for two trials."""
    newest: dict[tuple[str, str, str, str, int], Source] = {}
    for source in sorted(found.sources, key=lambda each: each.record.finished or ""):
        record = source.record
        key = (record.experiment, record.scale, record.model, record.data, record.seed)
        if key in newest:
            older = relative(newest[key].file)
            found.unreadable.append(f"{older}: the same run as {relative(source.file)}, which is newer")
        newest[key] = source
    kept = {source.file for source in newest.values()}
    found.sources = [source for source in found.sources if source.file in kept]


def _add(found: Gathered, file: Path) -> None:
    shown = relative(file)
    try:
        record = read_record(file)
    except RecordError as error:
        found.unreadable.append(str(error).replace(str(file), shown))
        return
    if record.experiment not in EXPERIMENTS:
        found.unreadable.append(f"{shown}: a record of {record.experiment!r}, which is no table of the paper")
        return
    if record.status != "finished":
        reason = "; ".join(map(str, record.notes)) or "it did not come to its end"
        found.unfinished.append((record, f"{shown}: {record.status}: {reason}"))
        return
    try:
        cells = find_experiment(record.experiment).cells(record)
        _check(cells)
    except BROKEN as error:
        found.unfinished.append((record, f"{shown}: finished, but its metrics are not complete: {_reason(error)}"))
        return
    found.sources.append(Source(record, file, cells))


def _check(cells: Cells) -> None:
    for metric, row in cells.items():
        for column, value in row.items():
            if value is not None and not isinstance(value, int | float):
                raise ValueError(f"{metric} {column} is {str(value)[:40]!r}; a number would be right")
            if value is None or not math.isfinite(value):
                raise ValueError(f"{metric} {column} is no number".replace("  ", " "))


def _reason(error: Exception) -> str:
    return f"the field {error} is missing" if isinstance(error, KeyError) else str(error)


def relative(path: Path) -> str:
    """As seen from here where it lies below, or else as it was given; with forward slashes everywhere."""
    try:
        return path.resolve().relative_to(Path(os.getcwd()).resolve()).as_posix()
    except ValueError:
        return path.as_posix()
