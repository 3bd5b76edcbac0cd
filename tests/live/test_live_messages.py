"""Messages of visitors, and the speed of replays."""

import json
import struct

import numpy as np
import pytest

from ptncn.live.messages import LARGEST, fields, flag, grey_bytes, nothing, number, one_of, optional, pack, parse, whole
from ptncn.live.pace import Pace
from ptncn.live.track import Ring, thin_out

CHECKS = {
    "count": whole(1, 5),
    "share": number(0.0, 1.0),
    "on": flag,
    "name": one_of(lambda: ["a", "b"]),
    "go": nothing,
    "pixels": grey_bytes(3),
    "both": fields(first=whole(0, 9), second=optional(flag)),
}


@pytest.mark.parametrize(
    ("kind", "value", "becomes"),
    [
        ("count", 5, 5),
        ("share", 1, 1.0),
        ("on", False, False),
        ("name", "b", "b"),
        ("go", None, None),
        ("pixels", "AAEC", b"\0\1\2"),
        ("both", {"first": 2}, {"first": 2, "second": None}),
    ],
)
def test_a_valid_message_becomes_a_command(kind, value, becomes):
    assert parse(json.dumps({"type": kind, "value": value}), CHECKS) == (kind, becomes)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        *(("count", value) for value in (0, 6, 2.0, True, "3", None, [], 10**30)),
        *(("share", value) for value in (-0.1, 1.1, "0.5", True, None, 1e999)),
        *(("on", value) for value in (1, "true", None)),
        *(("name", value) for value in ("c", 3, ["a"], None)),
        ("go", 1),
        *(("pixels", value) for value in ("AAE", "AAECAw==", "????", "ä", 5, None)),
        *(("both", value) for value in ([], {"first": 2, "third": 1}, {"first": 10}, {}, {"first": 1, "second": 1})),
    ],
)
def test_an_invalid_value_is_rejected_by_the_name_of_its_message(kind, value):
    with pytest.raises(ValueError, match=f"^({kind}: |message: expected JSON)"):
        parse(json.dumps({"type": kind, "value": value}), CHECKS)


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "3", '"go"', "{}", '{"type": 3}', '{"type": "fly"}', '{"type": "share", "value": NaN}', "[" * 3000],
)
def test_anything_else_is_rejected(text):
    with pytest.raises(ValueError, match=r"message|unknown"):
        parse(text, CHECKS)


