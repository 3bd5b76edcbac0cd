"""The processor that Spark calls, tested without Spark."""

from __future__ import annotations

import os
from types import SimpleNamespace

import pytest

pd = pytest.importorskip("pandas", reason="needs pandas: make test-spark")
pa = pytest.importorskip("pyarrow", reason="needs pyarrow: make test-spark")
types = pytest.importorskip("pyspark.sql.types", reason="needs pyspark: make test-spark")

from ptncn.spark import processor as module  # noqa: E402
from ptncn.spark.forecasts import output_schema  # noqa: E402
from ptncn.spark.processor import StreamProcessor, arrow_schema  # noqa: E402
from ptncn.streaming import Stream, StreamError  # noqa: E402
from ptncn.streaming.storage import BlobError  # noqa: E402

OPTIONS = {"key": "device", "targets": ("load",), "timestamp": "time", "horizon": 1}
KINDS = {"device": types.StringType(), "time": types.DoubleType(), "load": types.DoubleType()}
INPUTS = types.StructType([types.StructField(name, kind) for name, kind in KINDS.items()])
OUTPUTS = output_schema(["load"], 1)
GROUP = (7,)


class Handle:
    """The states of a group, and its timers."""

    def __init__(self) -> None:
        self.group, self.states, self.timers, self.read = None, {}, [], []
        self.registerTimer = self.timers.append

    def getValueState(self, name: str, schema: str) -> SimpleNamespace:  # noqa: N802
        def update(value: tuple) -> None:
            self.group = value

        return SimpleNamespace(get=lambda: self.group, update=update)

    def getMapState(self, name: str, key: str, value: str) -> SimpleNamespace:  # noqa: N802
        def get(key: tuple) -> tuple | None:
            self.read.append(key[0])
            return self.states.get(key)

        return SimpleNamespace(getValue=get, updateValue=self.states.__setitem__, removeKey=self.states.pop)


@pytest.fixture(autouse=True)
def no_worker(monkeypatch):
    monkeypatch.setattr(module, "_workers", {})


def started(handle: Handle, *, timeout: float | None = None, keep: int = 3, **options) -> StreamProcessor:
    processor = StreamProcessor({**OPTIONS, **options}, INPUTS, OUTPUTS, timeout, keep)
    processor.init(handle)
    return processor


def restarted(handle: Handle, **settings) -> StreamProcessor:
    """In another Python worker."""
    module._workers.clear()
    return started(handle, **settings)


def table(*rows: tuple[str, float, float]) -> pd.DataFrame:
    """Rows of devices, packed into one."""
    columns = dict(zip(KINDS, zip(*rows, strict=True), strict=True))
    batch = pa.RecordBatch.from_pydict(columns, schema=arrow_schema(INPUTS))
    return pd.DataFrame({"c1": [batch.serialize().to_pybytes()]})


def at(milliseconds: int) -> SimpleNamespace:
    return SimpleNamespace(getCurrentProcessingTimeInMs=lambda: milliseconds)


def process(processor: StreamProcessor, *tables: pd.DataFrame, now: int = 1000) -> pd.DataFrame:
    return pd.concat([*processor.handleInputRows(GROUP, iter(tables), at(now))], ignore_index=True)


def rows_in_turn(count: int, keys: str = "abcde") -> list[tuple[str, float, float]]:
    return [(key, 60.0 * i, float((7 * i + 3 * n) % 10)) for i in range(count) for n, key in enumerate(keys)]


def forecasts(rows: list[tuple[str, float, float]]) -> dict[tuple[str, int], float]:
    values: dict[tuple[str, int], float] = {}
    counts: dict[str, int] = {}
    for out in Stream(**OPTIONS).feed(dict(zip(KINDS, row, strict=True)) for row in rows):
        index = counts[out.key] = counts.get(out.key, -1) + 1
        values[out.key, index] = out.forecast[0]["load"]
    return values


def by_key_and_index(table: pd.DataFrame) -> dict[tuple[str, int], float]:
    return dict(zip(zip(table["key"], table["index"], strict=True), table["load_ahead1"], strict=True))


def test_rows_are_sorted_by_time_and_numbered_over_batches():
    handle = Handle()
    first = process(started(handle), table(("a", 60, 2.0)), table(("a", 0, 1.0)))
    results = pd.concat([first, process(restarted(handle), table(("a", 120, 4.0)))])
    assert results["index"].tolist() == [0, 1, 2]
    assert results["load"].tolist() == [1.0, 2.0, 4.0]
    assert by_key_and_index(results) == forecasts([("a", 0, 1.0), ("a", 60, 2.0), ("a", 120, 4.0)])


@pytest.mark.parametrize("keep", [1, 2, 5])
@pytest.mark.parametrize("again", [started, restarted])
def test_keys_of_a_group_are_those_of_one_process_however_many_are_in_memory(keep, again):
    handle, rows, results = Handle(), rows_in_turn(12), []
    for first in range(0, len(rows), 20):
        results.append(process(again(handle, keep=keep), table(*rows[first : first + 20])))
    assert by_key_and_index(pd.concat(results)) == forecasts(rows)


