"""Estimators for River: forecasters, a multi-target regressor and an anomaly detector; extra `ptncn[river]`.

Only `learn_one` advances the state; predictions are made on a copy.
"""

from __future__ import annotations

import copy
import math
import random
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from itertools import islice
from typing import Any

try:
    from river import base
    from river.conf import Interval
    from river.time_series.base import Forecaster
except ModuleNotFoundError as error:
    raise ModuleNotFoundError("these estimators need River: pip install 'ptncn[river]'") from error

from ptncn.estimators.rows import Key, SequenceEstimator, TargetEstimator, numbers_of
from ptncn.streaming.calibration import Calibrator
from ptncn.streaming.options import HIDDEN, TARGET, LearnerSpec
from ptncn.streaming.predictor import Prediction
from ptncn.streaming.results import Forecast
from ptncn.streaming.scaling import Surprise
from ptncn.streaming.sources import Block
from ptncn.streaming.stream import Stream

__all__ = ["PTNCNAnomalyDetector", "PTNCNForecaster", "PTNCNRegressor", "StreamForecaster"]


class PTNCNForecaster(TargetEstimator, Forecaster):
    """Forecasts one series, or several at once if targets are dicts, with a network that keeps learning.

    Each observation may come with features `x`. Pass their future values to `forecast` as `xs`; otherwise the network
    uses its own predictions of them. Only numeric features are used: dates and text are ignored.

    Parameters
    ----------
    learner
        Name of a learner in `ptncn.learners`.
    hidden
        Units of each layer.
    lr
        Step size; None for the learner's default.
    target
        What the learner sees of each column: its "level", its "change" since the last row, or "both".
    spare
        Inputs reserved for columns that appear after the first row; further new columns are ignored.
    options
        Further options of the learner.
    seed
        Seed for weight initialisation; None draws one.

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
            rows = self._predict_targets(ahead)
        elif self._rows.predictor is not None:
            rows = [self._rows.named("y", values) for values in self._rows.predictor.forecast(horizon)]
        else:
            rows = [{} for _ in range(horizon)]
        return rows if self._single is False else [row.get(None, 0.0) for row in rows]


class PTNCNRegressor(TargetEstimator, base.MultiTargetRegressor):
    """Predicts the targets of consecutive rows from their features and all earlier rows.

    At row t the learner sees the features x_t and the targets y_{t−1}, and predicts what comes next: y_t and x_{t+1}.
    It therefore learns from y_t when the next row arrives. Only numeric features are used.

    Parameters
    ----------
    learner
        Name of a learner in `ptncn.learners`.
    hidden
        Units of each layer.
    lr
        Step size; None for the learner's default.
    target
        What the learner sees of each column: its "level", its "change" since the last row, or "both".
    spare
        Inputs reserved for columns that appear after the first row; further new columns are ignored.
    options
        Further options of the learner.
    seed
        Seed for weight initialisation; None draws one.

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

    def learn_one(self, x: Mapping[Any, Any], y: Mapping[Any, Any], **kwargs: Any) -> None:
        self._learn(numbers_of("x", x), numbers_of("y", y))

    def predict_one(self, x: Mapping[Any, Any]) -> dict[Any, float]:
        return self._predict_targets([numbers_of("x", x)])[0]


