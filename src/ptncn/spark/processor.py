"""The processor that Spark calls with rows of many keys, and the packing of those rows.

A call of the processor by `transformWithStateInPandas` takes milliseconds per key. The key that Spark sees is therefore
a group of keys, whose rows an earlier stage packs into an Arrow batch in binary form.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any
from zlib import crc32

import numpy as np

from ptncn.streaming.results import Results
from ptncn.streaming.storage import MALFORMED, BlobError, pack, unpack
from ptncn.streaming.stream import StoredStreams

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

GROUP, ROWS = "c0", "c1"
"""Names of the packed columns."""
GROUPS = 64
"""Number of groups of keys; a checkpoint is valid only for this number."""


@dataclass
class KeyGroup:
    """Data stored for a group, in addition to the states of its keys."""

    setting: Any = None
    """Properties that the states of all keys share."""
    last: dict[str, int] = field(default_factory=dict)
    """Time of the last rows of each key in milliseconds, if there is a timeout."""
    timer: int | None = None
    stamp: bytes = b""
    """A random value, changed whenever a state of the group is written."""


class StreamProcessor(StatefulProcessor):  # type: ignore[misc, unused-ignore]  # Any without the extra
    """Called by Spark with the rows of a group of keys. The state of each key is a value of a map in the state store.

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
        self.handle, self.worker = handle, _worker(self.options, self.keep)
        self.reads = arrow_schema(self.inputs)
        self.group = handle.getValueState("group", "blob binary")
        self.states = handle.getMapState("stream", "key string", "blob binary")

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:  # noqa: N802
        number, ordered = int(key[0]), self._ordered([blob for part in rows for blob in part.iloc[:, -1]])
        names, streams = tuple(self.inputs.names), self.worker.streams
        try:
            group = self._open(number)
            setting = {"groups": GROUPS, **streams.begin(names, ordered)}
            if group.setting not in (None, setting):
                raise BlobError("state of a stream with other options")
        except BlobError as error:
            raise BlobError(f"{self.options['key']} {ordered[0][0]}: {error}") from None
        group.setting = setting
        self.worker.held.setdefault(number, set()).update(row[0] for row in ordered)
        for indices, results in streams.advance(names, ordered, self._take, self._put):
            if len(results):
                yield self._table(_columns(results, indices))
        if self.timeout is not None:
            now = timerValues.getCurrentProcessingTimeInMs()
            group.last |= dict.fromkeys((row[0] for row in ordered), now)
        self._close(number, group)

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[pd.DataFrame]:  # noqa: N802
        """Drop the silent keys of a group."""
        number, now = int(key[0]), timerValues.getCurrentProcessingTimeInMs()
        group = self._open(number)
        silent = [key for key, last in group.last.items() if last + (self.timeout or 0) <= now]
        for each in silent:
            count = self.worker.streams.seen(each, self._take(each) or b"")
            self.states.removeKey((each,))
            self.worker.streams.forget(each)
            del group.last[each]
            row = {name: [None] for name in self.outputs.names}
            yield self._table(row | {"key": [each], "index": [count], "alarm": [False], "silent": [True]})
        group.timer = None
        self._close(number, group)

    def close(self) -> None:
        pass

    def _open(self, number: int) -> KeyGroup:
        """The stored data of a group. Its streams in memory are dropped unless they match the store."""
        blob = (self.group.get() or (None,))[0]
        blob = None if blob is None else bytes(blob)
        known, group = self.worker.groups.pop(number, (b"", KeyGroup()))  # until it is closed again
        if blob is not None and known == blob:
            return group
        self.worker.forget(number)
        try:
            return KeyGroup() if blob is None else KeyGroup(**unpack(blob))
        except MALFORMED as error:
            raise error if isinstance(error, BlobError) else BlobError(f"not the state of a group: {error!r}") from None

    def _close(self, number: int, group: KeyGroup) -> None:
        if self.timeout is not None and group.timer is None and group.last:
            group.timer = min(group.last.values()) + self.timeout
            self.handle.registerTimer(group.timer)
        group.stamp = os.urandom(16)
        blob = pack(asdict(group))
        self.group.update((blob,))
        self.worker.groups[number] = blob, group

    def _take(self, key: str) -> bytes | None:
        found = self.states.getValue((key,))
        return None if found is None else bytes(found[0])

    def _put(self, key: str, state: bytes) -> None:
        self.states.updateValue((key,), (state,))

    def _ordered(self, blobs: Sequence[bytes]) -> list[Sequence[Any]]:
        """The rows, sorted by key and then by time."""
        import pyarrow as pa
        import pyarrow.compute as pc

        table = pa.Table.from_batches([pa.ipc.read_record_batch(pa.py_buffer(blob), self.reads) for blob in blobs])
        table = table.combine_chunks()
        keys = pc.dictionary_encode(table.column(0), null_encoding="encode").combine_chunks()
        by = pa.table({"key": keys.indices, "time": table.column(self.options["timestamp"])})
        order = pc.sort_indices(by, [("key", "ascending"), ("time", "ascending")])
        columns = [column.to_pylist() for column in table.take(order).columns]
        return list(zip(map(str, columns[0]), *columns[1:], strict=True))

    def _table(self, columns: Mapping[str, Any]) -> pd.DataFrame:
        import pandas as pd

        return pd.DataFrame({name: columns[name] for name in self.outputs.names})