def test_a_long_message_is_rejected_unread():
    with pytest.raises(ValueError, match="bytes"):
        parse(json.dumps({"type": "go", "padding": "ä" * (LARGEST // 2)}), CHECKS)


def test_a_packed_message_has_its_numbers_at_a_multiple_of_eight():
    for padding in range(9):
        message = pack({"type": "x" * padding}, np.arange(3.0).tobytes())
        (length,) = struct.unpack("<I", message[:4])
        assert (4 + length) % 8 == 0
        assert json.loads(message[4 : 4 + length]) == {"type": "x" * padding}
        assert np.frombuffer(message[4 + length :]).tolist() == [0.0, 1.0, 2.0]


class Clock:
    now = 100.0

    def __call__(self):
        return self.now


def replayed(pace, clock, times, seconds, tick=0.01):
    """When each row of a recording is returned, asking the pace every `tick` seconds."""
    given = []
    for _ in range(round(seconds / tick)):
        due = pace.due(256)
        for _ in range(min(due, len(times) - len(given))):
            pace.took(1, times[len(given)])
            given.append(round(clock.now - 100, 2))
        clock.now += tick
    return given


def test_a_recording_is_replayed_at_sixty_times_its_speed():
    clock = Clock()
    given = replayed(Pace("60x", clock), clock, [0.0, 60, 90, 180, 240], 6)
    assert np.allclose(given, [0, 0, 1, 1.5, 3], atol=0.05)  # a row is returned when the one before it is due


def test_a_recording_is_replayed_in_rows_per_second():
    clock = Clock()
    given = replayed(Pace("4/s", clock), clock, [float("nan")] * 9, 2)
    assert np.allclose(given, np.arange(8) / 4, atol=0.02)


def test_a_long_gap_is_not_waited_for():
    clock = Clock()
    given = replayed(Pace("1x", clock), clock, [0.0, 1, 90_000, 90_001], 6)
    assert len(given) == 4
    assert given[-1] < 5


def test_steps_that_are_always_long_are_waited_for_and_a_gap_among_them_is_not():
    clock = Clock()
    times = [0.0, 60, 120, 180, 90_000, 90_060]
    given = replayed(Pace("1x", clock), clock, times, 400, tick=0.1)
    assert np.allclose(given, [0, 0, 2, 62, 122, 124], atol=0.5)  # the usual step is known only after two steps


def test_a_pace_reports_when_the_next_row_is_due():
    clock = Clock()
    for speed, seconds in (("0.1/s", 10.0), ("2x", 30.0), ("max", 0.0)):
        pace = Pace(speed, clock)
        for moment in (0.0, 60.0)[: 1 + (speed == "2x")]:
            pace.took(1, moment)
        assert pace.wait() == pytest.approx(seconds)


def test_a_paused_replay_gives_nothing_and_then_continues():
    clock = Clock()
    pace = Pace("10/s", clock)
    pace.took(pace.due(5), 0.0)
    pace.pause(True)
    clock.now += 100
    assert pace.due(5) == 0
    pace.pause(False)
    assert pace.due(256) == 1  # not the thousand rows of the pause


@pytest.mark.parametrize("speed", ["", "0x", "-1x", "fast", "1e9x", "5", "nanx", "1x2"])
def test_an_unknown_speed_is_rejected(speed):
    with pytest.raises(ValueError, match=r"speed: expected 1x, 60x, 20/s or max"):
        Pace(speed)


def test_a_pace_by_timestamps_needs_timestamps():
    with pytest.raises(ValueError, match="needs timestamps"):
        Pace("2x").took(1, float("nan"))


@pytest.mark.parametrize("blocks", [[1] * 40, [7, 13, 1, 200, 3], [1000]])
def test_a_ring_keeps_the_last_rows(blocks):
    ring, everything = Ring(2, capacity=30), []
    for size in blocks:
        rows = [[float(len(everything) + i), float(i % 5)] for i in range(size)]
        everything += rows
        ring.append(np.array(rows))
        kept = everything[-30:]
        assert ring.last(len(ring)).tolist() == kept
        low, high = kept[0][0] + 3, kept[-1][0] - 1
        first, seen = ring.window(low, high)
        assert seen.tolist() == [row for row in kept if low <= row[0] <= high]
        if len(seen):
            assert first == seen[0, 0]


def test_thinning_out_keeps_the_extremes_of_every_bucket_and_is_stable_as_rows_arrive():
    rng = np.random.default_rng(0)
    rows = np.column_stack([np.arange(5000.0), rng.normal(size=5000), rng.normal(size=5000), rng.random(5000)])
    rows[100:110, 1] = np.nan
    bucket, thin = thin_out(rows[37:], 37, 600, low=[2], high=[3])
    assert len(thin) <= 602
    for place in range(0, len(thin), 2):
        begin = max(37, (int(thin[place, 0]) // bucket) * bucket)
        members = rows[begin : (begin // bucket + 1) * bucket]
        assert thin[place : place + 2, 0].tolist() == [members[0, 0], members[-1, 0]]
        assert thin[place : place + 2, 1].tolist() == [np.nanmin(members[:, 1]), np.nanmax(members[:, 1])]
        assert set(thin[place : place + 2, 2]) == {members[:, 2].min()}
        assert set(thin[place : place + 2, 3]) == {members[:, 3].max()}
    same, shifted = thin_out(rows[64:], 64, 600, low=[2], high=[3])
    assert same == bucket
    assert np.array_equal(thin[-100:], shifted[-100:], equal_nan=True)


def test_a_few_rows_are_not_thinned_out():
    rows = np.random.default_rng(0).normal(size=(300, 3))
    assert thin_out(rows, 5, 300)[0] == 1
    assert thin_out(rows, 5, 300)[1] is rows
