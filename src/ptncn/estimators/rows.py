"""Rows as dicts whose columns may change, for learners with a fixed number of inputs; bases of the River estimators."""

from __future__ import annotations

import copy
import math
import numbers
import random
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from river import base
from torch import Tensor

from ptncn.streaming.columns import LARGEST, Vector
from ptncn.streaming.options import HIDDEN, TARGET, default_learner
from ptncn.streaming.predictor import TARGETS, Prediction, Predictor

Key = tuple[str, Hashable]
"""The role of a column, "x" or "y", and its name: a feature and a target may have the same name."""


def numbers_of(role: str, values: Mapping[Hashable, Any] | None) -> dict[Key, float]:
    """The numbers of a row. None means not observed; anything else, such as text or a date, is ignored."""
    row: dict[Key, float] = {}
    for name, value in (values or {}).items():
        if value is None:
            row[role, name] = math.nan
        elif isinstance(value, numbers.Real | np.bool_):
            row[role, name] = number = float(value)
            if not -LARGEST < number < LARGEST and number == number:
                raise ValueError(f"{name!r}: expected a finite number, or None if it was not observed, got {number}")
    return row


class NamedRows:
    """A learner that is built when the first row arrives, and then sees one row at a time.

    Each column of the first row gets an input, and `spare` inputs are reserved for columns that appear later. Once
    these are used up, new columns are ignored. Unused inputs, and columns that a row lacks, are filled in with the
    learner's own prediction, so their error is zero and nothing is learnt from them.

    Columns that appear together are sorted by name, so the order of a dict does not matter.
    """

    def __init__(self, *, target: str, spare: int, settings: Mapping[str, Any]) -> None:
        """`settings` are the arguments of `default_learner`."""
        if target not in TARGETS:
            raise ValueError(f"target: expected one of {', '.join(TARGETS)}, got {target!r}")
        if spare < 0:
            raise ValueError(f"spare: expected at least 0, got {spare}")
        self.target, self.spare, self.settings = target, spare, settings
        self.places: dict[Key, int] = {}
        self.predictor: Predictor | None = None

    @property
    def width(self) -> int:
        return 0 if self.predictor is None else self._width

    def admit(self, *parts: Mapping[Key, float]) -> None:
        """Assign inputs to new columns; the first call with any column builds the learner."""
        new = sorted({key for part in parts for key in part if key not in self.places}, key=_by_name)
        if self.predictor is None and new:
            self._width = len(new) + self.spare
            unscaled = np.zeros(self._width, dtype=bool)
            learner = default_learner(Predictor.input_size(self.target, unscaled), **self.settings)
            self.predictor = Predictor(learner, self.target, unscaled)
        for key in new[: self.width - len(self.places)]:
            self.places[key] = len(self.places)

    def observe(self, row: Mapping[Key, float], *, learn: bool) -> Prediction | None:
        """Predict a row, then show it to the learner; None before the first column is known."""
        if self.predictor is None:
            return None
        values = np.full(self._width, np.nan)
        for key, value in row.items():
            if key in self.places:
                values[self.places[key]] = value
        return self.predictor.observe(values, learn=learn)

    @contextmanager
    def branch(self) -> Iterator[NamedRows]:
        """A branch that continues from here; as long as it does not learn, the original stays unchanged."""
        twin = object.__new__(NamedRows)
        twin.__dict__ |= self.__dict__
        if self.predictor is None:
            yield twin
            return
        with self.predictor.branch() as twin.predictor:
            yield twin

    def __getstate__(self) -> dict[str, Any]:
        """A snapshot in place of the learner, so that the pickle only changes if something was learnt."""
        if self.predictor is None:
            return self.__dict__
        predictor: Any = copy.copy(self.predictor)
        predictor.learner = (self.predictor.learner.input_size, _to_arrays(self.predictor.learner.snapshot()))
        return self.__dict__ | {"predictor": predictor}

    def __setstate__(self, fields: dict[str, Any]) -> None:
        self.__dict__ |= fields
        if self.predictor is not None:
            inputs, learnt = fields["predictor"].learner
            self.predictor.learner = default_learner(inputs, **self.settings)
            self.predictor.learner.restore(_to_tensors(learnt))

    def named(self, role: str, values: Vector) -> dict[Any, float]:
        """The columns of one role in (width,) values; 0 for a column that was never observed."""
        observed = {name: float(values[place]) for (part, name), place in self.places.items() if part == role}
        return {name: 0.0 if value != value else value for name, value in observed.items()}


def _to_arrays(tree: Any) -> Any:
    if isinstance(tree, Tensor):
        return tree.detach().numpy().copy()
    if isinstance(tree, Mapping):
        return {name: _to_arrays(part) for name, part in tree.items()}
    return type(tree)(map(_to_arrays, tree)) if isinstance(tree, list | tuple) else tree


def _to_tensors(tree: Any) -> Any:
    if isinstance(tree, np.ndarray):
        return torch.from_numpy(tree)
    if isinstance(tree, Mapping):
        return {name: _to_tensors(part) for name, part in tree.items()}
    return type(tree)(map(_to_tensors, tree)) if isinstance(tree, list | tuple) else tree


def _by_name(key: Key) -> tuple[str, str, str]:
    role, name = key
    return role, type(name).__name__, str(name)


Row = dict[Key, float]


class SequenceEstimator(base.Estimator):
    """Base of the estimators around a learner: their parameters, and the learner with its rows."""

    def __init__(
        self,
        learner: str = "ptncn",
        hidden: tuple[int, ...] = HIDDEN,
        lr: float | None = None,
        target: str = TARGET,
        spare: int = 8,
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
    """Base of estimators with features and targets.

    The features of a row are known before its targets. To make use of them, the learner sees the features of a row
    together with the targets of the previous row, and predicts what comes next: the targets of this row, and the
    features of the next one.
    """

    _last_targets: Row | None = None
    """The targets of the last row, which the learner sees together with the next features."""

    def _learn(self, features: Row, targets: Row) -> None:
        self._rows.admit(features, targets)
        self._rows.observe({**features, **(self._last_targets or {})}, learn=True)
        self._last_targets = targets

    def _predict_targets(self, features: Sequence[Row]) -> list[dict[Any, float]]:
        """Predict the targets of future rows from their features; each prediction is fed back as if observed."""
        ahead = [*features, {}]
        ahead[0] = {**ahead[0], **(self._last_targets or {})}
        with self._rows.branch() as rows:
            predictions = [prediction for row in ahead if (prediction := rows.observe(row, learn=False)) is not None]
        return [self._rows.named("y", prediction.prediction) for prediction in predictions[1:]] or [
            {} for _ in features
        ]