class Worker:
    """The streams that a Python worker holds between batches."""

    def __init__(self, options: Mapping[str, Any], keep: int) -> None:
        self.streams = StoredStreams(keep=keep, **options)
        self.groups: dict[int, tuple[bytes, KeyGroup]] = {}
        """The data of each group as last written; if the store still has these bytes, memory is up to date."""
        self.held: dict[int, set[str]] = {}
        """The keys of each group that may be in memory."""

    def forget(self, number: int) -> None:
        for key in self.held.pop(number, ()):
            self.streams.forget(key)


_workers: dict[str, Worker] = {}


def _worker(options: Mapping[str, Any], keep: int) -> Worker:
    known = repr((sorted(options.items()), keep))
    if known not in _workers:
        _workers[known] = Worker(options, keep)
    return _workers[known]


def _columns(results: Results, indices: np.ndarray) -> dict[str, Any]:
    """Results as columns of `output_schema`."""
    steps = results.steps
    table: dict[str, Any] = {"key": results.keys, "index": indices}
    table["timestamp"] = [None if time is None else str(time) for time in results.timestamps or []]
    parts = {"": results.observed, "_predicted": steps.predicted}
    for h in range(steps.forecast.shape[1]):
        parts[f"_ahead{h + 1}"] = steps.forecast[:, h]
        bounded = steps.lower.shape[1] > 0
        for bound, values in (("lower", steps.lower), ("upper", steps.upper)):
            parts[f"_ahead{h + 1}_{bound}"] = values[:, h] if bounded else np.full_like(results.observed, np.nan)
    for suffix, entries in parts.items():
        when = 0 if suffix == "_predicted" else 1
        table |= {f"{name}{suffix}": values for name, values in results.split(entries, when).items()}
    table |= {"surprise": steps.surprise, "anomaly": steps.anomaly, "alarm": steps.alarm, "severity": steps.severity}
    return table | {"silent": np.zeros(len(results), dtype=bool)}


def group_of(key: str) -> int:
    """The number of a key's group."""
    return _hashed_to(crc32(key.encode()) % GROUPS)


@cache
def _hashed_to(hashed: int) -> int:
    """The number that Spark hashes to `hashed`: Murmur3 of one word, inverted.

    Spark assigns a group to the partition given by the hash of its number, modulo the number of partitions. With these
    numbers the groups are spread evenly.
    """
    word = 1 << 32
    x = hashed ^ hashed >> 16
    x = x * pow(0xC2B2AE35, -1, word) % word
    x ^= x >> 13 ^ x >> 26
    x = x * pow(0x85EBCA6B, -1, word) % word
    x ^= x >> 16 ^ 4  # the number of bytes
    x = (x - 0xE6546B64) * pow(5, -1, word) % word
    x = (x >> 13 | x << 19) % word ^ 42  # the seed
    x = x * pow(0x1B873593, -1, word) % word
    x = (x >> 15 | x << 17) % word
    x = x * pow(0xCC9E2D51, -1, word) % word
    return x - word if x >= word >> 1 else x


def packed(df: DataFrame) -> DataFrame:
    """One row per group of keys in an Arrow batch: the rows of the group in order, as bytes. The key comes first."""
    from pyspark.sql.types import BinaryType, IntegerType, StructField, StructType

    return df.mapInArrow(pack_rows, StructType([StructField(GROUP, IntegerType()), StructField(ROWS, BinaryType())]))


def arrow_schema(schema: StructType) -> pa.Schema:
    from pyspark.sql.pandas.types import to_arrow_schema

    return to_arrow_schema(schema)


def pack_rows(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    for batch in batches:
        if batch.num_rows:
            keys = batch.column(0).dictionary_encode(null_encoding="encode")
            groups = np.array([group_of(str(key)) for key in keys.dictionary.to_pylist()], dtype=np.int32)
            of_rows = groups[keys.indices.to_numpy()]
            order = np.argsort(of_rows, kind="stable")
            found, starts = np.unique(of_rows[order], return_index=True)
            rows = batch.take(pa.array(order))
            parts = [rows.slice(start, end - start) for start, end in pairwise([*starts.tolist(), len(order)])]
            blobs = pa.array([part.serialize().to_pybytes() for part in parts], pa.binary())
            yield pa.RecordBatch.from_arrays([pa.array(found), blobs], names=[GROUP, ROWS])
