"""A forecast as a table, and as a picture with the last observations and what was expected of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ptncn.streaming.columns import Columns, Value, Vector
from ptncn.streaming.results import target_fields
from ptncn.streaming.writers import Field, Table

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
    """What is expected, and what was seen before."""

    columns: Columns
    entries: Vector
    """(horizon, w) the entries of the targets, the nearest step first."""
    lower: Vector
    """(horizon, w) bounds, or (0, w) without any."""
    upper: Vector
    past: Vector
    """(n, 2, w) the last observations and what had been predicted for them, the oldest first."""
    times: list[Any] | None
    """Dates of the steps ahead, if the stream has timestamps."""
    key: str | None = None

    @property
    def rows(self) -> list[dict[str, Value]]:
        """The steps ahead as one value a target."""
        return [self.columns.decode(row) for row in self.entries.tolist()]

    def table(self) -> Table:
        """A row for each step, for a writer."""
        count = len(self.entries)
        table: Table = [Field("step", ("step",), range(1, count + 1), "whole")]
        if self.key is not None:
            table.append(Field("key", ("key",), [self.key] * count, "text"))
        if self.times is not None:
            table.append(Field("timestamp", ("timestamp",), self.times, "text"))
        table += target_fields(self.columns, self.entries, "", (), "float")
        if len(self.lower):
            table += target_fields(self.columns, self.lower, ".lower", ("lower",), "float")
            table += target_fields(self.columns, self.upper, ".upper", ("upper",), "float")
        return table

    def draw(self, path: Path) -> None:
        """A panel for each of the first twelve numeric targets: the past, what was predicted, and the future."""
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
