"""What a stream says about its rows: as a block for writers, and one by one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptncn.streaming.columns import Columns, Value, Vector
from ptncn.streaming.engine import Steps
from ptncn.streaming.writers import Field, Table


@dataclass(slots=True)
class Observation:
    """One observation, what was expected of it, and how surprising it was. Values are in the units of the source."""

    index: int
    """Observations before this one."""
    line: int
    """Where it was in the source, from 1."""
    key: str | None
    timestamp: str | float | None
    observed: dict[str, Value]
    """None where nothing was observed."""
    prediction: dict[str, Value] | None
    """Made before the observation was seen; None for the first, which nothing came before."""
    forecast: list[dict[str, Value]]
    """The next `horizon` observations, expected after this one was seen."""
    lower: list[dict[str, Value]]
    """The bounds of the forecast, if there are any."""
    upper: list[dict[str, Value]]
    surprise: float | None
    """½ Σ e²/v over the targets; None where nothing was observed or expected."""
    cause: str | None
    """The target with the largest part in the surprise."""
    surprises: dict[str, float]
    """The part of each target in the surprise."""
    anomaly: float | None
    """From 0 to 1; None among the first observations."""
    alarm: bool
    severity: float
    """Of an alarm; 0 without one."""
    drift: bool
    """Whether the drift detector, if there is one, has detected a lasting change with this observation."""
    errors: tuple[float | None, ...]
    """½‖e‖² of each layer, if asked for; None before there was anything to see."""


@dataclass(slots=True)
class Results:
    """A block of n rows and what was made of them."""

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

    def __len__(self) -> int:
        return len(self.lines)

    def __iter__(self) -> Iterator[Observation]:
        return map(self.row, range(len(self)))

    def parts(self) -> Vector:
        """(n, targets) the part of each target in the surprise."""
        owners, parts = self.columns.owners, self.steps.parts
        if len(owners) == len(self.columns.names):
            return parts
        return np.add.reduceat(parts, [owners.index(index) for index in range(len(self.columns.names))], axis=1)

    def row(self, i: int) -> Observation:
        steps, decode = self.steps, self.columns.decode
        predicted = steps.predicted[i].tolist()
        surprise, anomaly = float(steps.surprise[i]), float(steps.anomaly[i])
        parts = dict(zip(self.columns.names, self.parts()[i].tolist(), strict=True)) if surprise == surprise else {}
        return Observation(
            index=self.first + i,
            line=self.lines[i],
            key=None if self.keys is None else self.keys[i],
            timestamp=None if self.timestamps is None else self.timestamps[i],
            observed=decode(self.observed[i].tolist()),
            prediction=None if all(x != x for x in predicted) else decode(predicted),
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
        table += self._fields(steps.predicted, ".predicted", ("predicted",), "float")
        for step in range(steps.forecast.shape[1]):
            name = f".ahead{step + 1}"
            table += self._fields(steps.forecast[:, step], name, ("forecast", step), "float")
            if steps.lower.shape[1]:
                table += self._fields(steps.lower[:, step], f"{name}.lower", ("lower", step), "float")
                table += self._fields(steps.upper[:, step], f"{name}.upper", ("upper", step), "float")
        table.append(Field("surprise", ("surprise",), steps.surprise.tolist(), "float"))
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
                Field(f"{name}.surprise", ("surprises", name), parts[:, index].tolist(), "float")
                for index, name in enumerate(names)
            ]
        table += [
            Field("anomaly", ("anomaly",), steps.anomaly.tolist(), "float"),
            Field("alarm", ("alarm",), steps.alarm.tolist(), "flag"),
            Field("severity", ("severity",), steps.severity.tolist(), "float"),
            Field("drift", ("drift",), self.drift.tolist(), "flag"),
        ]
        table += [
            Field(f"error.layer{layer}", ("errors", layer), steps.layer_errors[:, layer].tolist(), "float")
            for layer in range(steps.layer_errors.shape[1])
        ]
        return table

    def _fields(self, entries: Vector, suffix: str, path: tuple[str | int, ...], kind: Any) -> Table:
        return target_fields(self.columns, entries, suffix, path, kind)


def target_fields(columns: Columns, entries: Vector, suffix: str, path: tuple[str | int, ...], kind: Any) -> Table:
    """A field for each target in (n, w) entries."""
    return [
        Field(f"{name}{suffix}", (*path, name), values, "text" if name in columns.categories else kind)
        for name, values in columns.split(entries).items()
    ]
