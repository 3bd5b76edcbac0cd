"""The processor that Spark calls with the rows of a key, and the form of those rows.

Spark's `transformWithStateInPandas` handles every row, and every column of a key's table, in Python. The rows of a key
are therefore passed as the bytes of an Arrow batch, in one row with one binary column, which the stages before and
after it write and read for many keys at once.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from ptncn.streaming.results import Results
from ptncn.streaming.sources import Block, StreamError
from ptncn.streaming.storage import BlobError
from ptncn.streaming.stream import Advance

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
    from pyspark.sql.types import StructType
else:
    try:
        from pyspark.sql.streaming.stateful_processor import StatefulProcessor
    except ImportError:  # importable without the extra; `forecast` reports what is missing
        StatefulProcessor = object

KEY, ROWS = "c0", "c1"
"""Names of the packed columns."""


class StreamProcessor(StatefulProcessor):  # type: ignore[misc, unused-ignore]  # Any without the extra
    """Called by Spark with the rows of a key. The value in the state store is the blob of its stream.

    Arguments:
        options: options of the stream.
        inputs, outputs: columns of the rows, the key first.
        timeout, keep: see `forecast`.
    """

    def __init__(
        self,
        options: Mapping[str, Any],
        inputs: StructType,
        outputs: StructType,
        timeout: float | None,
        keep: int,
    ) -> None:
        self.options, self.inputs, self.outputs, self.keep = dict(options), inputs, outputs, keep
        self.timeout = None if timeout is None else int(timeout * 1000)

    def init(self, handle: StatefulProcessorHandle) -> None:
        import torch

        torch.set_num_threads(1)
        self.handle, self.advance = handle, _advance(self.options, self.keep)
        self.reads, self.writes = arrow_schema(self.inputs), arrow_schema(self.outputs)
        self.blob = handle.getValueState("stream", "blob binary, seen long")

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:  # noqa: N802
        state, seen = self.blob.get() or (None, 0)
        block = self._block(key[0], [blob for part in rows for blob in part.iloc[:, -1]], seen)
        try:
            state, results = self.advance.block(None if state is None else bytes(state), block)
        except (BlobError, StreamError) as error:
            raise type(error)(f"{self.options['key']} {key[0]}: {error}") from None
        self.blob.update((state, seen + len(results)))
        if self.timeout is not None:
            for timer in list(self.handle.listTimers()):
                self.handle.deleteTimer(timer)
            self.handle.registerTimer(timerValues.getCurrentProcessingTimeInMs() + self.timeout)
        if len(results):
            yield self._table(key[0], len(results), _columns(results, seen))

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[pd.DataFrame]:  # noqa: N802
        """Drop a silent key."""
        _, seen = self.blob.get() or (None, 0)
        self.blob.clear()
        yield self._table(key[0], 1, {"index": [seen], "alarm": [False], "silent": [True]})

    def close(self) -> None:
        pass

    def _block(self, key: Any, blobs: Sequence[bytes], seen: int) -> Block:
        """The rows of a key in order of time."""
        import pandas as pd
        import pyarrow as pa

        batches = [pa.ipc.read_record_batch(pa.py_buffer(blob), self.reads) for blob in blobs]
        columns = [column.to_pylist() for column in pa.Table.from_batches(batches).columns]
        times = columns[self.reads.get_field_index(self.options["timestamp"])]
        rows: list[Sequence[Any]] = list(zip([key] * len(times), *columns, strict=True))
        if not _is_sorted(times):
            order = pd.Series(times).sort_values(kind="stable").index
            rows = [rows[place] for place in order]
        return Block(tuple(self.inputs.names), rows, list(range(seen + 1, seen + 1 + len(rows))))

    def _table(self, key: Any, rows: int, columns: Mapping[str, Any]) -> pd.DataFrame:
        """One row with the bytes of `rows` rows."""
        import pandas as pd
        import pyarrow as pa

        arrays = [
            pa.array(columns[field.name], field.type, from_pandas=True)
            if field.name in columns
            else pa.nulls(rows, field.type)
            for field in self.writes
        ]
        blob = pa.RecordBatch.from_arrays(arrays, schema=self.writes).serialize().to_pybytes()
        return pd.DataFrame({KEY: [str(key)], ROWS: [blob]})


_made: dict[str, Advance] = {}
"""The cache of this Python worker between batches, by options."""


def _advance(options: Mapping[str, Any], keep: int) -> Advance:
    known = repr((sorted(options.items()), keep))
    if known not in _made:
        _made[known] = Advance(keep=keep, **options)
    return _made[known]


def _is_sorted(times: Sequence[Any]) -> bool:
    try:
        return all(map(operator.le, times, times[1:]))
    except TypeError:  # some are missing
        return False


def _columns(results: Results, seen: int) -> dict[str, Any]:
    """Results as columns of `output_schema`."""
    steps = results.steps
    table: dict[str, Any] = {"index": np.arange(seen, seen + len(results))}
    table["timestamp"] = [None if time is None else str(time) for time in results.timestamps or []]
    parts = {"": results.observed, "_predicted": steps.predicted}
    for h in range(steps.forecast.shape[1]):
        parts[f"_ahead{h + 1}"] = steps.forecast[:, h]
        if steps.lower.shape[1]:
            parts |= {f"_ahead{h + 1}_lower": steps.lower[:, h], f"_ahead{h + 1}_upper": steps.upper[:, h]}
    for suffix, entries in parts.items():
        when = 0 if suffix == "_predicted" else 1
        table |= {f"{name}{suffix}": values for name, values in results.split(entries, when).items()}
    table |= {"surprise": steps.surprise, "anomaly": steps.anomaly, "alarm": steps.alarm, "severity": steps.severity}
    return table | {"silent": np.zeros(len(results), dtype=bool)}


def packed(df: DataFrame) -> DataFrame:
    """One row per key (the first column) of an Arrow batch, with the bytes of its rows in order."""
    return df.mapInArrow(pack, packed_schema(df.schema))


def packed_schema(schema: StructType) -> StructType:
    from pyspark.sql.types import BinaryType, StructField, StructType

    return StructType([StructField(KEY, schema[0].dataType), StructField(ROWS, BinaryType())])


def unpacked(df: DataFrame, schema: StructType) -> DataFrame:
    """The rows of a table made by `packed`, whose bytes hold all columns of `schema` except the first."""
    return df.mapInArrow(unpacking(schema), schema)


def arrow_schema(schema: StructType) -> pa.Schema:
    """The schema of the bytes: all columns except the first."""
    import pyarrow as pa
    from pyspark.sql.pandas.types import to_arrow_schema

    return pa.schema(list(to_arrow_schema(schema))[1:])


def pack(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    for batch in batches:
        if batch.num_rows:
            keys = batch.column(0).dictionary_encode(null_encoding="encode")
            codes = keys.indices.to_numpy()
            order = np.argsort(codes, kind="stable")
            starts = np.searchsorted(codes[order], np.arange(len(keys.dictionary) + 1)).tolist()
            rows = pa.RecordBatch.from_arrays([part.take(order) for part in batch.columns[1:]], batch.schema.names[1:])
            parts = [rows.slice(start, end - start) for start, end in pairwise(starts)]
            blobs = pa.array([part.serialize().to_pybytes() for part in parts], pa.binary())
            yield pa.RecordBatch.from_arrays([keys.dictionary, blobs], names=[KEY, ROWS])


def unpacking(schema: StructType) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The reverse of `pack`, for rows with this schema."""

    def unpack(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        inside, names = arrow_schema(schema), schema.names
        for batch in batches:
            parts = [pa.ipc.read_record_batch(blob.as_buffer(), inside) for blob in batch.column(1)]
            if parts:
                rows = pa.Table.from_batches(parts).combine_chunks()
                keys = batch.column(0).take(np.repeat(np.arange(len(parts)), [part.num_rows for part in parts]))
                columns = [part.combine_chunks() for part in rows.columns]
                yield pa.RecordBatch.from_arrays([keys, *columns], names=names)

    return unpack
