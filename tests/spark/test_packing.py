"""Rows of a key become one row with their bytes, in their order, and come back."""

from __future__ import annotations

import pytest

pa = pytest.importorskip("pyarrow", reason="needs pyarrow: make test-spark")
types = pytest.importorskip("pyspark.sql.types", reason="needs pyspark: make test-spark")

from ptncn.spark.processor import arrow_schema, pack, unpacking  # noqa: E402

SCHEMA = types.StructType(
    [
        types.StructField("device", types.StringType()),
        types.StructField("time", types.LongType()),
        types.StructField("load", types.DoubleType()),
    ]
)
ROWS = {"device": ["b", "a", None, "b"], "time": [3, 2, 1, 0], "load": [0.5, None, 1.5, 2.5]}


def batches() -> list:
    return [pa.RecordBatch.from_pydict(ROWS), pa.RecordBatch.from_pydict({name: v[:1] for name, v in ROWS.items()})]


def test_rows_are_packed_by_key_in_their_order_for_each_batch():
    found = [
        (row["c0"], pa.ipc.read_record_batch(pa.py_buffer(row["c1"]), arrow_schema(SCHEMA)).to_pydict())
        for batch in pack(batches())
        for row in batch.to_pylist()
    ]
    assert found == [
        ("b", {"time": [3, 0], "load": [0.5, 2.5]}),
        ("a", {"time": [2], "load": [None]}),
        (None, {"time": [1], "load": [1.5]}),
        ("b", {"time": [3], "load": [0.5]}),
    ]


def test_what_was_packed_is_unpacked_key_by_key():
    first, second = unpacking(SCHEMA)(pack(batches()))
    expected = {"device": ["b", "b", "a", None], "time": [3, 0, 2, 1], "load": [0.5, 2.5, None, 1.5]}
    assert first.to_pydict() == expected
    assert second.to_pydict() == {"device": ["b"], "time": [3], "load": [0.5]}


def test_an_empty_batch_has_no_row():
    empty = pa.RecordBatch.from_pydict({"device": pa.array([], pa.string()), "load": pa.array([], pa.float64())})
    assert list(pack([empty])) == []
