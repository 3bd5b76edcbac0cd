"""The labels that a stream predicts depend neither on block boundaries nor on other keys."""

from __future__ import annotations

import numpy as np
import pytest

from ptncn.streaming import Advance, Stream

LABELS = ("off", "on", "idle", "fault", "boot")
ROLES = {
    "target": {"targets": ("mode",)},
    "feature": {"targets": ("load",), "features": ("mode",)},
    "both kinds of targets": {"targets": ("load", "mode")},
}


def rows(devices: str, seed: int = 1) -> list[dict]:
    """Devices in turn; new modes appear over time, in a different order for each device."""
    rng = np.random.default_rng(seed)
    return [
        {
            "device": devices[place],
            "time": 60.0 * i,
            "load": float(np.sin(i / 5)),
            "mode": None if rng.random() < 0.1 else LABELS[rng.integers(min(5, 1 + i // 8))],
        }
        for i in range(40)
        for place in rng.permutation(len(devices))
    ]


def options(role: str) -> dict:
    return {"key": "device", "timestamp": "time", "categorical": ("mode",), "horizon": 2, **ROLES[role]}


def by_key(outs) -> dict:
    outputs: dict = {}
    for out in outs:
        values = (out.observed, out.prediction, out.forecast, out.surprise, out.anomaly, out.alarm)
        outputs.setdefault(out.key, []).append(values)
    return outputs


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("size", [1, 7])
def test_a_key_by_itself_in_small_blocks_equals_all_keys_together(role, size):
    stream_rows, states, outputs = rows("abc"), {}, []
    advance = Advance(keep=2, **options(role))
    for start in range(0, len(stream_rows), size):
        for device in "abc":
            part = [row for row in stream_rows[start : start + size] if row["device"] == device]
            if part:
                states[device], outs = advance(states.get(device), part)
                outputs += outs
    assert by_key(outputs) == by_key(Stream(**options(role)).feed(stream_rows))


def test_a_prediction_names_no_category_before_it_was_seen():
    stream_rows = rows("a")
    outs, seen = Stream(**options("target")).feed(stream_rows), {"other", None}
    for row, out in zip(stream_rows, outs, strict=True):
        assert out.prediction is None or out.prediction["mode"] in seen
        seen.add(row["mode"])
        assert {ahead["mode"] for ahead in out.forecast} <= seen


def test_tables_have_the_labels_of_the_single_rows():
    stream_rows = rows("ab")
    stream = Stream(stream_rows, **options("target"))
    table = {field.name: list(field.values) for field in stream.read(80).table()}
    outs = Stream(**options("target")).feed(stream_rows)
    assert table["mode.predicted"] == [None if out.prediction is None else out.prediction["mode"] for out in outs]
    assert table["mode.ahead1"] == [out.forecast[0]["mode"] for out in outs]


def test_with_shared_weights_all_keys_share_the_categories():
    stream = Stream(**options("target"), weights="shared")
    stream.feed(rows("ab"))
    (labels,) = stream.columns.categories["mode"].values()
    assert sorted(labels) == sorted(LABELS)


def test_a_checkpoint_with_one_list_of_categories_for_all_keys_is_read():
    stream = Stream(**options("target"))
    stream.feed(rows("a"))
    tree = stream._tree()
    tree["columns"]["categories"] = {"mode": list(LABELS)}
    stream._load_tree(tree)
    assert stream.columns.decode([0.0, 1.0] + 14 * [0.0], "a") == {"mode": "on"}
    assert stream.columns.decode([0.0, 0.0, 1.0] + 13 * [0.0], "new") == {"mode": "idle"}
