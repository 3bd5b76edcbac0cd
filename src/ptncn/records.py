"""Records: one JSON file per run, from which every table, figure and comparison is made."""

from __future__ import annotations

import base64
import binascii
import dataclasses
import json
import math
import platform
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, get_type_hints

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from ptncn.system import write_atomically

SCHEMA = 1
RENAMED = {"model": "row", "setting": "run_config"}
"""{former name: present name} of fields and of keys in `config`; records with the former are still read."""
STATUSES = ("running", "failed", "finished")


class RecordError(ValueError):
    """A file is not a record that this version can read; the message names the file and the reason."""


def versions() -> dict[str, Any]:
    """The versions of the software and machine that the results depend on."""
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
    """One run of one learner: all that tables and figures need, and the command that repeats it."""

    schema: int = SCHEMA
    experiment: str
    row: str
    """The row of the table: a learner, or a variant of one."""
    data: str
    """The column of the table."""
    scale: str
    seed: int
    status: str = "running"
    """"running", "failed" with a reason in `notes`, or "finished"."""
    command: str = ""
    """The command that repeats this run."""
    started: str = ""
    finished: str | None = None
    versions: dict[str, Any] = field(default_factory=versions)
    config: dict[str, Any] = field(default_factory=dict)
    """Every value that determines the results."""
    learner: dict[str, Any] = field(default_factory=dict)
    """Every option of the learner, including defaults."""
    datasets: dict[str, Any] = field(default_factory=dict)
    """By phase: {"name", "sha256", "sequences"} of its dataset."""
    metrics: dict[str, Any] = field(default_factory=dict)
    curve: dict[str, Any] = field(default_factory=dict)
    """The learning curve: lists of equal length by name, and "changes": where the data changed."""
    errors: dict[str, Any] = field(default_factory=dict)
    """By phase and metric: the packed mean error of each sequence, in the order of the dataset."""
    films: dict[str, Any] = field(default_factory=dict)
    """By phase: packed frames of a few sequences and of their predictions."""
    seconds: float = 0.0
    """Computing time, including the time before an interruption."""
    peak_memory: int | None = None
    """Peak memory of the process in bytes."""
    notes: list[str] = field(default_factory=list)
    """Notes for the reader, such as why a run failed."""
    stand_ins: dict[str, str] = field(default_factory=dict)
    """{dataset asked for: embedded dataset used in its place}."""

    def write(self, path: Path) -> None:
        """Write to `path` atomically."""
        path.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps(_plain(dataclasses.asdict(self)), indent=1, ensure_ascii=False, allow_nan=False)
        write_atomically(path, (text + "\n").encode())

    def sequence_errors(self, phase: str, metric: str) -> np.ndarray[Any, Any]:
        """(N,) the mean error of each sequence of a phase, in the order of the dataset."""
        if metric not in self.errors.get(phase, {}):
            known = [f"{name} {each}" for name, metrics in self.errors.items() for each in metrics]
            raise RecordError(
                f"the record of {self.row} on {self.data} has no errors of {phase} {metric}; it has: "
                f"{', '.join(known) or 'none'}"
            )
        return unpack(self.errors[phase][metric])


def read_record(path: str | Path) -> Record:
    """Read and check a record; raises RecordError with a one-line reason."""
    path = Path(path)
    try:
        tree = json.loads(path.read_bytes())
    except FileNotFoundError:
        raise RecordError(f"{path}: no such record") from None
    except (ValueError, OSError, RecursionError) as error:
        raise RecordError(f"{path}: not a record: {error}") from error
    if not isinstance(tree, dict) or "experiment" not in tree:
        raise RecordError(f"{path}: not a record: it names no experiment")
    if tree.get("schema") != SCHEMA:
        raise RecordError(f"{path}: expected a record of version {SCHEMA}, got version {tree.get('schema')!r}")
    tree = _present_names(tree)
    problem = _problem(tree)
    if problem:
        raise RecordError(f"{path}: {problem}")
    tree.setdefault("stand_ins", _stand_ins(tree["config"] if isinstance(tree.get("config"), dict) else {}))
    return Record(**tree)


def _present_names(tree: Mapping[str, Any]) -> dict[str, Any]:
    renamed = {RENAMED.get(name, name): value for name, value in tree.items()}
    for name in ("config", "training"):
        if isinstance(renamed.get(name), Mapping):
            renamed[name] = _present_names(renamed[name])
    return renamed


def _stand_ins(config: Mapping[str, Any]) -> dict[str, str]:
    """The stand-ins of records that predate the field, from the datasets in their config."""
    trained = config.get("training", config)
    if not isinstance(trained, Mapping) or "source" not in trained:
        return {}
    requested, used = str(trained.get("data", "")), trained["source"]
    pairs = zip(requested.split("+"), used if isinstance(used, list) else [used], strict=False)
    return {name: str(source) for name, source in pairs if name != source}


@cache
def _kinds() -> dict[str, Any]:
    """The types of the fields."""
    return get_type_hints(Record)


def _problem(tree: Mapping[str, Any]) -> str | None:
    """A problem with the fields, or None."""
    kinds = _kinds()
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
            return f"the field {name!r} holds {str(value)[:40]!r}; expected {wanted}"
    if tree.get("status", "running") not in STATUSES:
        return f"status: expected one of {', '.join(STATUSES)}, got {tree['status']!r}"
    return None


