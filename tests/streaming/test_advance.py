"""Streams with states stored by other systems continue bit for bit, however they are interleaved."""

from __future__ import annotations

import numpy as np
import pytest

from ptncn.streaming import Advance, Stream
from ptncn.streaming.storage import BlobError


def _rows(key: str, seed: int, count: int = 60) -> list[dict]:
    values = np.random.default_rng(seed).normal(size=count).cumsum()
    return [{"device": key, "time": 60.0 * i, "load": float(value)} for i, value in enumerate(values)]


def test_interleaved_streams_give_the_same_results_as_separate_ones():
    options = {"key": "device", "targets": ("load",), "timestamp": "time", "horizon": 2}
    advance, feeds = Advance(**options), {key: _rows(key, seed) for seed, key in enumerate("abc")}
    states, outputs = dict.fromkeys(feeds), {key: [] for key in feeds}
    for start in range(0, 60, 7):
        for key, rows in feeds.items():
            states[key], out = advance(states[key], rows[start : start + 7])
            outputs[key] += out
    together = Stream(**options).feed(row for turn in zip(*feeds.values(), strict=True) for row in turn)
    for key in feeds:
        alone = [out for out in together if out.key == key]
        assert [_numbers(out) for out in outputs[key]] == [_numbers(out) for out in alone]


def _numbers(out) -> tuple:
    return out.observed, out.prediction, out.forecast, out.lower, out.upper, repr(out.surprise), out.anomaly, out.alarm


def test_a_state_of_another_version_or_with_other_options_gives_a_one_line_error():
    state, _ = Advance(horizon=1)(None, [[1.0], [2.0]])
    other = state[:12] + (99).to_bytes(2, "little") + state[14:]
    with pytest.raises(BlobError, match=r"^state of version 99; this version of ptncn reads 4$"):
        Advance(horizon=1)(other, [[3.0]])
    with pytest.raises(BlobError, match=r"^state of a stream with other options$"):
        Advance(horizon=2)(state, [[3.0]])


def test_a_state_is_decoded_only_if_its_stream_is_not_in_memory(monkeypatch):
    decoded, load = [], Stream.load_bytes
    monkeypatch.setattr(Stream, "load_bytes", lambda stream, state: (decoded.append(state), load(stream, state)))
    feeds = {key: _rows(key, seed, 4) for seed, key in enumerate("abc")}
    advance, states = Advance(keep=2, key="device", targets=("load",), timestamp="time"), dict.fromkeys(feeds)
    for key in "aabbab":
        states[key], _ = advance(states[key], feeds[key][:1])
        feeds[key] = feeds[key][1:]
    assert decoded == []
    states["c"], _ = advance(None, feeds["c"][:1])
    advance(states["a"], feeds["a"][:1])
    assert decoded == [states["a"]]
