"""Results of a stream: observations, running statistics and forecasts, as objects and as tables."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptncn.checkpoint import check_like
from ptncn.streaming.columns import Columns, Known, Value, Vector
from ptncn.streaming.formats import Field, Table


@dataclass(slots=True)
class Steps:
    """An engine's results for n rows, in order. Values are in the units of the source, NaN for unknown.

    w counts the entries of the targets, h the steps of the forecast.
    """

    predicted: Vector
    """(n, w) made before the row was seen."""
    forecast: Vector
    """(n, h, w) the next h rows, made after the row was seen."""
    lower: Vector
    """(n, h, w) bounds of the forecast; (n, 0, w) for an engine without bounds."""
    upper: Vector
    surprise: Vector
    """(n,) ½ Σ e²/v over the targets; NaN if nothing was observed or predicted."""
    parts: Vector
    """(n, w) the contribution of each entry to the surprise."""
    anomaly: Vector
    """(n,) from 0 to 1, NaN among the first rows."""
    alarm: NDArray[np.bool_]
    severity: Vector
    """(n,) severity of the alarm; 0 without one."""
    error: Vector
    """(n,) the mean squared error over the targets, in scaled units; NaN if it does not count."""
    copy_error: Vector
    """(n,) the same for a prediction that copies the last observation."""
    layer_errors: Vector
    """(n, layers) ½‖e‖² of each layer; (n, 0) unless requested."""

    @classmethod
    def empty(cls, n: int, width: int, horizon: int, *, bounds: bool, layers: int = 0) -> Steps:
        steps = np.full((n, horizon, width), np.nan)
        around = np.full((n, horizon if bounds else 0, width), np.nan)
        nothing = np.full(n, np.nan)
        return cls(
            predicted=np.full((n, width), np.nan),
            forecast=steps,
            lower=around,
            upper=around.copy(),
            surprise=nothing,
            parts=np.full((n, width), np.nan),
            anomaly=nothing.copy(),
            alarm=np.zeros(n, dtype=bool),
            severity=np.zeros(n),
            error=nothing.copy(),
            copy_error=nothing.copy(),
            layer_errors=np.full((n, layers), np.nan),
        )

    @classmethod
    def joined(cls, parts: Sequence[Steps]) -> Steps:
        if len(parts) == 1:
            return parts[0]
        return cls(**{f.name: np.concatenate([getattr(part, f.name) for part in parts]) for f in fields(cls)})

    def take(self, rows: NDArray[np.bool_]) -> Steps:
        """Some of the rows."""
        return Steps(**{f.name: getattr(self, f.name)[rows] for f in fields(self)})


@dataclass(slots=True)
class Observation:
    """The result for one row: its values, their prediction, and how unusual they are, in the units of the source."""

    index: int
    """Number of rows before this one."""
    line: int
    """Line in the source, from 1."""
    key: str | None
    timestamp: str | float | None
    observed: dict[str, Value]
    """The values of the targets; None if missing."""
    prediction: dict[str, Value] | None
    """Made before the observation was seen; None for the first."""
    forecast: list[dict[str, Value]]
    """The next `horizon` rows, forecast after this one was seen."""
    lower: list[dict[str, Value]]
    """The bounds of the forecast, if there are any."""
    upper: list[dict[str, Value]]
    surprise: float | None
    """½ Σ e²/v over the targets; None if nothing was observed or predicted."""
    cause: str | None
    """The target that contributes most to the surprise."""
    surprises: dict[str, float]
    """The contribution of each target to the surprise."""
    anomaly: float | None
    """From 0 to 1; None among the first observations."""
    alarm: bool
    severity: float
    """Severity of the alarm; 0 without one."""
    drift: bool
    """Whether the drift detector, if there is one, has detected a lasting change with this observation."""
    errors: tuple[float | None, ...]
    """½‖e‖² of each layer, if requested; None before the first scored row."""


@dataclass(slots=True)
class Results:
    """The results of a block of n rows."""

    columns: Columns
    first: int
    """Observations before the first row."""
    lines: list[int]
    keys: list[str] | None
    timestamps: list[Any] | None
    observed: Vector
    """(n, w) entries of the targets."""
    steps: Steps
    drift: NDArray[np.bool_]
    known: Known
    """A prediction names only categories seen before its row, whatever the block boundaries."""

    def __len__(self) -> int:
        return len(self.lines)

    def __iter__(self) -> Iterator[Observation]:
        return map(self.row, range(len(self)))

    def parts(self) -> Vector:
        """(n, targets) the contribution of each target to the surprise."""
        owners, parts = self.columns.owners, self.steps.parts
        if len(owners) == len(self.columns.names):
            return parts
        return np.add.reduceat(parts, [owners.index(index) for index in range(len(self.columns.names))], axis=1)

    def row(self, i: int) -> Observation:
        steps, key = self.steps, None if self.keys is None else self.keys[i]
        before, after = ({name: int(counts[i, when]) for name, counts in self.known.items()} for when in (0, 1))

        def decode(entries: Sequence[float], known: Mapping[str, int] = after) -> dict[str, Value]:
            return self.columns.decode(entries, key, known)

        predicted = steps.predicted[i].tolist()
        surprise, anomaly = float(steps.surprise[i]), float(steps.anomaly[i])
        parts = dict(zip(self.columns.names, self.parts()[i].tolist(), strict=True)) if surprise == surprise else {}
        return Observation(
            index=self.first + i,
            line=self.lines[i],
            key=key,
            timestamp=None if self.timestamps is None else self.timestamps[i],
            observed=decode(self.observed[i].tolist()),
            prediction=None if all(x != x for x in predicted) else decode(predicted, before),
            forecast=[decode(ahead) for ahead in steps.forecast[i].tolist()],
            lower=[decode(ahead) for ahead in steps.lower[i].tolist()],
            upper=[decode(ahead) for ahead in steps.upper[i].tolist()],
            surprise=None if surprise != surprise else surprise,
            cause=max(parts, key=lambda name: parts[name]) if surprise > 0 else None,
            surprises=parts,
            anomaly=None if anomaly != anomaly else anomaly,
            alarm=bool(steps.alarm[i]),
            severity=float(steps.severity[i]),
            drift=bool(self.drift[i]),
            errors=tuple(None if e != e else e for e in steps.layer_errors[i].tolist()),
        )

    def table(self) -> Table:
        """A field for each number, for a writer."""
        n, names, steps = len(self), self.columns.names, self.steps
        table: Table = [
            Field("index", ("index",), range(self.first, self.first + n), "whole"),
            Field("line", ("line",), self.lines, "whole"),
        ]
        if self.keys is not None:
            table.append(Field("key", ("key",), self.keys, "text"))
        table.append(Field("timestamp", ("timestamp",), self.timestamps or [None] * n, "text"))
        table += self._fields(self.observed, "", ("observed",), "exact")
        table += self._fields(steps.predicted, ".predicted", ("predicted",), "float", when=0)
        table += self._ahead()
        table.append(Field("surprise", ("surprise",), steps.surprise, "float"))
        if len(names) > 1:
            parts = self.parts()
            surprised = steps.surprise > 0
            cause = np.where(np.isnan(parts), -1.0, parts).argmax(1).tolist()
            table.append(
                Field(
                    "cause",
                    ("cause",),
                    [names[c] if s else None for c, s in zip(cause, surprised, strict=True)],
                    "text",
                )
            )
            table += [
                Field(f"{name}.surprise", ("surprises", name), parts[:, index], "float")
                for index, name in enumerate(names)
            ]
        table += [
            Field("anomaly", ("anomaly",), steps.anomaly, "float"),
            Field("alarm", ("alarm",), steps.alarm.tolist(), "flag"),
            Field("severity", ("severity",), steps.severity, "float"),
            Field("drift", ("drift",), self.drift.tolist(), "flag"),
        ]
        table += [
            Field(f"error.layer{layer}", ("errors", layer), steps.layer_errors[:, layer], "float")
            for layer in range(steps.layer_errors.shape[1])
        ]
        return table

    def _ahead(self) -> Table:
        """The forecasts and their bounds, step by step."""
        names, steps = self.columns.names, self.steps
        parts = [steps.forecast, steps.lower, steps.upper] if steps.lower.shape[1] else [steps.forecast]
        places = _places_ahead(tuple(names), steps.forecast.shape[1], len(parts))
        if not any(name in self.columns.categories for name in names):  # most tables: copied at once
            whole = np.stack(parts, axis=2).reshape(len(self), -1)
            return [Field(*place, whole[:, i], "float", (whole, i)) for i, place in enumerate(places)]
        values = [self.split(part[:, step]) for step in range(steps.forecast.shape[1]) for part in parts]
        kinds: dict[str, Any] = {name: "text" if name in self.columns.categories else "float" for name in names}
        owned = [(name, own) for each in values for name, own in each.items()]
        return [Field(*place, own, kinds[name]) for place, (name, own) in zip(places, owned, strict=True)]

    def split(self, entries: Vector, when: int = 1) -> dict[str, Any]:
        """(n, w) entries by target, with the categories known before the row (`when` = 0) or after it."""
        return self.columns.split(entries, self.keys, {name: counts[:, when] for name, counts in self.known.items()})

    def _fields(self, entries: Vector, suffix: str, path: tuple[str | int, ...], kind: Any, *, when: int = 1) -> Table:
        return target_fields(self.columns, self.split(entries, when), suffix, path, kind)


@lru_cache(8)
def _places_ahead(names: tuple[str, ...], horizon: int, parts: int) -> list[tuple[str, tuple[str | int, ...]]]:
    """Names and paths of the fields of a forecast: for each step the forecast of each target, then its bounds."""
    kinds = (("forecast", ""), ("lower", ".lower"), ("upper", ".upper"))[:parts]
    return [
        (f"{name}.ahead{step + 1}{suffix}", (kind, step, name))
        for step in range(horizon)
        for kind, suffix in kinds
        for name in names
    ]


def target_fields(
    columns: Columns, values: Mapping[str, Any], suffix: str, path: tuple[str | int, ...], kind: Any
) -> Table:
    """A field for each target, from its values."""
    return [
        Field(f"{name}{suffix}", (*path, name), own, "text" if name in columns.categories else kind)
        for name, own in values.items()
    ]


FADING = 0.999


@dataclass
class RunningStats:
    """Counts, and fading means of the squared errors over the targets, in scaled units."""

    observations: int = 0
    scored: int = 0
    alarms: int = 0
    drifts: int = 0
    bad_rows: int = 0
    gaps: int = 0
    late_rows: int = 0
    error: float = 0.0
    copy_error: float = 0.0

    def score(self, errors: Sequence[float], copy_errors: Sequence[float]) -> None:
        """Add the errors of rows one by one, so that block boundaries do not matter; NaN is ignored."""
        error, copied = self.error, self.copy_error
        for own, copy in zip(errors, copy_errors, strict=True):
            if own == own and copy == copy:
                self.scored += 1
                error = FADING * error + own
                copied = FADING * copied + copy
        self.error, self.copy_error = error, copied

    @property
    def against_copy(self) -> float:
        """The error relative to copying the last observation; below 1 is better than copying."""
        return math.sqrt(self.error / self.copy_error) if self.copy_error else math.nan

    def tree(self) -> dict[str, float]:
        return asdict(self)

    def load_tree(self, tree: Mapping[str, float]) -> None:
        check_like(tree, self.tree(), "stats")
        for name in self.tree().keys() & tree.keys():
            setattr(self, name, tree[name])


LENGTH = 256


class History:
    """The last 256 observations and predictions, in the units of the source."""

    def __init__(self, width: int) -> None:
        self.pairs = np.empty((0, 2, width))
        """(n, 2, width): observed and predicted, the oldest first."""

    def add(self, observed: Vector, predicted: Vector) -> None:
        """Take (n, width) rows."""
        new = np.stack((observed, predicted), axis=1)
        self.pairs = np.concatenate((self.pairs, new))[-LENGTH:] if len(new) < LENGTH else new[-LENGTH:]

    def tree(self) -> dict[str, Any]:
        return {"pairs": self.pairs}

    def load_tree(self, tree: Mapping[str, Any]) -> None:
        pairs = np.asarray(tree["pairs"], dtype=np.float64)
        if pairs.ndim != 3 or pairs.shape[1:] != self.pairs.shape[1:]:
            raise ValueError(f"pairs: expected (n, 2, {self.pairs.shape[2]}), got {pairs.shape}")
        self.pairs = pairs


PICTURES = (".png", ".svg", ".pdf")
MOST_PANELS = 12


@dataclass
class Forecast:
    """A forecast, with the rows before it."""

    columns: Columns
    entries: Vector
    """(horizon, w) the entries of the targets, the nearest step first."""
    lower: Vector
    """(horizon, w) bounds, or (0, w) without any."""
    upper: Vector
    past: Vector
    """(n, 2, w) the last observations and their predictions, oldest first."""
    times: list[Any] | None
    """Dates of the steps ahead, if the stream has timestamps."""
    key: str | None = None

    @property
    def rows(self) -> list[dict[str, Value]]:
        """The steps ahead, one value per target."""
        return [self.columns.decode(row, self.key) for row in self.entries.tolist()]

    def table(self) -> Table:
        """A row for each step, for a writer."""
        count = len(self.entries)
        table: Table = [Field("step", ("step",), range(1, count + 1), "whole")]
        if self.key is not None:
            table.append(Field("key", ("key",), [self.key] * count, "text"))
        if self.times is not None:
            table.append(Field("timestamp", ("timestamp",), self.times, "text"))
        keys = None if self.key is None else [self.key] * count
        table += target_fields(self.columns, self.columns.split(self.entries, keys), "", (), "float")
        if len(self.lower):
            for name, bounds in (("lower", self.lower), ("upper", self.upper)):
                table += target_fields(self.columns, self.columns.split(bounds, keys), f".{name}", (name,), "float")
        return table

    def draw(self, path: Path) -> None:
        """One panel for each of the first twelve numeric targets: observations, predictions and the forecast."""
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        owners = self.columns.owners
        numeric = [name for name in self.columns.names if name not in self.columns.categories]
        shown = [(name, owners.index(self.columns.names.index(name))) for name in numeric][:MOST_PANELS]
        if not shown:
            raise ValueError(f"{path}: there is no numeric target to draw")
        figure = Figure(figsize=(9, 1 + 1.8 * len(shown)), layout="constrained")
        FigureCanvasAgg(figure)
        panels = figure.subplots(len(shown), sharex=True, squeeze=False)[:, 0]
        before = np.arange(-len(self.past) + 1, 1)
        ahead = np.arange(1, len(self.entries) + 1)
        for panel, (name, place) in zip(panels, shown, strict=True):
            panel.plot(before, self.past[:, 0, place], color="black", linewidth=1, label="observed")
            panel.plot(before, self.past[:, 1, place], color="tab:blue", linewidth=0.8, alpha=0.7, label="predicted")
            panel.plot(ahead, self.entries[:, place], color="tab:red", linewidth=1.2, label="forecast")
            if len(self.lower):
                bounds = self.lower[:, place], self.upper[:, place]
                panel.fill_between(ahead, *bounds, color="tab:red", alpha=0.15, linewidth=0, label="interval")
            panel.axvline(0.5, color="gray", linewidth=0.6, linestyle=":")
            panel.set_ylabel(name)
        panels[0].legend(loc="upper left", fontsize="small", ncols=4)
        panels[-1].set_xlabel("steps from now")
        figure.savefig(path)
