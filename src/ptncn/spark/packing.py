"""Rows of a key as one row with one binary column, and back.

Spark's `transformWithStateInPandas` handles every row, and every column of a key's table, in Python. The rows of a key
are therefore passed as the bytes of an Arrow batch, which the stages before and after it write and read for many keys
at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

KEY, ROWS = "c0", "c1"
"""Names of the packed columns."""


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
