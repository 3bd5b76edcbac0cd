"""The page of a stream shows its results and changes none of them."""

import csv
import io
import json
import struct

import numpy as np
import pytest

from ptncn.live import Pace, StreamPage
from ptncn.live import stream as module
from ptncn.live.messages import Visitor, parse
from ptncn.live.track import ALARM, ANOMALY, EACH, ROW, TARGETS, MiddleHalf, Track, X
from ptncn.streaming import Stream
from ptncn.streaming.formats import make_writer
from ptncn.streaming.session import Session


def feed(count, key=None, start="2026-01-01"):
    """A wave with a jump that gives alarms."""
    rng = np.random.default_rng(0)
    times = np.datetime64(start, "s") + 60 * np.arange(count)
    rows = []
    for i, time in enumerate(times):
        jump = 9.0 if i % 150 == 120 else 0.0
        for name in key or [None]:
            row = {"time": str(time), "a": float(np.sin(i / 8) + rng.normal(0, 0.05) + jump), "b": float(i % 5)}
            rows.append(row if name is None else {**row, "device": name, "a": row["a"] - jump * (name == "calm")})
    return rows


def watched(rows, **options):
    """A page that has shown a whole stream, and the blocks of results that it was given."""
    page = StreamPage(Stream(rows, horizon=3, **options), "feed.csv")
    blocks = []
    while (results := page.stream.read(64)) is not None:
        page.observe(results)
        blocks.append(results)
    return page, blocks


def send(page, visitor, kind, value=None):
    page.receive(parse(json.dumps({"type": kind, "value": value}), page.checks), visitor)


def header_of(news):
    (message,) = news
    (length,) = struct.unpack("<I", message[:4])
    return json.loads(message[4 : 4 + length])


def look(page, **view):
    """The header, the rows and the forecasts that a new visitor gets."""
    visitor = Visitor()
    send(page, visitor, "view", {"points": 4000, **view})
    (message,) = page.news(visitor)
    header = header_of([message])
    (length,) = struct.unpack("<I", message[:4])
    numbers = np.frombuffer(message[4 + length :])
    size = header["rows"] * header["columns"]
    fan = numbers[size:].reshape(len(header["targets"]), EACH - 1, header["fan"])
    return header, numbers[:size].reshape(header["columns"], header["rows"]).T, fan


@pytest.fixture(scope="module")
def seen():
    return watched(feed(500))


def test_the_page_shows_observations_predictions_and_scores(seen):
    page, blocks = seen
    header, rows, _ = look(page)
    assert header["targets"] == ["a", "b"]
    assert rows[:, ROW].tolist() == list(range(500))
    assert np.array_equal(np.diff(rows[:, X]), np.full(499, 60.0))
    for column, values in ((0, "observed"), (1, "predicted")):
        expected = np.concatenate([b.observed if values == "observed" else b.steps.predicted for b in blocks])
        assert np.array_equal(rows[:, [TARGETS + column, TARGETS + EACH + column]], expected, equal_nan=True)
    assert np.array_equal(rows[:, ANOMALY], np.concatenate([b.steps.anomaly for b in blocks]), equal_nan=True)
    assert rows[:, ALARM].sum() == page.stream.stats.alarms > 0
    assert header["against_copy"] == pytest.approx(page.stream.stats.against_copy, rel=1e-5)


def test_the_interval_of_a_row_comes_from_the_previous_row(seen):
    page, blocks = seen
    _, rows, _ = look(page)
    lower = np.concatenate([block.steps.lower for block in blocks])
    assert np.array_equal(rows[1:, TARGETS + 2], lower[:-1, 0, 0], equal_nan=True)


def test_the_forecast_is_that_of_the_last_row(seen):
    page, blocks = seen
    header, _, fan = look(page)
    steps = blocks[-1].steps
    assert header["fan"] == 3
    assert header["step"] == 60
    assert np.array_equal(fan.transpose(2, 1, 0)[:, 0], steps.forecast[-1])
    assert np.array_equal(fan.transpose(2, 1, 0)[:, 2], steps.upper[-1])