def test_states_of_keys_in_memory_are_not_read():
    handle = Handle()
    process(started(handle), table(*rows_in_turn(1, "ab")))
    handle.read.clear()
    process(started(handle), table(*rows_in_turn(1, "ab")))
    assert handle.read == []
    process(restarted(handle), table(*rows_in_turn(1, "b")))
    assert handle.read == ["b"]


def test_a_batch_that_was_not_committed_is_repeated_from_the_store():
    handle, rows = Handle(), rows_in_turn(4, "ab")
    process(started(handle), table(*rows[:4]))
    group, states = handle.group, dict(handle.states)
    expected = {place: value for place, value in forecasts(rows).items() if place[1] > 1}
    # the task ends well, but its batch is lost
    assert by_key_and_index(process(started(handle), table(*rows[4:]))) == expected
    handle.group, handle.states = group, dict(states)
    full = started(handle)
    full.states.updateValue = lambda key, value: os.write(-1, b"")
    with pytest.raises(OSError, match="Bad file descriptor"):
        process(full, table(*rows[4:]))
    handle.group, handle.states = group, dict(states)
    assert by_key_and_index(process(started(handle), table(*rows[4:]))) == expected


def test_silent_keys_are_dropped_one_by_one_and_start_again():
    handle = Handle()
    processor = started(handle, timeout=2.5)
    process(processor, table(("a", 0, 1.0), ("b", 0, 1.0)), now=1000)
    process(processor, table(("b", 60, 1.0)), now=2000)
    assert handle.timers == [3500]

    def silent(now: int) -> list:
        outputs = [*restarted(handle, timeout=2.5).handleExpiredTimer(GROUP, at(now), None)]
        return [part[["key", "index", "silent"]].values.tolist() for part in outputs]

    assert silent(3600) == [[["a", 1, True]]]
    assert handle.timers == [3500, 4500]
    assert list(handle.states) == [("b",)]
    assert silent(4500) == [[["b", 2, True]]]
    assert (handle.timers, handle.states) == ([3500, 4500], {})
    assert process(started(handle, timeout=2.5), table(("a", 120, 1.0)), now=9000)["index"].tolist() == [0]
    assert handle.timers == [3500, 4500, 11500]


def test_a_timer_of_a_key_that_came_back_drops_nothing():
    handle = Handle()
    processor = started(handle, timeout=2.5)
    process(processor, table(("a", 0, 1.0)), now=1000)
    process(processor, table(("a", 60, 1.0)), now=3000)
    assert [*processor.handleExpiredTimer(GROUP, at(3500), None)] == []
    assert handle.timers == [3500, 5500]
    assert process(processor, table(("a", 120, 1.0)), now=4000)["index"].tolist() == [2]


def with_version_99(blob: bytes) -> bytes:
    return blob[:12] + (99).to_bytes(2, "little") + blob[14:]


@pytest.mark.parametrize("part", ["key", "group"])
def test_a_state_of_another_version_names_the_key_and_stays_in_the_store(part):
    handle = Handle()
    process(started(handle), table(("a", 0, 1.0), ("b", 0, 1.0)))
    if part == "key":
        handle.states["b",] = (with_version_99(handle.states["b",][0]),)
    else:
        handle.group = (with_version_99(handle.group[0]),)
    states, group = dict(handle.states), handle.group
    for processor in (restarted(handle), started(handle)):  # the second one in the same worker
        with pytest.raises(BlobError, match=r"^device b: state of version 99; this version of ptncn reads \d+$"):
            process(processor, table(("b", 60, 2.0)))
    assert (handle.states, handle.group) == (states, group)


def test_a_state_that_is_not_one_names_the_key():
    handle = Handle()
    process(started(handle), table(("a", 0, 1.0)))
    handle.states["a",] = (module.pack({"seen": 1, "labels": {}, "state": {"engine": 3}}),)
    with pytest.raises(BlobError, match=r"^device a: not the state of a stream like this one: "):
        process(restarted(handle), table(("a", 60, 2.0)))


def test_states_of_streams_with_other_options_are_refused():
    handle = Handle()
    process(started(handle), table(("a", 0, 1.0)))
    with pytest.raises(BlobError, match=r"^device a: state of a stream with other options$"):
        process(restarted(handle, alarm_rate=0.5), table(("a", 60, 2.0)))


def test_a_bad_row_names_its_key_and_leaves_the_states_as_they_were():
    handle, rows = Handle(), [("a", 0.0, 1.0), ("b", 0.0, 1.0), ("b", 60.0, float("inf"))]
    with pytest.raises(StreamError, match=r"^device b: row 2 of the batch: column 'load' holds inf, which is not a "):
        process(started(handle, on_error="stop"), table(*rows))
    assert handle.group is None
    assert by_key_and_index(process(started(handle, on_error="stop"), table(*rows[:2]))) == forecasts(rows[:2])
