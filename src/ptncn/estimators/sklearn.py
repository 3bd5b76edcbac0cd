"""Estimators for scikit-learn whose rows are consecutive time steps."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from ptncn.streaming.columns import Vector
from ptncn.streaming.options import HIDDEN, TARGET, LearnerSpec, default_learner
from ptncn.streaming.predictor import TARGETS, Predictor
from ptncn.streaming.sources import Block
from ptncn.streaming.stream import Stream

BLOCK = 256

EXPECTED_FAILED_CHECKS = {
    "check_methods_sample_order_invariance": "rows are consecutive time steps, so their order matters",
    "check_methods_subset_invariance": "rows are consecutive time steps, so predictions depend on earlier rows",
}
"""For `sklearn.utils.estimator_checks.check_estimator`."""


class PTNCNSequenceRegressor(MultiOutputMixin, RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Learns from rows that are consecutive time steps, in one pass and without a window.

    With `y`, the targets of a row are predicted from its features and all earlier rows: at row t the learner sees x_t
    and y_{t−1}, and predicts what comes next, y_t and x_{t+1}. Without `y`, the rows themselves are forecast.

    `predict(X)` assumes that the rows of `X` follow the last rows learnt, and changes nothing. With targets, entry i
    holds the targets of row i; the unknown targets of earlier rows in `X` are replaced by their predictions. Without
    targets, entry i is the prediction of row i + 1, so the last entry lies in the future.

    NaN means not observed: it is replaced by the prediction, and nothing is learnt from it.

    Parameters
    ----------
    learner : str
        Name of a learner in `ptncn.learners`.
    hidden : tuple of int
        Units of each layer.
    lr : float or None
        Step size; None for the learner's default.
    target : {"level", "change", "both"} or None
        What the learner sees of each column: its level, its change since the last row, or both. None is "both" without
        targets and "level" with targets, since the errors of predicted changes would add up.
    passes : int
        Number of passes of `fit` over the rows.
    options : dict or None
        Further options of the learner.
    random_state : int, RandomState instance or None
        Seed for weight initialisation.

    Attributes
    ----------
    learner_ : Learner
        The trained learner.
    n_features_in_ : int
        Number of columns of X.
    n_outputs_ : int
        Number of targets; without targets, of columns of X.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.sin(np.arange(2000)[:, None] / [5, 7])
    >>> model = PTNCNSequenceRegressor(random_state=0).fit(X[:1900])
    >>> model.predict(X[1900:]).shape, model.score(X[1900:]) > 0.9
    ((100, 2), True)
    """

    def __init__(
        self,
        learner: str = "ptncn",
        hidden: tuple[int, ...] = HIDDEN,
        lr: float | None = None,
        target: str | None = None,
        passes: int = 1,
        options: dict[str, Any] | None = None,
        random_state: Any = None,
    ) -> None:
        self.learner = learner
        self.hidden = hidden
        self.lr = lr
        self.target = target
        self.passes = passes
        self.options = options
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: ArrayLike | None = None) -> Self:
        """Reset, then learn from the rows of `X` and, if there are targets, of `y`."""
        if self.passes < 1:
            raise ValueError(f"passes: expected at least 1, got {self.passes}")
        rows, targets = self._check(X, y, reset=True)
        self._begin(targets)
        for remaining in reversed(range(self.passes)):
            self._learn(rows, targets)
            if remaining:
                self._rewind()
        return self

    def partial_fit(self, X: ArrayLike, y: ArrayLike | None = None) -> Self:
        """Continue learning with rows that follow the last ones."""
        first = not hasattr(self, "_predictor")
        rows, targets = self._check(X, y, reset=first)
        if first:
            self._begin(targets)
        elif (targets is not None) != self._with_targets or (
            targets is not None and targets.shape[1] != self.n_outputs_
        ):
            got = "none" if targets is None else str(targets.shape[1])
            known = str(self.n_outputs_) if self._with_targets else "none"
            raise ValueError(f"y: expected as many columns as before, {known}, got {got}")
        self._learn(rows, targets)
        return self

    def predict(self, X: ArrayLike) -> Vector:
        """(n, n_outputs_), or (n,) if y was one-dimensional."""
        check_is_fitted(self)
        rows = validate_data(self, X, reset=False, dtype=np.float64, ensure_all_finite="allow-nan")
        unknown = np.full(self._width, np.nan)
        expected = np.empty((len(rows) + 1, self.n_outputs_))
        with self._predictor.branch() as predictor:
            for i, features in enumerate([*rows, unknown[: rows.shape[1]]]):
                row = np.concatenate((self._last_targets if i == 0 else unknown[: len(self._last_targets)], features))
                prediction = predictor.observe(row, learn=False).prediction[: self.n_outputs_]
                expected[i] = np.where(np.isnan(prediction), 0.0, prediction)
        predictions: Vector = expected[1:]
        return predictions[:, 0] if self._flat else predictions

    def score(self, X: ArrayLike, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None) -> float:
        """R² of the predicted targets; without targets, of the predictions of each row but the first."""
        predictions = self.predict(X)
        if not self._with_targets:
            X = np.asarray(X, dtype=np.float64)
            if len(X) < 2:
                raise ValueError(f"X: expected at least 2 rows, since the first cannot be predicted, got {len(X)}")
            y, predictions = X[1:], predictions[:-1]
            sample_weight = None if sample_weight is None else np.asarray(sample_weight)[1:]
        return float(r2_score(y, predictions, sample_weight=sample_weight))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = False
        tags.input_tags.allow_nan = True
        tags.regressor_tags.poor_score = True  # the checks have 200 rows in no order
        return tags

    def _check(self, X: ArrayLike, y: ArrayLike | None, *, reset: bool) -> tuple[Vector, Vector | None]:
        if self.target not in (None, *TARGETS):
            raise ValueError(f"target: expected one of {', '.join(TARGETS)}, got {self.target!r}")
        finite = {"dtype": np.float64, "ensure_all_finite": "allow-nan"}
        if y is None:
            return validate_data(self, X, reset=reset, **finite), None
        rows, targets = validate_data(self, X, y, reset=reset, multi_output=True, y_numeric=True, **finite)
        targets = np.asarray(targets, dtype=np.float64)
        if reset:
            self._flat = targets.ndim == 1
        return rows, targets.reshape(len(targets), -1)

    def _begin(self, targets: Vector | None) -> None:
        """Build a learner for the targets and the columns of X, in this order."""
        self._with_targets = targets is not None
        self._flat = self._with_targets and self._flat
        count = 0 if targets is None else targets.shape[1]
        self.n_outputs_ = count or self.n_features_in_
        self._width = count + self.n_features_in_
        self._target = self.target or (TARGET if targets is None else "level")
        unscaled = np.zeros(self._width, dtype=bool)
        self.learner_ = default_learner(
            Predictor.input_size(self._target, unscaled),
            self.learner,
            hidden=self.hidden,
            lr=self.lr,
            seed=int(check_random_state(self.random_state).randint(2**31 - 1)),
            options=self.options,
        )
        self._predictor = Predictor(self.learner_, self._target, unscaled)
        self._last_targets = np.full(count, np.nan)

    def _rewind(self) -> None:
        """Begin a new sequence with the same learner and scales."""
        scaler = self._predictor.scaler
        self.learner_.end(self._predictor.state)
        self._predictor = Predictor(self.learner_, self._target, np.zeros(self._width, dtype=bool))
        self._predictor.scaler = scaler
        self._last_targets = np.full(len(self._last_targets), np.nan)

    def _learn(self, rows: Vector, targets: Vector | None) -> None:
        for i, features in enumerate(rows):
            self._predictor.observe(np.concatenate((self._last_targets, features)), learn=True)
            if targets is not None:
                self._last_targets = targets[i]


