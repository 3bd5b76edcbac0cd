"""What is written down of a run."""

from __future__ import annotations

import dataclasses
import json
import math
import platform
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_type_hints

import numpy as np
import torch

from ptncn.files import write_atomically
from ptncn.records.packing import unpack

SCHEMA = 1
STATUSES = ("running", "failed", "finished")


class RecordError(ValueError):
    """The file is not a record that this version can read; the message says which and why."""


def versions() -> dict[str, Any]:
    """Of what the numbers depend on."""
    from ptncn import __version__

    return {
        "ptncn": __version__,
        "torch": torch.__version__.split("+")[0],
        "numpy": np.__version__,
        "python": platform.python_version(),
        "machine": platform.machine(),
        "threads": torch.get_num_threads(),
    }


@dataclass(kw_only=True)
class Record:
    """One run of one model. Nothing else is needed to make a table, a figure, or the run again."""

    schema: int = SCHEMA
    experiment: str
    model: str
    data: str
    """What the column of the table is called."""
    scale: str
    seed: int
    status: str = "running"
    """"running" as long as it is not over, "failed" with a reason in `notes`, or "finished"."""
    command: str = ""
    """What makes this run again."""
    started: str = ""
    finished: str | None = None
    versions: dict[str, Any] = field(default_factory=versions)
    config: dict[str, Any] = field(default_factory=dict)
    """Every value that decides the numbers."""
    learner: dict[str, Any] = field(default_factory=dict)
    """Every option of the learner, those left at their defaults included."""
    datasets: dict[str, Any] = field(default_factory=dict)
    """By what it was used for: {"name", "sha256", "sequences"} of each dataset."""
    metrics: dict[str, Any] = field(default_factory=dict)
    curve: dict[str, Any] = field(default_factory=dict)
    """The course of learning: lists of equal length by name, and "changes": where the data changed."""
    errors: dict[str, Any] = field(default_factory=dict)
    """Of each test: by metric, the packed mean error of each sequence, in the order of the dataset."""
    films: dict[str, Any] = field(default_factory=dict)
    """Of some tests: packed frames of a few sequences and of their predictions."""
    seconds: float = 0.0
    """Of computing, the parts before an interruption included."""
    peak_memory: int | None = None
    """Bytes of the process, at most."""
    notes: list[str] = field(default_factory=list)
    """What a reader should know: a dataset that stands in for another, why a run failed."""

    def write(self, path: Path) -> None:
        """Write to `path`, whole or not at all."""
        path.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps(_plain(dataclasses.asdict(self)), indent=1, ensure_ascii=False, allow_nan=False)
        write_atomically(path, (text + "\n").encode())

    def sequence_errors(self, test: str, metric: str) -> np.ndarray[Any, Any]:
        """(N,) the mean error of each sequence of a test, in the order of the dataset."""
        if metric not in self.errors.get(test, {}):
            known = [f"{name} {each}" for name, metrics in self.errors.items() for each in metrics]
            raise RecordError(
                f"the record of {self.model} on {self.data} has no errors of {test} {metric}; it has: "
                f"{', '.join(known) or 'none'}"
            )
        return unpack(self.errors[test][metric])


def read_record(path: str | Path) -> Record:
    """Read and check a record; what is wrong is said in one line."""
    path = Path(path)
    try:
        tree = json.loads(path.read_bytes())
    except FileNotFoundError:
        raise RecordError(f"{path}: no such record") from None
    except (ValueError, OSError) as error:
        raise RecordError(f"{path}: not a record: {error}") from error
    if not isinstance(tree, dict) or "experiment" not in tree:
        raise RecordError(f"{path}: not a record: it names no experiment")
    if tree.get("schema") != SCHEMA:
        raise RecordError(f"{path}: a record of version {tree.get('schema')!r}; this program reads version {SCHEMA}")
    problem = _problem(tree)
    if problem:
        raise RecordError(f"{path}: {problem}")
    return Record(**tree)


def find_records(places: Iterable[str | Path]) -> tuple[list[Record], list[str]]:
    """All records in files and folders, and a line for each file that is none."""
    records, problems = [], []
    for place in map(Path, places):
        for path in sorted(place.rglob("*.json")) if place.is_dir() else [place]:
            try:
                records.append(read_record(path))
            except RecordError as error:
                problems.append(str(error))
    return records, problems


def _problem(tree: Mapping[str, Any]) -> str | None:
    """What is wrong with the fields, or None."""
    kinds = get_type_hints(Record)
    required = [each.name for each in dataclasses.fields(Record) if _has_no_default(each)]
    for name in required:
        if name not in tree:
            return f"the field {name!r} is missing"
    for name, value in tree.items():
        if name not in kinds:
            return f"there is no field {name!r} in a record"
        kind = getattr(kinds[name], "__origin__", kinds[name])
        if kind is float:
            kind = int | float
        if not isinstance(value, kind):
            wanted = getattr(kind, "__name__", str(kind))
            return f"the field {name!r} holds {str(value)[:40]!r}; {wanted} would be right"
    if tree.get("status", "running") not in STATUSES:
        return f"the status is {tree['status']!r}; one of {', '.join(STATUSES)} would be right"
    return None


def _has_no_default(each: dataclasses.Field[Any]) -> bool:
    return each.default is dataclasses.MISSING and each.default_factory is dataclasses.MISSING


def _plain(tree: Any) -> Any:
    """Numbers that JSON does not have become null."""
    if isinstance(tree, float):
        return tree if math.isfinite(tree) else None
    if isinstance(tree, Mapping):
        return {str(key): _plain(value) for key, value in tree.items()}
    if isinstance(tree, list | tuple):
        return [_plain(value) for value in tree]
    return tree