class PTNCNAnomalyDetector(SequenceEstimator, base.AnomalyDetector):
    """Scores how surprising a row is, given all earlier rows.

    The score, from 0 to 1, is the share of recent surprises that were smaller: on a stream without anomalies it is at
    least 1 − r with a probability of at most r. `river.anomaly.ThresholdFilter(model, threshold=1 - r)` turns it into
    alarms. Only numeric features are used.

    Parameters
    ----------
    learner
        Name of a learner in `ptncn.learners`.
    hidden
        Units of each layer.
    lr
        Step size; None for the learner's default.
    target
        What the learner sees of each column: its "level", its "change" since the last row, or "both". Levels work best
        here, because the change back from an anomaly is as large as the anomaly itself.
    spare
        Inputs reserved for columns that appear after the first row; further new columns are ignored.
    alarm_rate
        The smallest alarm rate that you may want: it determines how many surprises are kept.
    options
        Further options of the learner.
    seed
        Seed for weight initialisation; None draws one.

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
            prediction = rows.observe(numbers_of("x", x), learn=False)
        surprise = _measure(copy.deepcopy(self._surprise), prediction)
        return 0.0 if surprise is None else self._ranks.rank(surprise)


def _measure(measure: Surprise | None, prediction: Prediction | None) -> float | None:
    """The surprise of a row; None if nothing was predicted or observed."""
    if measure is None or prediction is None or not prediction.scored:
        return None
    surprise = measure.update(prediction.error)
    return surprise if surprise == surprise else None


class StreamForecaster(Forecaster):
    """The forecaster of `ptncn stream`: it combines a network with seasons and last values, and gives intervals.

    The features of the first row are used from then on, and their future values if `forecast` is given `xs`.
    A date among them is the time of the row. Other text is ignored, except for the key that `by` names.

    Parameters
    ----------
    horizon
        Steps ahead that are learnt directly; for further steps, forecasts are fed back.
    confidence_level
        Probability that a value lies within its interval.
    season
        Length of a season in rows, such as 24; None detects it.
    by
        The feature that names the series of a row. Each series has its own state; with
        `options={"weights": "shared"}` all share one set of weights.
    hidden
        Units of each layer.
    lr
        Step size; None for the learner's default.
    options
        Further options of `ptncn.streaming.Stream`.
    seed
        Seed for weight initialisation; None draws one.

    Examples
    --------

    >>> import math
    >>> from ptncn.estimators.river import StreamForecaster

    >>> model = StreamForecaster(horizon=2, by="pump", seed=1)
    >>> for t in range(200):
    ...     for pump, level in (("north", 10), ("south", 50)):
    ...         model.learn_one(level + math.sin(t), {"pump": pump})
    >>> [8 < y < 12 for y in model.forecast(2, [{"pump": "north"}, {"pump": "north"}])]
    [True, True]
    >>> [interval.lower < 51 for interval in model.forecast(2, [{"pump": "south"}] * 2, with_interval=True)]
    [True, True]

    """

    def __init__(
        self,
        horizon: int = 1,
        confidence_level: float = 0.9,
        season: int | None = None,
        by: str | None = None,
        hidden: tuple[int, ...] = HIDDEN,
        lr: float | None = None,
        options: dict[str, Any] | None = None,
        seed: int | None = None,
    ) -> None:
        self.horizon = horizon
        self.confidence_level = confidence_level
        self.season = season
        self.by = by
        self.hidden = hidden
        self.lr = lr
        self.options = options
        self.seed = seed
        self._spec = LearnerSpec(hidden=hidden, lr=lr, seed=random.Random().getrandbits(31) if seed is None else seed)
        self._stream: Stream | None = None
        self._targets: dict[str, Any] = {}
        """{column: name} of the targets."""
        self._single: bool | None = None
        self._rows = 0

    def learn_one(self, y: float | Mapping[Any, float], x: Mapping[Any, Any] | None = None) -> None:
        targets = numbers_of("y", y if isinstance(y, Mapping) else {None: y})
        row = {**_columns_of(targets), **_columns_of(numbers_of("x", x))}
        if self._single is None:
            self._single = not isinstance(y, Mapping)
        if self.by is not None:
            row[KEY] = str((x or {})[self.by])
        time = next((value for value in (x or {}).values() if isinstance(value, datetime)), None)
        if time is not None:
            row[TIME] = time.isoformat(" ")
        if self._stream is None:
            self._targets = {_column_of(key): key[1] for key in sorted(targets, key=str)}
            self._stream = self._make_stream(row)
        names = tuple(sorted(row))
        self._rows += 1
        self._stream.feed_block(Block(names, [[row[name] for name in names]], [self._rows]))

    def forecast(self, horizon: int, xs: Sequence[Mapping[Any, Any]] | None = None, with_interval: bool = False) -> Any:
        """A number or dict for each step, or with `with_interval` a `river.conf.Interval`.

        With `by`, the first of `xs` names the series.
        """
        if xs is not None and len(xs) < horizon:
            raise ValueError(f"xs: expected {horizon} rows, one per step, got {len(xs)}")
        if self.by is not None and not xs:
            raise ValueError(f"xs: expected rows with {self.by!r}, which names the series to forecast")
        key = str(xs[0][self.by]) if self.by is not None and xs else None
        result = None
        if self._stream is not None and (key is None or self._stream.knows(key)):
            known = [_columns_of(numbers_of("x", x)) for x in islice(xs or (), horizon)]
            result = self._stream.forecast(horizon, key=key, features=known)
        steps = [self._read(result, step, with_interval) for step in range(horizon)]
        return steps if self._single is False else [next(iter(step.values())) for step in steps]

    def _read(self, result: Forecast | None, step: int, with_interval: bool) -> dict[Any, Any]:
        """The targets at one step; 0 with an unbounded interval before anything is learnt."""
        row: dict[Any, Any] = {}
        for index, name in enumerate(self._targets.values() or (None,)):
            parts = () if result is None else (result.entries, result.lower, result.upper)
            mean, lower, upper = [float(part[step, index]) for part in parts] or (math.nan,) * 3
            if with_interval:
                row[name] = Interval(-math.inf if lower != lower else lower, math.inf if upper != upper else upper)
            else:
                row[name] = 0.0 if mean != mean else mean
        return row

    def _make_stream(self, row: Mapping[str, Any]) -> Stream:
        options: dict[str, Any] = {
            "targets": tuple(self._targets),
            "features": tuple(sorted(name for name in row if name.startswith("x."))),
            "timestamp": TIME if TIME in row else None,
            "key": None if self.by is None else KEY,
            "columns_change": "mask",
            "horizon": self.horizon,
            "level": self.confidence_level,
            "season": self.season,
            **(self.options or {}),
        }
        return Stream(network=self._spec, **options)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_stream": None if self._stream is None else self._stream.to_bytes()}

    def __setstate__(self, fields: dict[str, Any]) -> None:
        self.__dict__ |= fields
        if fields["_stream"] is not None:
            self._stream = Stream.from_bytes(fields["_stream"])

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {"hidden": (8,)}


KEY, TIME = "key", "time"


def _column_of(key: Key) -> str:
    role, name = key
    return role if name is None else f"{role}.{name}"


def _columns_of(row: Mapping[Key, float]) -> dict[str, Any]:
    return {_column_of(key): value for key, value in row.items()}
