"""The processor that Spark calls, tested without Spark."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

pd = pytest.importorskip("pandas", reason="needs pandas: make test-spark")
pa = pytest.importorskip("pyarrow", reason="needs pyarrow: make test-spark")
types = pytest.importorskip("pyspark.sql.types", reason="needs pyspark: make test-spark")

from ptncn.spark.forecasts import output_schema  # noqa: E402
from ptncn.spark.processor import StreamProcessor, arrow_schema, unpacking  # noqa: E402
from ptncn.streaming import Stream  # noqa: E402
from ptncn.streaming.storage import BlobError  # noqa: E402

OPTIONS = {"key": "device", "targets": ("load",), "timestamp": "time", "horizon": 1}
KINDS = {"device": types.StringType(), "time": types.DoubleType(), "load": types.DoubleType()}
INPUTS = types.StructType([types.StructField(name, kind) for name, kind in KINDS.items()])
OUTPUTS = output_schema(["load"], 1)


class Handle:
    """A state store with one value, and its timers."""

    def __init__(self) -> None:
        self.value, self.timers = None, set()
        self.registerTimer, self.deleteTimer = self.timers.add, self.timers.remove
        self.listTimers = lambda: iter(sorted(self.timers))

    def getValueState(self, name: str, schema: str) -> SimpleNamespace:  # noqa: N802
        def put(value: tuple | None) -> None:
            self.value = value

        return SimpleNamespace(get=lambda: self.value, update=put, clear=lambda: put(None))


def started(handle: Handle, timeout: float | None = None) -> StreamProcessor:
    processor = StreamProcessor(OPTIONS, INPUTS, OUTPUTS, timeout, keep=3)
    processor.init(handle)
    return processor


def table(*rows: tuple[float, float]) -> pd.DataFrame:
    """Rows of a device, packed into one."""
    times, loads = zip(*rows, strict=True)
    batch = pa.RecordBatch.from_pydict({"time": times, "load": loads}, schema=arrow_schema(INPUTS))
    return pd.DataFrame({"c0": ["a"], "c1": [batch.serialize().to_pybytes()]})


def unpacked(said: list[pd.DataFrame]) -> pd.DataFrame:
    batches = unpacking(OUTPUTS)([pa.RecordBatch.from_pandas(part, preserve_index=False) for part in said])
    return pa.Table.from_batches(list(batches)).to_pandas()


NOW = SimpleNamespace(getCurrentProcessingTimeInMs=lambda: 1000)


def test_rows_are_sorted_by_time_and_numbered_over_batches():
    handle = Handle()
    processor = started(handle)
    said = [*processor.handleInputRows(("a",), iter([table((60, 2.0)), table((0, 1.0))]), NOW)]
    said += started(handle).handleInputRows(("a",), iter([table((120, 4.0))]), NOW)
    found = unpacked(said)
    rows = [{"device": "a", "time": 60.0 * i, "load": load} for i, load in enumerate([1.0, 2.0, 4.0])]
    expected = Stream(**OPTIONS).feed(rows)
    assert found["index"].tolist() == [0, 1, 2]
    assert found["load"].tolist() == [1.0, 2.0, 4.0]
    assert found["load_ahead1"].tolist() == [out.forecast[0]["load"] for out in expected]


def test_a_silent_key_is_dropped_and_starts_anew():
    handle = Handle()
    processor = started(handle, timeout=2.5)
    list(processor.handleInputRows(("a",), iter([table((0, 1.0))]), NOW))
    list(processor.handleInputRows(("a",), iter([table((60, 1.0))]), NOW))
    assert handle.timers == {3500}
    last = unpacked([*processor.handleExpiredTimer(("a",), NOW, None)])
    assert last[["key", "index", "silent"]].values.tolist() == [["a", 2, True]]
    first = unpacked([*processor.handleInputRows(("a",), iter([table((120, 1.0))]), NOW)])
    assert first["index"].tolist() == [0]


def test_a_state_of_another_version_names_the_key_and_stays_in_the_store():
    handle = Handle()
    processor = started(handle)
    list(processor.handleInputRows(("a",), iter([table((0, 1.0))]), NOW))
    blob, seen = handle.value
    stored = handle.value = blob[:12] + (99).to_bytes(2, "little") + blob[14:], seen
    with pytest.raises(BlobError, match=r"^device a: state of version 99; this version of ptncn reads \d+$"):
        list(processor.handleInputRows(("a",), iter([table((60, 2.0))]), NOW))
    assert handle.value == stored
