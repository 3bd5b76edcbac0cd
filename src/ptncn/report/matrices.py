"""Task matrices: the loss on each task, before learning and after each task."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from ptncn.report.drawing import INK, WIDTH, canvas, finish, rules
from ptncn.report.looks import label
from ptncn.report.parts import Picture


def task_matrices(
    name: str,
    tasks: Sequence[str],
    losses: Mapping[str, ArrayLike],
    *,
    title: str,
    learnt: Sequence[str] | None = None,
) -> Picture:
    """A heat map a model: rows are what was learnt so far, columns the task tested; light is good.

    All share one scale of colours, and each cell has its number, so that nothing hangs on colour. `learnt` has the
    tasks in the order in which they were learnt, where it is another than that of the columns or one came twice.
    """
    learnt = tasks if learnt is None else learnt
    matrices = {model: np.asarray(matrix, float) for model, matrix in losses.items()}
    wanted = (len(learnt) + 1, len(tasks))
    for model, matrix in matrices.items():
        if matrix.shape != wanted:
            raise ValueError(f"the task matrix of {model} has the shape {matrix.shape}; {wanted} would be right")
    if not matrices:
        raise ValueError("no task matrix to draw")
    trained = np.concatenate([matrix[1:].ravel() for matrix in matrices.values()])
    low, high = float(np.nanmin(trained)), float(np.nanmax(trained))
    rows = math.ceil(len(matrices) / 2)
    with rules():
        figure, grid = canvas(WIDTH, 0.5 + 2.15 * rows, nrows=rows, ncols=2, squeeze=False)
        figure.suptitle(title, x=0.01, ha="left", size=11, weight="bold")
        for place, axes in enumerate(grid.flat):
            axes.grid(visible=False)
            for spine in axes.spines.values():
                spine.set_visible(False)
            if place >= len(matrices):
                axes.set_axis_off()
                continue
            model, matrix = list(matrices.items())[place]
            axes.imshow(matrix, cmap="cividis_r", vmin=low, vmax=high, aspect="auto", interpolation="nearest")
            axes.set_title(label(model), size=10, weight="normal", color=INK)
            axes.set_xticks(range(len(tasks)), [label(task).replace(" ", "\n") for task in tasks], size=8)
            before = ["untrained", *(f"after {label(task)}" for task in learnt)]
            axes.set_yticks(range(len(before)), before if place % 2 == 0 else [""] * len(before), size=8)
            axes.tick_params(length=0)
            for (row, column), value in np.ndenumerate(matrix):
                dark = value - low > 0.55 * (high - low)
                ink = "#fefefe" if dark else "#000001"  # not the page's ink: cells keep their colours in the dark
                axes.text(column, row, f"{value:.1f}", ha="center", va="center", size=8.5, color=ink)
        return finish(figure, name)
