"""A forecast from a checkpoint, and its picture."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ptncn import checkpoint
from ptncn.streaming.columns import Columns, Value, Vector
from ptncn.streaming.history import History
from ptncn.streaming.predictor import Predictor

PICTURES = (".png", ".svg", ".pdf")
MOST_PANELS = 12


@dataclass
class Forecast:
    """What a learner expects, and what it had seen before."""

    names: tuple[str, ...]
    rows: list[dict[str, Value]]
    """The steps ahead, the nearest first."""
    entries: Vector
    """(horizon, width) the same as numbers."""
    past: Vector
    """(n, 2, width) the last observations and what had been predicted of them, the oldest first."""
    places: list[int]
    """The entry of each column that holds one number."""
    numeric: tuple[str, ...]

    def as_json(self, step: int, row: dict[str, Value]) -> str:
        return json.dumps({"step": step, **row}, ensure_ascii=False) + "\n"

    def draw(self, path: Path) -> None:
        """A panel for each of the first twelve numeric columns: the past, what was expected of it, the future."""
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        shown = list(zip(self.numeric, self.places, strict=True))[:MOST_PANELS]
        if not shown:
            raise ValueError(f"{path}: there is no numeric column to draw")
        figure = Figure(figsize=(9, 1 + 1.8 * len(shown)), layout="constrained")
        FigureCanvasAgg(figure)
        panels = figure.subplots(len(shown), sharex=True, squeeze=False)[:, 0]
        before = np.arange(-len(self.past) + 1, 1)
        ahead = np.arange(1, len(self.entries) + 1)
        for panel, (name, place) in zip(panels, shown, strict=True):
            panel.plot(before, self.past[:, 0, place], color="black", linewidth=1, label="observed")
            panel.plot(before, self.past[:, 1, place], color="tab:blue", linewidth=0.8, alpha=0.7, label="predicted")
            panel.plot(ahead, self.entries[:, place], color="tab:red", linewidth=1.2, label="forecast")
            panel.axvline(0.5, color="gray", linewidth=0.6, linestyle=":")
            panel.set_ylabel(name)
        panels[0].legend(loc="upper left", fontsize="small", ncols=3)
        panels[-1].set_xlabel("steps from now")
        figure.savefig(path)


def forecast_from(path: str | os.PathLike[str], horizon: int) -> Forecast:
    """Roll a saved learner on its own output for `horizon` steps; the file is only read."""
    saved = checkpoint.load(path)
    try:
        tree: dict[str, Any] = saved.extra["stream"]
        columns = Columns(slots=tree["columns"]["slots"])
        columns.load_tree(tree["columns"])
        predictor = Predictor(saved.learner, tree["target"], columns.unscaled)
        predictor.load_tree(tree["predictor"], saved.state)
        history = History(columns.width)
        history.load_tree(tree["history"])
    except (KeyError, TypeError, AttributeError, IndexError) as error:
        raise checkpoint.CheckpointError(
            f"{path}: a learner, but not one that `ptncn stream` saved with its columns and scales: {error!r}"
        ) from error
    entries = predictor.forecast(horizon)
    return Forecast(
        names=columns.names,
        rows=[columns.decode(row.tolist()) for row in entries],
        entries=np.array(entries),
        past=history.ordered(),
        places=np.flatnonzero(~columns.unscaled).tolist(),
        numeric=tuple(name for name in columns.names if name not in columns.categories),
    )
