"""The task matrix of continual learning, for losses: lower is better, which turns the usual signs around."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import Any

from ptncn.messages import unknown


class TaskMatrix:
    """Losses on every task, before any training and after each task, in the order in which they are learnt.

    R[i][j] is the loss on task j when i tasks have been learnt; row 0 is the untrained learner. The names are
    Avalanche's, the signs are those for losses: positive forgetting is bad, positive transfer is good.

    >>> matrix = TaskMatrix(["mnist", "fashion"])
    >>> for learnt, losses in enumerate([(9.0, 8.0), (2.0, 7.0), (3.0, 1.0)]):
    ...     for task, loss in zip(matrix.tasks, losses):
    ...         matrix.record(learnt, task, loss)
    >>> matrix.average()  # (3 + 1) / 2
    2.0
    >>> matrix.forgetting()  # mnist rose from 2 to 3
    1.0
    >>> matrix.forward_transfer()  # mnist alone took fashion from 8 to 7
    1.0
    """

    name = "tasks"

    def __init__(self, tasks: Sequence[str]) -> None:
        if not tasks or len(set(tasks)) != len(tasks):
            raise ValueError(f"tasks: expected different names, at least one, got {list(tasks)!r}")
        self.tasks = tuple(tasks)
        self.reset()

    def record(self, learnt: int, task: str, loss: float) -> None:
        """Enter the loss on `task` once the first `learnt` tasks were learnt; 0 is before any training."""
        if task not in self.tasks:
            raise ValueError(unknown("task", task, self.tasks))
        if not 0 <= learnt <= len(self.tasks):
            raise ValueError(f"learnt: expected 0 to {len(self.tasks)} tasks, got {learnt!r}")
        self.losses[learnt][self.tasks.index(task)] = float(loss)

    def average(self) -> float:
        """The mean final loss over all tasks: row T."""
        last = len(self.tasks)
        return fmean(self._loss(last, task) for task in range(last))

    def forgetting(self) -> float:
        """How much the loss on a task rose since it was learnt; mean over all but the last task."""
        last = len(self.tasks)
        return _mean(self._loss(last, task) - self._loss(task + 1, task) for task in range(last - 1))

    def backward_transfer(self) -> float:
        """How much later tasks lowered the loss on earlier ones: −forgetting."""
        return -self.forgetting()

    def forward_transfer(self) -> float:
        """How much earlier tasks lowered the loss on one not yet learnt; mean over all but the first task."""
        return _mean(self._loss(0, task) - self._loss(task, task) for task in range(1, len(self.tasks)))

    def compute(self) -> dict[str, Any]:
        """All four, NaN for those that need more than one task."""
        return {
            "average": self.average(),
            "forgetting": self.forgetting(),
            "backward_transfer": self.backward_transfer(),
            "forward_transfer": self.forward_transfer(),
        }

    def reset(self) -> None:
        width = len(self.tasks)
        self.losses: list[list[float | None]] = [[None] * width for _ in range(width + 1)]

    def tree(self) -> dict[str, Any]:
        return {"tasks": list(self.tasks), "losses": [list(row) for row in self.losses]}

    def load_tree(self, tree: Mapping[str, Any]) -> None:
        if tuple(tree["tasks"]) != self.tasks:
            raise ValueError(f"tasks: expected {list(self.tasks)}, got {list(tree['tasks'])}")
        self.losses = [list(row) for row in tree["losses"]]

    def _loss(self, learnt: int, task: int) -> float:
        loss = self.losses[learnt][task]
        if loss is None:
            when = f"after {self.tasks[learnt - 1]!r}" if learnt else "before any training"
            raise ValueError(f"no loss was recorded on task {self.tasks[task]!r} {when}")
        return loss


def _mean(values: Iterable[float]) -> float:
    numbers = list(values)
    return fmean(numbers) if numbers else math.nan
