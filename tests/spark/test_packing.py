"""Rows of a key become one row of arrays, in their order."""

from __future__ import annotations

import pytest

pa = pytest.importorskip("pyarrow", reason="needs pyarrow: make test-spark")

from ptncn.spark.packing import pack  # noqa: E402


def test_rows_are_packed_by_key_in_their_order_for_each_batch():
    first = {"device": ["b", "a", None, "b"], "time": [3, 2, 1, 0], "load": [0.5, None, 1.5, 2.5]}
    batches = [
        pa.RecordBatch.from_pydict(first),
        pa.RecordBatch.from_pydict({name: v[:1] for name, v in first.items()}),
    ]
    rows = [row for batch in pack(batches) for row in batch.to_pylist()]
    assert rows == [
        {"device": "b", "time": [3, 0], "load": [0.5, 2.5]},
        {"device": "a", "time": [2], "load": [None]},
        {"device": None, "time": [1], "load": [1.5]},
        {"device": "b", "time": [3], "load": [0.5]},
    ]


def test_an_empty_batch_has_no_row():
    empty = pa.RecordBatch.from_pydict({"device": pa.array([], pa.string()), "load": pa.array([], pa.float64())})
    assert list(pack([empty])) == []
