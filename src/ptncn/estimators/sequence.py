"""What the estimators for River have in common."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any

from river import base

from ptncn.estimators.rows import Key, NamedRows
from ptncn.streaming.options import HIDDEN, TARGET

Row = dict[Key, float]


class SequenceEstimator(base.Estimator):
    """What the three have in common: the parameters, and the rows that the learner has seen."""

    def __init__(
        self,
        learner: str = "ptncn",
        hidden: tuple[int, ...] = HIDDEN,
        lr: float | None = None,
        target: str = TARGET,
        spare: int = 0,
        options: dict[str, Any] | None = None,
        seed: int | None = None,
    ) -> None:
        self.learner = learner
        self.hidden = hidden
        self.lr = lr
        self.target = target
        self.spare = spare
        self.options = options
        self.seed = seed
        self._rows = NamedRows(
            target=target,
            spare=spare,
            settings={
                "name": learner,
                "hidden": hidden,
                "lr": lr,
                "seed": random.Random().getrandbits(31) if seed is None else seed,
                "options": options,
            },
        )

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {"hidden": (8, 8)}
        yield {"learner": "lstm-tbptt", "hidden": (8,), "target": "level", "options": {"window": 5, "stride": 5}}
        yield {"learner": "esn-rls", "hidden": (20,), "target": "change", "seed": 1}
        yield {"learner": "copy", "target": "both"}


class TargetEstimator(SequenceEstimator):
    """Targets that features go with.

    The features of a row are known before its targets. So that they help to predict them, the learner sees the
    features of a row together with the targets of the row before, and is asked what comes next: the targets of this
    row, and the features of the row after.
    """

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self._owed: Row | None = None
        """The targets of the last row, which the learner sees with the next."""

    def _learn(self, features: Row, targets: Row) -> None:
        self._rows.admit(features, targets)
        self._rows.observe({**features, **(self._owed or {})}, learn=True)
        self._owed = targets

    def _expect(self, features: Sequence[Row]) -> list[dict[Any, float]]:
        """The targets of rows to come, of which the features are known. Each is taken for what happened."""
        ahead = [*features, {}]
        ahead[0] = {**ahead[0], **(self._owed or {})}
        with self._rows.branch() as rows:
            guesses = [guess for row in ahead if (guess := rows.observe(row, learn=False)) is not None]
        return [self._rows.named("y", guess.prediction) for guess in guesses[1:]] or [{} for _ in features]
