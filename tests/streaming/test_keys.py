"""Many streams in one feed are independent, in memory or on disk, and resume after a kill."""

import signal
import time
from itertools import zip_longest

import numpy as np
import pytest
from feeds import finish, run_here, sines, start

from ptncn.streaming import Stream
from ptncn.streaming.options import LearnerSpec
from ptncn.streaming.storage import KeyStore, KeyTable
from ptncn.streaming.stream import StoredStreams

TINY = LearnerSpec(hidden=(4,))


def interleaved(lengths=(80, 50, 65), seed=0):
    """Rows of three devices of different size, in turn but irregularly."""
    feeds = {f"d{k}": sines(n, columns=1, seed=seed + k)[:, 0] * 10**k for k, n in enumerate(lengths)}
    rows = []
    for turn in zip_longest(*([(name, x) for x in values] for name, values in feeds.items())):
        rows += [{"device": name, "x": x} for name, x in filter(None, turn)]
    return rows


def numbers(outs):
    return [(out.observed, out.prediction, out.forecast, out.lower, out.surprise, out.anomaly) for out in outs]


@pytest.mark.parametrize("learner", [None, LearnerSpec("esn-rls", hidden=(6,))])
@pytest.mark.parametrize("limit", [None, 1, 2])
def test_each_key_gives_the_results_of_a_separate_stream(learner, limit):
    rows = interleaved()
    together = Stream(rows, learner, network=TINY, key="device", horizon=2, key_limit=limit)
    outs = list(together)
    together.close()
    assert [out.key for out in outs] == [row["device"] for row in rows]
    for key in ("d0", "d1", "d2"):
        alone = [row for row in rows if row["device"] == key]
        single = list(Stream(alone, learner, network=TINY, key="device", horizon=2))
        assert numbers(single) == numbers([out for out in outs if out.key == key])


def test_blocks_of_any_size_give_the_same_numbers():
    rows = interleaved()
    singly = numbers(Stream(rows, network=TINY, key="device"))
    for most in (7, 64, 1000):
        stream, outs = Stream(rows, network=TINY, key="device"), []
        while (results := stream.read(most)) is not None:
            outs += results
        assert numbers(outs) == singly


def test_shared_weights_are_shared_and_scales_are_not():
    rows = interleaved((200, 200, 200))
    stream = Stream(rows, network=TINY, key="device", weights="shared")
    outs = []
    while (results := stream.read(256)) is not None:
        outs += results
    assert stream.engine.learner is stream.engine._bank.learner(2)
    for k in range(3):
        last = [out for out in outs if out.key == f"d{k}"][-50:]
        errors = [abs(out.prediction["x"] - out.observed["x"]) for out in last]
        assert np.mean(errors) < 0.3 * 10**k


@pytest.mark.parametrize("weights", ["own", "shared"])
def test_one_checkpoint_holds_all_keys_including_those_on_disk(tmp_path, weights):
    rows = interleaved()
    options = {"network": TINY, "key": "device", "key_limit": 2, "weights": weights}
    whole = Stream(rows, **options)
    expected = numbers(whole)
    first = Stream(rows, **options)
    outs = [next(first) for _ in range(100)]
    first.save(tmp_path / "c")
    first.close()
    second = Stream(rows, **options)
    second.load(tmp_path / "c")
    assert numbers(outs) + numbers(second) == expected
    second.close()
    whole.close()


def test_a_key_is_forecast_from_a_checkpoint(tmp_path):
    from ptncn.streaming.stream import forecast_from

    stream = Stream(interleaved(), network=TINY, key="device", horizon=3)
    for _ in stream:
        pass
    stream.save(tmp_path / "c")
    assert forecast_from(tmp_path / "c", 3, key="d1").rows == stream.forecast(3, key="d1").rows
    with pytest.raises(ValueError, match="unknown key 'd9'; known are d"):
        forecast_from(tmp_path / "c", 3, key="d9")
    with pytest.raises(ValueError, match="a key is needed"):
        forecast_from(tmp_path / "c", 3)


@pytest.mark.parametrize("weights", ["own", "shared"])
def test_killed_and_resumed_the_bytes_are_the_same(tmp_path, weights):
    rows = interleaved((120, 100, 80))
    path = tmp_path / "x.csv"
    path.write_text("device,x\n" + "".join(f"{row['device']},{row['x']:.4f}\n" for row in rows))
    command = ("stream", path, "--key", "device", "--key-limit", 2, "--weights", weights, "--hidden", 4)
    run_here(*command, "-o", tmp_path / "whole.csv")
    whole, out = (tmp_path / "whole.csv").read_bytes(), tmp_path / "o.csv"
    command += ("-o", out, "--checkpoint", tmp_path / "c", "--checkpoint-every", 0.05, "--resume")
    process = start(*command)
    while process.poll() is None and not (out.exists() and out.stat().st_size > len(whole) // 3):
        time.sleep(0.001)
    process.send_signal(signal.SIGKILL)
    finish(process)
    run_here(*command)
    assert out.read_bytes() == whole


@pytest.mark.parametrize("keep", [1, 2, 3])
def test_streams_stored_elsewhere_continue_from_their_states_alone(keep):
    rng = np.random.default_rng(3)
    rows = [[f"d{i % 3}", f"{rng.normal():.3f}", "abcdef"[rng.integers(1 + i // 8)]] for i in range(45)]
    options = {"network": TINY, "key": "device", "targets": ("x", "mode"), "categorical": ("mode",), "horizon": 1}
    names = ("device", "x", "mode")
    expected = {}
    for out in Stream((dict(zip(names, row, strict=True)) for row in rows), **options):
        expected.setdefault(out.key, []).append(numbers([out]))
    store, outputs = {}, {}
    for first in range(0, len(rows), 15):
        part = sorted(rows[first : first + 15], key=lambda row: row[0])
        streams = StoredStreams(keep=keep, **options)
        for indices, results in streams.advance(names, part, store.get, store.__setitem__):
            for index, out in zip(indices.tolist(), results, strict=True):
                assert index == len(outputs.setdefault(out.key, []))
                outputs[out.key].append(numbers([out]))
    assert outputs == expected


class TestTable:
    def test_the_slot_of_a_forgotten_key_is_given_again(self):
        table = KeyTable(limit=2)
        table.assign(["a", "b"])
        table.forget("a")
        assert table.assign(["c"]).new == [("c", 0)]
        assert table.room == 2

    def test_the_least_recently_used_goes_first(self):
        table = KeyTable(limit=2)
        table.assign(["a", "b", "a"])
        assert table.assign(["c"]).evicted == [("b", 1)]
        assert list(table.slots) == ["a", "c"]

    def test_known_keys_are_used_in_the_order_of_their_last_rows(self):
        table = KeyTable(limit=3)
        table.assign(["a", "b", "c"])
        assert table.assign(["c", "a", "c", "b", "a"]).slots == [2, 0, 2, 1, 0]
        assert list(table.slots) == ["c", "b", "a"]

    def test_a_store_returns_each_entry_once(self, tmp_path):
        store = KeyStore(str(tmp_path))
        store.put("a", b"1")
        store.put("a", b"2")
        assert len(store) == 1
        assert store.take("a") == b"2"
        assert store.take("a") is None
        store.close()
        assert not list(tmp_path.iterdir())