@pytest.mark.parametrize("block", [1, 7, 256])
def test_the_inner_bounds_cover_the_middle_half_of_the_values(block):
    """Heavy-tailed errors, twice as large above as below; their quartiles are known and independent of the bounds."""
    errors = np.random.default_rng(2).laplace(size=(8192, 1))
    observed = np.where(errors > 0, 2 * errors, errors)
    made = np.tile(np.array([0.0, -3.0, 9.0])[:, None], (8192, 2, 1, 1))  # forecast, lower, upper of two steps
    middle, tail = MiddleHalf(), []
    for start in range(0, 8192, block):
        tail.append(middle.widen(made[:1])[0, :, 3:, 0])
        middle.follow(observed[start : start + block], made[start : start + block])
    assert np.allclose(np.mean(tail[len(tail) // 2 :], axis=0), [-np.log(2), 2 * np.log(2)], atol=0.12)


def test_half_of_the_values_lie_within_the_inner_bounds(seen):
    rows = look(seen[0])[1][200:]
    value, low, high = rows[:, TARGETS], rows[:, TARGETS + 4], rows[:, TARGETS + 5]
    assert 0.4 < ((low <= value) & (value <= high)).mean() < 0.6
    assert (rows[:, TARGETS + 2] <= low).all()
    assert (high <= rows[:, TARGETS + 3]).all()


def test_a_visitor_can_look_back(seen):
    _, everything, _ = look(seen[0])
    header, rows, _ = look(seen[0], start=everything[100, X], end=everything[200, X])
    assert np.array_equal(rows, everything[100:201], equal_nan=True)
    assert header["seen"] == 101
    assert np.array_equal(look(seen[0], last=50)[1], everything[-50:], equal_nan=True)


def test_a_long_stream_is_thinned_out_without_losing_a_peak(seen):
    _, everything, _ = look(seen[0])
    header, rows, _ = look(seen[0], points=50)
    assert len(rows) <= 52
    assert header["bucket"] > 1
    for column in (TARGETS, ANOMALY):
        assert np.nanmax(rows[:, column]) == np.nanmax(everything[:, column])


def test_alarms_are_listed_and_acknowledged_once_for_all():
    page, blocks = watched(feed(500))
    places = [block.first + row for block in blocks for row in np.flatnonzero(block.steps.alarm)]
    header, _, _ = look(page)
    assert [alarm["row"] for alarm in header["alarms"]] == places[::-1]
    assert header["open_alarms"] == len(places)
    jumps = [alarm for alarm in header["alarms"] if alarm["row"] % 150 == 120]
    assert jumps
    assert all(alarm["cause"] == "a" and "had a larger error" in alarm["why"] for alarm in jumps)
    for _ in range(2):  # the second time has no effect
        send(page, Visitor(), "acknowledge", int(places[0]))
        header, _, _ = look(page)
        assert header["open_alarms"] == len(places) - 1
        assert header["alarms"][-1]["acknowledged"]
    send(page, Visitor(), "acknowledge_all")
    assert look(page)[0]["open_alarms"] == 0
    assert page._tracks[""].open_severity == 0


def test_keys_with_the_severest_open_alarms_come_first_and_each_has_its_own_rows():
    page, blocks = watched(feed(400, key=["calm", "wild"]), key="device", targets=["a"])
    header, rows, _ = look(page)
    assert [each["key"] for each in header["keys"]] == ["wild", "calm"]
    keys = np.concatenate([np.array(block.keys) for block in blocks])
    severity = np.concatenate([np.where(block.steps.alarm, block.steps.severity, 0) for block in blocks])
    assert severity[keys == "wild"].sum() > severity[keys == "calm"].sum()
    counts = {name: (severity[keys == name] > 0).sum() for name in ("wild", "calm")}
    assert {each["key"]: each["alarms"] for each in header["keys"]} == counts
    assert header["key"] == "wild"  # shown until a visitor chooses another key
    observed = np.concatenate([block.observed for block in blocks])
    assert rows[:, TARGETS].tolist() == observed[keys == "wild", 0].tolist()
    assert look(page, key="calm")[1][:, TARGETS].tolist() == observed[keys == "calm", 0].tolist()
    assert look(page, key="unknown")[0]["rows"] == 0


def test_many_keys_stay_within_bounds(monkeypatch):
    monkeypatch.setattr(module, "MOST_KEYS", 3)
    page, _ = watched(feed(20, key=[f"k{i}" for i in range(6)]), key="device")
    assert len(page._tracks) == 3


def test_a_key_is_found_by_a_part_of_its_name(monkeypatch):
    page, _ = watched(feed(20, key=["Pump 1", "Pump 2", "fan"]), key="device")
    header, _, _ = look(page, find="pump")
    assert {each["key"] for each in header["keys"]} == {"Pump 1", "Pump 2"}
    assert (header["found"], header["key_count"]) == (2, 3)
    monkeypatch.setattr(module, "LISTED", 1)
    header, _, _ = look(page)
    assert (len(header["keys"]), header["found"]) == (1, 3)


def test_targets_that_do_not_fit_are_named(monkeypatch):
    monkeypatch.setattr(module, "MOST_TARGETS", 1)
    page, _ = watched(feed(20))
    header, _, _ = look(page)
    assert (header["targets"], header["not_drawn"]) == (["a"], ["b"])


class Clock:
    """A clock that a test moves."""

    now = 1000.0

    def monotonic(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(module, "time", clock)
    return clock


def test_visitors_see_when_no_row_arrives(clock):
    page, _ = watched(feed(50))
    visitor = Visitor()
    send(page, visitor, "view", {"points": 100})
    assert header_of(page.news(visitor))["silent"] is None
    clock.now += 1
    assert page.news(visitor) == []  # nothing new
    clock.now += 60
    header = header_of(page.news(visitor))
    assert header["silent"] == pytest.approx(61)
    assert header["rate"] is None
    page.finish()
    clock.now += 1
    page.news(visitor)
    clock.now += 60
    assert page.news(visitor) == []  # the stream has ended, so no row is expected


def test_a_slow_replay_shows_when_the_next_row_is_due(clock):
    page = StreamPage(Stream(feed(50)), "feed.csv", Pace("0.01/s", clock.monotonic))
    page.observe(page.stream.read(1))
    page.pace.took(1, 0.0)
    clock.now += 2
    header = look(page)[0]
    assert header["wait"] == pytest.approx(98)
    assert header["silent"] is None


def test_the_download_has_every_visible_row(seen):
    page, _ = seen
    _, everything, _ = look(page)
    text = "".join(page.download(None, everything[100, X], everything[102, X]))
    header, *rows = csv.reader(io.StringIO(text))
    assert header[:3] == ["at", "row", "anomaly"]
    assert [row[0] for row in rows] == ["2026-01-01T01:40:00", "2026-01-01T01:41:00", "2026-01-01T01:42:00"]
    assert header[TARGETS : TARGETS + 4] == ["a", "a.predicted", "a.lower", "a.upper"]
    assert header[TARGETS + 4 : TARGETS + EACH] == ["a.lower50", "a.upper50"]
    assert [float(row[TARGETS]) for row in rows] == everything[100:103, TARGETS].tolist()
    first = "".join(page.download(None, None, everything[0, X])).splitlines()[1].split(",")
    assert first[ANOMALY] == ""


def test_rows_without_timestamps_are_numbered():
    page, _ = watched([[float(i % 7)] for i in range(50)])
    header, rows, _ = look(page)
    assert not header["timed"]
    assert rows[:, X].tolist() == list(range(50))


def test_rows_out_of_order_do_not_disorder_the_page():
    rows = feed(60)
    rows[30], rows[40] = rows[40], rows[30]
    page, _ = watched(rows)
    assert (np.diff(look(page)[1][:, X]) >= 0).all()


def test_a_replay_gives_the_results_of_the_stream(seen):
    page = StreamPage(Stream(feed(500), horizon=3), "feed.csv", Pace("max"))
    page.replay()
    assert page.ended
    assert page.problem is None
    ours, theirs = look(page)[1], look(seen[0])[1]
    per_block = {5, *(TARGETS + EACH * target + part for target in (0, 1) for part in (4, 5))}  # updated once per block
    columns = [column for column in range(theirs.shape[1]) if column not in per_block]
    assert np.array_equal(ours[:, columns], theirs[:, columns], equal_nan=True)


def test_a_replay_that_fails_says_why():
    page = StreamPage(Stream([[1.0], ["x", "y"]]), "feed.csv", Pace("max"))
    page.replay()
    assert "row" in page.problem or "column" in page.problem


def test_visitors_change_the_speed_of_a_replay_and_pause_it():
    page = StreamPage(Stream(feed(50)), "feed.csv", Pace("max"))
    send(page, Visitor(), "pause", True)
    send(page, Visitor(), "speed", "10/s")
    assert page.pace.paused
    assert page.pace.due(99) == 0
    with pytest.raises(ValueError, match="speed: expected"):
        send(page, Visitor(), "speed", "warp")
    assert page.pace.speed == "10/s"


def test_without_timestamps_only_speeds_in_rows_can_be_chosen():
    page = StreamPage(Stream([[float(i % 9)] for i in range(50)]), "feed.csv", Pace("max"))
    page.replay()
    for speed in ("10/s", "max"):
        send(page, Visitor(), "speed", speed)
        assert page.pace.speed == speed
    with pytest.raises(ValueError, match="60x needs timestamps"):
        send(page, Visitor(), "speed", "60x")


def test_visitors_cannot_delay_a_running_stream():
    page = StreamPage(Stream(feed(50)), "feed.csv")
    for kind in ("pause", "speed"):
        with pytest.raises(ValueError, match="unknown message"):
            send(page, Visitor(), kind, True)


def test_the_output_of_a_stream_is_the_same_bytes_with_and_without_the_page(tmp_path):
    def run(name, with_page):
        session = Session(Stream(feed(600), horizon=2), make_writer("csv", None), out=str(tmp_path / name))
        if with_page:
            page = StreamPage(session.stream, "feed.csv")
            visitor = Visitor()
            send(page, visitor, "view", {"points": 100})

            def watch(results):
                page.observe(results)
                page.news(visitor)

            session.watch = watch
        session.run()
        return (tmp_path / name).read_bytes()

    assert run("with", True) == run("without", False)


NOISE = np.random.default_rng(0).normal(0, 0.1, 600)


@pytest.mark.parametrize(
    ("observed", "expected", "words"),
    [
        (
            np.append(NOISE, 3.0),
            np.zeros(601),
            "observed 3, expected 0; none of the 600 rows before had a larger error",
        ),
        (np.append(NOISE, 3.0), np.append(NOISE, 3.0), "observed 3; none of the 600 rows before had a higher value"),
        (np.append(NOISE, -3.0), np.append(NOISE, -3.0), "observed -3; none of the 600 rows before had a lower value"),
        (np.append(NOISE, [0.3, -0.3] * 5), np.zeros(610), "the error of the last 10 rows is 0.3 on average"),
        (np.append(NOISE, [0.2] * 60), np.append(NOISE, [0.2] * 60), "the mean of the last 40 rows is 0.2"),
        (np.append(NOISE, [0.0] * 21), np.append(NOISE, [0.0] * 21), "the last 20 rows hardly moved"),
    ],
)
def test_an_alarm_is_explained_by_what_stands_out(observed, expected, words):
    track = Track(2, 1000)
    table = np.zeros((len(observed), TARGETS + 2 * EACH))
    table[:, TARGETS] = table[:, TARGETS + 1] = np.arange(len(observed)) % 7  # a target without surprises
    table[:, TARGETS + EACH], table[:, TARGETS + EACH + 1] = observed, expected
    table = np.concatenate([table, table[:5]])
    table[:, X] = np.arange(len(table))
    track.ring.append(table)
    target, explanation = track.explain(5)
    assert target == 1
    assert explanation.startswith(words)


def test_an_ordinary_row_has_no_explanation():
    track = Track(1, 1000)
    track.ring.append(np.zeros((100, TARGETS + EACH)))
    assert track.explain(0) is None