def _has_no_default(each: dataclasses.Field[Any]) -> bool:
    return each.default is dataclasses.MISSING and each.default_factory is dataclasses.MISSING


def _plain(tree: Any) -> Any:
    """NaN and infinities become null, since JSON has neither."""
    if isinstance(tree, float):
        return tree if math.isfinite(tree) else None
    if isinstance(tree, Mapping):
        return {str(key): _plain(value) for key, value in tree.items()}
    if isinstance(tree, list | tuple):
        return [_plain(value) for value in tree]
    return tree


PACKED = {"float32": "<f4", "uint8": "|u1"}
"""Formats of arrays in JSON: little-endian numbers, compressed with zlib, in base64."""


def pack(array: NDArray[Any]) -> dict[str, Any]:
    """An array of float32 or uint8 as plain JSON values; any other numbers become float32.

    >>> packed = pack(np.array([[0.5, 1.0]]))
    >>> packed["dtype"], packed["shape"], unpack(packed).tolist()
    ('float32', [1, 2], [[0.5, 1.0]])
    """
    kind = "uint8" if array.dtype == np.uint8 else "float32"
    raw = np.ascontiguousarray(array, PACKED[kind]).tobytes()
    return {
        "dtype": kind,
        "shape": list(array.shape),
        "zlib": base64.b64encode(zlib.compress(raw, 9)).decode(),
    }


def unpack(packed: Mapping[str, Any]) -> NDArray[Any]:
    """The array that `pack` encoded."""
    try:
        kind, shape = PACKED[packed["dtype"]], tuple(int(size) for size in packed["shape"])
        wanted = math.prod(shape) * np.dtype(kind).itemsize
        inflate = zlib.decompressobj()
        raw = inflate.decompress(base64.b64decode(packed["zlib"], validate=True), wanted + 1)
    except (KeyError, TypeError, ValueError, binascii.Error, zlib.error) as error:
        raise ValueError(f"not a packed array: {error!r}") from error
    if len(raw) != wanted:
        raise ValueError(f"a packed array of shape {shape} and {packed['dtype']} has the wrong number of bytes")
    return np.frombuffer(raw, kind).reshape(shape)


@dataclass(frozen=True)
class Summary:
    """A number over several trials."""

    mean: float
    sd: float
    """Sample standard deviation (n − 1); NaN for a single trial."""
    trials: int

    def __str__(self) -> str:
        return f"{self.mean:.2f} ± {self.sd:.2f}" if self.trials > 1 else f"{self.mean:.2f}"


def summarise(values: Sequence[float]) -> Summary:
    """
    >>> print(summarise([1.0, 2.0, 3.0]))
    2.00 ± 1.00
    """
    if not values:
        raise ValueError("values: expected at least one trial, got none")
    sd = float(np.std(values, ddof=1)) if len(values) > 1 else math.nan
    return Summary(float(np.mean(values)), sd, len(values))


@dataclass(frozen=True)
class Comparison:
    """Two learners compared by their errors on the same sequences, or in the same trials."""

    pairs: int
    difference: float
    """Mean of ours − theirs: negative if ours is better."""
    low: float
    high: float
    """The 95 % confidence interval of the mean difference, by Student's t."""
    p_t: float
    """p value of the paired t test."""
    p_wilcoxon: float
    """p value of Wilcoxon's signed-rank test, which assumes no distribution."""

    @property
    def significant(self) -> bool:
        """Whether both tests reject chance at 0.05."""
        return max(self.p_t, self.p_wilcoxon) < 0.05


def compare(ours: ArrayLike, theirs: ArrayLike) -> Comparison:
    """Paired tests over errors; entry i of both belongs to the same sequence or trial.

    >>> compare([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0], [1.5, 2.6, 3.4, 4.5, 5.6, 6.4, 7.5]).significant
    True
    """
    first, second = np.asarray(ours, float), np.asarray(theirs, float)
    if first.shape != second.shape or first.ndim != 1:
        raise ValueError(f"errors: expected two lists of one length, got shapes {first.shape} and {second.shape}")
    scored = np.isfinite(first) & np.isfinite(second)  # a text of one symbol has no error, since nothing precedes it
    first, second = first[scored], second[scored]
    if len(first) < 2:
        raise ValueError(f"errors: expected at least 2 pairs, got {len(first)}")
    gap = first - second
    mean = float(gap.mean())
    if np.ptp(gap) == 0.0:  # no spread, so no test
        p = 1.0 if mean == 0.0 else 0.0
        return Comparison(len(gap), mean, mean, mean, p, p)
    t_test = stats.ttest_rel(first, second)
    interval = t_test.confidence_interval(0.95)
    wilcoxon = stats.wilcoxon(first, second, method=_wilcoxon_method(gap))
    return Comparison(
        len(gap), mean, float(interval.low), float(interval.high), float(t_test.pvalue), float(wilcoxon.pvalue)
    )


def _wilcoxon_method(gap: np.ndarray[Any, Any]) -> str:
    """The exact test needs few pairs, without ties or zeros."""
    return "exact" if len(gap) <= 25 and len(np.unique(np.abs(gap))) == len(gap) and gap.all() else "approx"
