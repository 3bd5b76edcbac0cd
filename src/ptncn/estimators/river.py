"""Estimators for River: forecasters, a multi-target regressor and an anomaly detector; extra `ptncn[river]`.

The state advances in `learn_one` alone; predictions are made on a copy.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

try:
    from river import base
    from river.time_series.base import Forecaster
except ModuleNotFoundError as error:
    raise ModuleNotFoundError("these estimators need River: pip install 'ptncn[river]'") from error

from ptncn.estimators.river_stream import StreamForecaster
from ptncn.estimators.rows import SequenceEstimator, TargetEstimator, numbers_of
from ptncn.streaming.calibration import Calibrator
from ptncn.streaming.options import HIDDEN, TARGET
from ptncn.streaming.predictor import Guess
from ptncn.streaming.scaling import Surprise

__all__ = ["PTNCNAnomalyDetector", "PTNCNForecaster", "PTNCNRegressor", "StreamForecaster"]


class PTNCNForecaster(TargetEstimator, Forecaster):
    """Forecasts a series, or with dicts as targets several series together, with a network that never stops learning.

    Features `x` may go with each observation; those of the future are then given to `forecast` as `xs`, or filled in
    with the network's own expectation. Only numbers are features: dates and texts are left out.

    Parameters
    ----------
    learner
        The name of any learner of `ptncn.learners`.
    hidden
        Units of each layer.
    lr
        Step size; None is the learner's own.
    target
        What the learner sees of each column: its "level", its "change" since the last row, or "both".
    spare
        Inputs kept for columns that appear after the first row. Columns beyond them are left out.
    options
        Further options of the learner.
    seed
        Of the initial weights; None draws one.

    Examples
    --------

    >>> from river import datasets, evaluate, metrics
    >>> from ptncn.estimators.river import PTNCNForecaster

    >>> model = PTNCNForecaster(seed=1)
    >>> score = evaluate.evaluate(datasets.AirlinePassengers(), model, metrics.MAE(), horizon=3)
    >>> [metric.get() < 100 for metric in score.metrics]
    [True, True, True]

    >>> model = PTNCNForecaster(seed=1)
    >>> for t in range(20):
    ...     model.learn_one({"left": t, "right": -t})
    >>> [sorted(row) for row in model.forecast(horizon=2)]
    [['left', 'right'], ['left', 'right']]

    """

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
        super().__init__(learner=learner, hidden=hidden, lr=lr, target=target, spare=spare, options=options, seed=seed)
        self._single: bool | None = None
        """Whether targets are numbers instead of dicts; None before the first."""
        self._with_features = False

    def learn_one(self, y: float | Mapping[Any, float], x: Mapping[Any, Any] | None = None) -> None:
        single = not isinstance(y, Mapping)
        if self._single not in (None, single):
            raise ValueError(f"y={y!r}: targets were {'numbers' if self._single else 'dicts'} until now")
        self._single = single
        targets = numbers_of("y", y if isinstance(y, Mapping) else {None: y})
        features = numbers_of("x", x)
        self._with_features = self._with_features or bool(features)
        if self._with_features:
            self._learn(features, targets)
        else:
            self._rows.admit(targets)
            self._rows.observe(targets, learn=True)

    def forecast(self, horizon: int, xs: Sequence[Mapping[Any, Any]] | None = None) -> list[Any]:
        if xs is not None and len(xs) < horizon:
            raise ValueError(f"xs: expected {horizon} rows, one per step, got {len(xs)}")
        if self._with_features:
            ahead = [numbers_of("x", x) for x in islice(xs, horizon)] if xs is not None else [{}] * horizon
            rows = self._expect(ahead)
        elif self._rows.predictor is not None:
            rows = [self._rows.named("y", values) for values in self._rows.predictor.forecast(horizon)]
        else:
            rows = [{} for _ in range(horizon)]
        return rows if self._single is False else [row.get(None, 0.0) for row in rows]


class PTNCNRegressor(TargetEstimator, base.MultiTargetRegressor):
    """Predicts the targets of rows that follow one another, from their features and all rows before.

    At row t the learner sees the features x_t and the targets y_{t−1}, and predicts what comes next: y_t and x_{t+1}.
    So it learns from y_t as soon as the next row comes; that y_t was seen counts at once. Only numbers are features.

    Parameters
    ----------
    learner
        The name of any learner of `ptncn.learners`.
    hidden
        Units of each layer.
    lr
        Step size; None is the learner's own.
    target
        What the learner sees of each column: its "level", its "change" since the last row, or "both".
    spare
        Inputs kept for columns that appear after the first row. Columns beyond them are left out.
    options
        Further options of the learner.
    seed
        Of the initial weights; None draws one.

    Examples
    --------

    >>> import math
    >>> from ptncn.estimators.river import PTNCNRegressor

    >>> model = PTNCNRegressor(seed=1)
    >>> for t in range(2000):
    ...     x = {"angle": math.sin(t / 5)}
    ...     model.learn_one(x, {"double": 2 * x["angle"], "opposite": -x["angle"]})
    >>> {name: round(value, 0) for name, value in model.predict_one({"angle": math.sin(2000 / 5)}).items()}
    {'double': -2.0, 'opposite': 1.0}

    """

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
        super().__init__(learner=learner, hidden=hidden, lr=lr, target=target, spare=spare, options=options, seed=seed)

    def learn_one(self, x: Mapping[Any, Any], y: Mapping[Any, Any], **kwargs: Any) -> None:
        self._learn(numbers_of("x", x), numbers_of("y", y))

    def predict_one(self, x: Mapping[Any, Any]) -> dict[Any, float]:
        return self._expect([numbers_of("x", x)])[0]


class PTNCNAnomalyDetector(SequenceEstimator, base.AnomalyDetector):
    """Scores how surprising a row is after all rows before it.

    The score is the share of late surprises that were smaller, from 0 to 1: on a stream without anomalies it is at
    least 1 − r with a probability of at most r. `river.anomaly.ThresholdFilter(model, threshold=1 - r)` makes
    alarms of it. Only numbers are looked at.

    Parameters
    ----------
    learner
        The name of any learner of `ptncn.learners`.
    hidden
        Units of each layer.
    lr
        Step size; None is the learner's own.
    target
        What the learner sees of each column: its "level", its "change" since the last row, or "both". Levels are best
        here: the change back from an anomaly is as large as the anomaly.
    spare
        Inputs kept for columns that appear after the first row. Columns beyond them are left out.
    alarm_rate
        The smallest rate of alarms one wants to choose: it decides how many surprises are remembered.
    options
        Further options of the learner.
    seed
        Of the initial weights; None draws one.

    Examples
    --------

    >>> import math
    >>> from ptncn.estimators.river import PTNCNAnomalyDetector

    >>> model = PTNCNAnomalyDetector(seed=1)
    >>> for t in range(1000):
    ...     model.learn_one({"level": math.sin(t / 5)})
    >>> model.score_one({"level": math.sin(1000 / 5)}) < 0.99 < model.score_one({"level": 3.0})
    True

    """

    def __init__(
        self,
        learner: str = "ptncn",
        hidden: tuple[int, ...] = HIDDEN,
        lr: float | None = None,
        target: str = "level",
        spare: int = 8,
        alarm_rate: float = 0.01,
        options: dict[str, Any] | None = None,
        seed: int | None = None,
    ) -> None:
        super().__init__(learner=learner, hidden=hidden, lr=lr, target=target, spare=spare, options=options, seed=seed)
        self.alarm_rate = alarm_rate
        self._ranks = Calibrator(alarm_rate)
        self._surprise: Surprise | None = None

    def learn_one(self, x: Mapping[Any, Any]) -> None:
        row = numbers_of("x", x)
        self._rows.admit(row)
        if self._surprise is None and self._rows.width:
            self._surprise = Surprise(self._rows.width)
        surprise = _measure(self._surprise, self._rows.observe(row, learn=True))
        if surprise is not None and self._surprise is not None and self._surprise.settled:
            self._ranks.update(surprise)

    def score_one(self, x: Mapping[Any, Any]) -> float:
        with self._rows.branch() as rows:
            guess = rows.observe(numbers_of("x", x), learn=False)
        surprise = _measure(copy.deepcopy(self._surprise), guess)
        return 0.0 if surprise is None else self._ranks.rank(surprise)


def _measure(measure: Surprise | None, guess: Guess | None) -> float | None:
    """The surprise, if anything was expected and observed."""
    if measure is None or guess is None or not guess.scored:
        return None
    surprise = measure.update(guess.error)
    return surprise if surprise == surprise else None
