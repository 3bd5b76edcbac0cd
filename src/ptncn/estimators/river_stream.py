"""A forecaster for River that is a `Stream`: horizons, intervals, covariates and keys; extra `ptncn[river]`."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from itertools import islice
from typing import Any

try:
    from river.conf import Interval
    from river.time_series.base import Forecaster
except ModuleNotFoundError as error:
    raise ModuleNotFoundError("these estimators need River: pip install 'ptncn[river]'") from error

from ptncn.estimators.rows import Key, numbers_of
from ptncn.streaming.options import HIDDEN, LearnerSpec
from ptncn.streaming.results import Forecast
from ptncn.streaming.sources import Block
from ptncn.streaming.stream import Stream


class StreamForecaster(Forecaster):
    """The forecaster of `ptncn stream`: it combines a network with seasons and last values, and gives intervals.

    The features of the first row are used from then on, with their future values where `forecast` is given `xs`.
    A date among them is the time of the row. Other text is ignored, except for the key that `by` names.

    Parameters
    ----------
    horizon
        Steps ahead that are learnt directly. Further ones are forecast from forecasts.
    confidence_level
        Probability that a value lies within its interval.
    season
        Rows of a season, such as 24; None looks for one.
    by
        The feature that says which series a row belongs to. Each series has its own state, and with
        `options={"weights": "shared"}` all share their weights.
    hidden
        Units of each layer.
    lr
        Step size; None is the learner's own.
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
        """The names of targets, by their columns."""
        self._single: bool | None = None
        self._rows = 0

    def learn_one(self, y: float | Mapping[Any, float], x: Mapping[Any, Any] | None = None) -> None:
        targets = numbers_of("y", y if isinstance(y, Mapping) else {None: y})
        row = {**_columns_of(targets), **_columns_of(numbers_of("x", x))}
        if self._single is None:
            self._single = not isinstance(y, Mapping)
        if self.by is not None:
            row[KEY] = str((x or {})[self.by])
        moment = next((value for value in (x or {}).values() if isinstance(value, datetime)), None)
        if moment is not None:
            row[TIME] = moment.isoformat(" ")
        if self._stream is None:
            self._targets = {_column_of(key): key[1] for key in sorted(targets, key=str)}
            self._stream = self._make_stream(row)
        names = tuple(sorted(row))
        self._rows += 1
        self._stream.feed_block(Block(names, [[row[name] for name in names]], [self._rows]))

    def forecast(self, horizon: int, xs: Sequence[Mapping[Any, Any]] | None = None, with_interval: bool = False) -> Any:
        """A number or dict for each step; with `with_interval`, its `river.conf.Interval`.

        With `by`, the first of `xs` names the series.
        """
        if xs is not None and len(xs) < horizon:
            raise ValueError(f"xs: expected {horizon} rows, one per step, got {len(xs)}")
        if self.by is not None and not xs:
            raise ValueError(f"xs: expected rows with {self.by!r}, which says which series to forecast")
        key = str(xs[0][self.by]) if self.by is not None and xs else None
        result = None
        if self._stream is not None and (key is None or self._stream.knows(key)):
            known = [_columns_of(numbers_of("x", x)) for x in islice(xs or (), horizon)]
            result = self._stream.forecast(horizon, key=key, features=known)
        steps = [self._read(result, step, with_interval) for step in range(horizon)]
        return steps if self._single is False else [next(iter(step.values())) for step in steps]

    def _read(self, result: Forecast | None, step: int, with_interval: bool) -> dict[Any, Any]:
        """Targets at one step; 0 and an unbounded interval as long as nothing is known."""
        found: dict[Any, Any] = {}
        for index, name in enumerate(self._targets.values() or (None,)):
            parts = () if result is None else (result.entries, result.lower, result.upper)
            mean, lower, upper = [float(part[step, index]) for part in parts] or (math.nan,) * 3
            if with_interval:
                found[name] = Interval(-math.inf if lower != lower else lower, math.inf if upper != upper else upper)
            else:
                found[name] = 0.0 if mean != mean else mean
        return found

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