class StreamRegressor(MultiOutputMixin, RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """The forecaster of `ptncn stream`: it combines a network with seasons and last values, and gives intervals.

    Rows are consecutive time steps. The targets `y` are forecast from all earlier rows; the features `X`, which are
    known before the targets of their row, correct the forecast. `predict(X)` assumes that the rows of `X` follow the
    last rows learnt, and changes nothing. NaN in `X` means not observed.

    Parameters
    ----------
    horizon : int
        Steps ahead that are learnt directly; for further steps, forecasts are fed back.
    level : float
        Probability that a value lies within its interval.
    season : int or None
        Length of a season in rows, such as 24; None detects it.
    hidden : tuple of int
        Units of each layer.
    lr : float or None
        Step size; None for the learner's default.
    options : dict or None
        Further options of `ptncn.streaming.Stream`.
    random_state : int, RandomState instance or None
        Seed for weight initialisation.

    Attributes
    ----------
    stream_ : Stream
        The trained stream.
    n_features_in_ : int
        Number of columns of X.
    n_outputs_ : int
        Number of targets.

    Examples
    --------
    >>> import numpy as np
    >>> t = np.arange(600)
    >>> price = np.where(t % 7 < 3, 1.0, 0.0)[:, None]
    >>> load = 20 + np.sin(t * 2 * np.pi / 24) + 2 * price[:, 0]
    >>> model = StreamRegressor(horizon=24, season=24, random_state=0).fit(price[:576], load[:576])
    >>> mean, lower, upper = model.predict(price[576:], return_interval=True)
    >>> mean.shape, bool((lower <= upper).all()), model.score(price[576:], load[576:]) > 0.5
    ((24,), True, True)
    """

    def __init__(
        self,
        horizon: int = 1,
        level: float = 0.9,
        season: int | None = None,
        hidden: tuple[int, ...] = HIDDEN,
        lr: float | None = None,
        options: dict[str, Any] | None = None,
        random_state: Any = None,
    ) -> None:
        self.horizon = horizon
        self.level = level
        self.season = season
        self.hidden = hidden
        self.lr = lr
        self.options = options
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Reset, then learn from the rows of `X` and `y`."""
        return self._learn(X, y, reset=True)

    def partial_fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Continue learning with rows that follow the last ones."""
        return self._learn(X, y, reset=not hasattr(self, "stream_"))

    def predict(self, X: ArrayLike, return_interval: bool = False) -> Any:
        """(n, n_outputs_) targets, or (n,) if y was one-dimensional; with `return_interval` also their bounds."""
        check_is_fitted(self)
        rows = validate_data(self, X, reset=False, dtype=np.float64, ensure_all_finite="allow-nan")
        known = [dict(zip(self._names("x", rows), row, strict=True)) for row in rows.tolist()]
        result = self.stream_.forecast(len(rows), features=known)
        mean = np.where(np.isnan(result.entries), 0.0, result.entries)
        parts = (mean, result.lower, result.upper) if return_interval else (mean,)
        shaped = tuple(part[:, 0] if self._flat else part for part in parts)
        return shaped if return_interval else shaped[0]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.allow_nan = True
        tags.regressor_tags.poor_score = True  # the checks have 200 rows in no order
        return tags

    def _learn(self, X: ArrayLike, y: ArrayLike, *, reset: bool) -> Self:
        finite = {"dtype": np.float64, "ensure_all_finite": "allow-nan"}
        rows, targets = validate_data(self, X, y, reset=reset, multi_output=True, y_numeric=True, **finite)
        targets = np.asarray(targets, dtype=np.float64)
        if reset:
            self._flat = targets.ndim == 1
            self.stream_ = self._make_stream(rows, targets.reshape(len(rows), -1))
        targets = targets.reshape(len(rows), -1)
        if targets.shape[1] != self.n_outputs_:
            raise ValueError(f"y: expected {self.n_outputs_} columns, as before, got {targets.shape[1]}")
        names = (*self._names("x", rows), *self._names("y", targets))
        both = np.concatenate((rows, targets), axis=1)
        for start in range(0, len(both), BLOCK):
            part = both[start : start + BLOCK].tolist()
            self.stream_.feed_block(Block(names, part, list(range(start + 1, start + 1 + len(part)))))
        return self

    def _make_stream(self, rows: Vector, targets: Vector) -> Stream:
        self.n_outputs_ = targets.shape[1]
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        return Stream(
            network=LearnerSpec(hidden=tuple(self.hidden), lr=self.lr, seed=seed),
            targets=self._names("y", targets),
            features=self._names("x", rows),
            horizon=self.horizon,
            level=self.level,
            season=self.season,
            **(self.options or {}),
        )

    @staticmethod
    def _names(role: str, values: Vector) -> tuple[str, ...]:
        return tuple(f"{role}{index}" for index in range(values.shape[1]))

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()
        return {**state, "stream_": state["stream_"].to_bytes()} if "stream_" in state else state

    def __setstate__(self, state: dict[str, Any]) -> None:
        restored = {"stream_": Stream.from_bytes(state["stream_"])} if "stream_" in state else {}
        super().__setstate__({**state, **restored})
