"""Rows become one row for each group of keys with their bytes, in their order."""

from __future__ import annotations

import pytest

pa = pytest.importorskip("pyarrow", reason="needs pyarrow: make test-spark")
types = pytest.importorskip("pyspark.sql.types", reason="needs pyspark: make test-spark")

from ptncn.spark.processor import GROUPS, arrow_schema, group_of, pack_rows  # noqa: E402

SCHEMA = types.StructType(
    [
        types.StructField("device", types.StringType()),
        types.StructField("time", types.LongType()),
        types.StructField("load", types.DoubleType()),
    ]
)
ROWS = {"device": ["b", "a", None, "b"], "time": [3, 2, 1, 0], "load": [0.5, None, 1.5, 2.5]}


def test_rows_are_packed_by_group_in_their_order_for_each_batch():
    batches = [pa.RecordBatch.from_pydict(ROWS), pa.RecordBatch.from_pydict({name: v[:1] for name, v in ROWS.items()})]
    first, second = (
        {
            row["c0"]: pa.ipc.read_record_batch(pa.py_buffer(row["c1"]), arrow_schema(SCHEMA)).to_pydict()
            for row in batch.to_pylist()
        }
        for batch in pack_rows(batches)
    )
    assert first == {
        group_of("b"): {"device": ["b", "b"], "time": [3, 0], "load": [0.5, 2.5]},
        group_of("a"): {"device": ["a"], "time": [2], "load": [None]},
        group_of("None"): {"device": [None], "time": [1], "load": [1.5]},
    }
    assert second == {group_of("b"): {"device": ["b"], "time": [3], "load": [0.5]}}


def test_an_empty_batch_has_no_row():
    empty = pa.RecordBatch.from_pydict({"device": pa.array([], pa.string()), "load": pa.array([], pa.float64())})
    assert list(pack_rows([empty])) == []


def murmur(number: int) -> int:
    """Spark's hash of an integer, by the definition of Murmur3 (x86, 32 bits) with seed 42."""

    def rotate(x: int, bits: int) -> int:
        return (x << bits | x >> 32 - bits) & 0xFFFFFFFF

    word = rotate((number & 0xFFFFFFFF) * 0xCC9E2D51 & 0xFFFFFFFF, 15) * 0x1B873593 & 0xFFFFFFFF
    x = (rotate(42 ^ word, 13) * 5 + 0xE6546B64 & 0xFFFFFFFF) ^ 4
    x = (x ^ x >> 16) * 0x85EBCA6B & 0xFFFFFFFF
    x = (x ^ x >> 13) * 0xC2B2AE35 & 0xFFFFFFFF
    return x ^ x >> 16


@pytest.mark.parametrize("partitions", [2, 3, 7, 64])
def test_groups_are_spread_evenly_over_partitions(partitions):
    assert murmur(0) == 933211791  # SELECT hash(0)
    groups = {group_of(f"key {number}") for number in range(5000)}
    counts = [0] * partitions
    for group in groups:
        counts[murmur(group) % partitions] += 1
    assert len(groups) == GROUPS == sum(counts)
    assert max(counts) - min(counts) <= 1
