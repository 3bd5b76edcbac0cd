"""Rows of a key as one row of arrays: Spark's `transformWithStateInPandas` handles each row it is given in Python.

Columns are called c0, c1, … in between, because Spark does not accept every name there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

KEY = "c0"


def packed(df: DataFrame) -> DataFrame:
    """All columns but the first, the key, as arrays: a row for each key of an Arrow batch, with its values in order."""
    numbered = df.toDF(*_names(len(df.columns)))
    return numbered.mapInArrow(pack, arrays(numbered.schema))


def arrays(schema: StructType) -> StructType:
    """The same with all columns but the first as arrays."""
    from pyspark.sql.types import ArrayType, StructField, StructType

    kinds = [field.dataType for field in schema]
    kinds[1:] = [ArrayType(kind) for kind in kinds[1:]]
    return StructType([StructField(name, kind) for name, kind in zip(_names(len(kinds)), kinds, strict=True)])


def unpacked(df: DataFrame, names: Iterable[str]) -> DataFrame:
    """The rows of a table like that of `arrays`, with these columns."""
    from pyspark.sql import functions

    return df.select(KEY, functions.inline(functions.arrays_zip(*df.columns[1:]))).toDF(*names)


def pack(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    for batch in batches:
        if batch.num_rows:
            keys = batch.column(0).dictionary_encode(null_encoding="encode")
            codes = keys.indices.to_numpy()
            order = np.argsort(codes, kind="stable")
            starts = np.searchsorted(codes[order], np.arange(len(keys.dictionary) + 1)).astype(np.int32)
            lists = [pa.ListArray.from_arrays(starts, column.take(order)) for column in batch.columns[1:]]
            yield pa.RecordBatch.from_arrays([keys.dictionary, *lists], names=batch.schema.names)


def _names(count: int) -> list[str]:
    return [f"c{number}" for number in range(count)]
