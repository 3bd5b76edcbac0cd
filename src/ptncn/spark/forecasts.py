"""From a streaming DataFrame of observations to one of predictions, forecasts, anomaly scores and alarms."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

import numpy as np

from ptncn.spark.session import ROCKSDB, check_packages
from ptncn.streaming.results import Results
from ptncn.streaming.sources import Block, StreamError
from ptncn.streaming.storage import BlobError
from ptncn.streaming.stream import Advance, Stream

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
    from pyspark.sql.types import StructType
else:
    try:
        from pyspark.sql.streaming.stateful_processor import StatefulProcessor
    except ImportError:  # without the extra this can be imported all the same; `forecast` says what is missing
        StatefulProcessor = object


def forecast(
    df: DataFrame,
    *,
    key: str,
    targets: str | Sequence[str],
    timestamp: str,
    horizon: int = 1,
    timeout: float | None = None,
    keep: int = 500,
    **options: Any,
) -> DataFrame:
    """A streaming DataFrame with a row for each row of `df`; see `output_schema` for its columns.

    Arguments:
        df: streaming or not, with a column for the key, the timestamp and each target.
        key: the column that says which stream a row belongs to.
        targets: columns to predict.
        timestamp: the column by which the rows of a key are ordered within a batch. Spark does not keep their order.
        horizon: steps to forecast after each row, with bounds.
        timeout: seconds after which a key that fell silent is forgotten. A last row says so: `silent` is true.
        keep: streams that a Python worker keeps decoded, which saves time; states are stored all the same.
        options: any other option of `ptncn.streaming.StreamOptions`, such as `alarm_rate` or `features`.

    The state of a key is the blob of `Stream.to_bytes`, in Spark's state store, which has to be RocksDB. It is written
    with the batch, so that after a failure and a restart from the checkpoint no row is lost, and none counts twice.
    """
    check_packages()
    names = [targets] if isinstance(targets, str) else list(targets)
    features, categorical = (_as_list(options.get(name, ())) for name in ("features", "categorical"))
    for role, column in (("key", key), ("timestamp", timestamp), *(("targets", name) for name in names + features)):
        if column not in df.columns:
            raise ValueError(f"{role}: no column {column!r}; the columns are {', '.join(df.columns)}")
    if timeout is not None and not timeout > 0:
        raise ValueError(f"timeout: expected a positive number of seconds, got {timeout!r}")
    settings = {"targets": tuple(names), "timestamp": timestamp, "horizon": horizon, "key": key, **options}
    Stream(**settings)  # refuses bad options here, not in a worker
    conf = df.sparkSession.conf
    if conf.get("spark.sql.streaming.stateStore.providerClass", "") != ROCKSDB:
        conf.set("spark.sql.streaming.stateStore.providerClass", ROCKSDB)
    schema = output_schema(names, horizon, categorical)
    wanted = df.select(*dict.fromkeys([key, timestamp, *names, *features]))
    return wanted.groupBy(key).transformWithStateInPandas(
        statefulProcessor=StreamProcessor(settings, schema.names, timeout, keep),
        outputStructType=schema,
        outputMode="append",
        timeMode="none" if timeout is None else "processingTime",
    )


def output_schema(targets: Sequence[str], horizon: int, categorical: Sequence[str] = ()) -> StructType:
    """key, index (rows of this key before), timestamp; for each target its value, `_predicted`, and for each step h
    `_ahead{h}`, `_ahead{h}_lower` and `_ahead{h}_upper`; surprise, anomaly, alarm, severity and silent."""
    from pyspark.sql.types import BooleanType, DoubleType, LongType, StringType, StructField, StructType

    suffixes = ["", "_predicted"]
    suffixes += [f"_ahead{h}{bound}" for h in range(1, horizon + 1) for bound in ("", "_lower", "_upper")]
    fields: list[tuple[str, Any]] = [("key", StringType()), ("index", LongType()), ("timestamp", StringType())]
    for name in targets:
        labels = any(fnmatchcase(name, pattern) for pattern in categorical)
        fields += [(f"{name}{suffix}", StringType() if labels else DoubleType()) for suffix in suffixes]
    fields += [("surprise", DoubleType()), ("anomaly", DoubleType()), ("alarm", BooleanType())]
    fields += [("severity", DoubleType()), ("silent", BooleanType())]
    return StructType([StructField(name, kind) for name, kind in fields])


class StreamProcessor(StatefulProcessor):  # type: ignore[misc, unused-ignore]  # Any without the extra
    """What Spark calls with the rows of a key. The blob of its stream is the value in the state store."""

    def __init__(self, options: Mapping[str, Any], columns: Sequence[str], timeout: float | None, keep: int) -> None:
        self.options, self.columns, self.keep = dict(options), list(columns), keep
        self.timeout = None if timeout is None else int(timeout * 1000)

    def init(self, handle: StatefulProcessorHandle) -> None:
        import torch

        torch.set_num_threads(1)
        self.handle, self.advance = handle, _advance(self.options, self.keep)
        self.blob = handle.getValueState("stream", "blob binary, seen long")

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:  # noqa: N802
        import pandas as pd

        parts = list(rows)
        batch = parts[0] if len(parts) == 1 else pd.concat(parts)
        if not batch[self.options["timestamp"]].is_monotonic_increasing:
            batch = batch.sort_values(self.options["timestamp"], kind="stable")
        state, seen = self.blob.get() or (None, 0)
        block = Block(tuple(batch.columns), _rows(batch), list(range(seen + 1, seen + 1 + len(batch))))
        try:
            state, results = self.advance.block(None if state is None else bytes(state), block)
        except (BlobError, StreamError) as error:
            raise type(error)(f"{self.options['key']} {key[0]}: {error}") from None
        self.blob.update((state, seen + len(results)))
        if self.timeout is not None:
            for timer in list(self.handle.listTimers()):
                self.handle.deleteTimer(timer)
            self.handle.registerTimer(timerValues.getCurrentProcessingTimeInMs() + self.timeout)
        yield pd.DataFrame(_columns(results, seen), columns=self.columns)

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[pd.DataFrame]:  # noqa: N802
        """Forget a key that has become silent."""
        import pandas as pd

        _, seen = self.blob.get() or (None, 0)
        self.blob.clear()
        last = {"key": str(key[0]), "index": seen, "alarm": False, "silent": True}
        yield pd.DataFrame([last], columns=self.columns)

    def close(self) -> None:
        pass


_made: dict[str, Advance] = {}
"""What this Python worker keeps between batches, by options."""


def _advance(options: Mapping[str, Any], keep: int) -> Advance:
    known = repr((sorted(options.items()), keep))
    if known not in _made:
        _made[known] = Advance(keep=keep, **options)
    return _made[known]


def _rows(batch: pd.DataFrame) -> list[Sequence[Any]]:
    """The rows of a table, with None where a text is missing."""
    columns = [
        [None if value is None or value != value else value for value in batch[name]]
        if batch[name].dtype == object
        else batch[name].tolist()
        for name in batch.columns
    ]
    return list(zip(*columns, strict=True))


def _columns(results: Results, seen: int) -> dict[str, Any]:
    """Results by the names of `output_schema`."""
    steps, split = results.steps, results.columns.split
    table: dict[str, Any] = {"key": results.keys, "index": np.arange(seen, seen + len(results))}
    table["timestamp"] = [None if time is None else str(time) for time in results.timestamps or []]
    parts = {"": results.observed, "_predicted": steps.predicted}
    for h in range(steps.forecast.shape[1]):
        parts[f"_ahead{h + 1}"] = steps.forecast[:, h]
        if steps.lower.shape[1]:
            parts |= {f"_ahead{h + 1}_lower": steps.lower[:, h], f"_ahead{h + 1}_upper": steps.upper[:, h]}
    for suffix, entries in parts.items():
        table |= {f"{name}{suffix}": values for name, values in split(entries).items()}
    table |= {"surprise": steps.surprise, "anomaly": steps.anomaly, "alarm": steps.alarm, "severity": steps.severity}
    return table | {"silent": np.zeros(len(results), dtype=bool)}


def _as_list(names: str | Sequence[str]) -> list[str]:
    return [names] if isinstance(names, str) else list(names)
