"""The default engine of a stream: bounds, features, blobs, changed options, and feeds that once broke it."""

import json
import math
import threading
import zlib
from http.server import BaseHTTPRequestHandler, HTTPServer
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from feeds import sines

from ptncn.checkpoint import CheckpointError
from ptncn.streaming import Stream
from ptncn.streaming.options import LearnerSpec
from ptncn.streaming.session import Alerts
from ptncn.streaming.storage import HEAD, MAGIC, VERSION, BlobError, pack, unpack

TINY = LearnerSpec(hidden=(4,))


def all_of(stream, most=256):
    outs = []
    while (results := stream.read(most)) is not None:
        outs += results
    return outs


def test_predictions_do_not_depend_on_the_row_they_are_scored_on():
    rows = sines(120)
    changed = rows.copy()
    changed[60:] += 7
    one, other = (all_of(Stream(x, network=TINY)) for x in (rows, changed))
    assert [out.prediction for out in one[:61]] == [out.prediction for out in other[:61]]
    assert one[61].prediction != other[61].prediction


def test_the_prediction_of_a_row_is_the_forecast_of_the_previous_row():
    outs = all_of(Stream(sines(200), network=TINY, horizon=2))
    for now, after in pairwise(outs[50:]):
        assert now.forecast[0] == pytest.approx(after.prediction)
        assert now.lower[0]["x0"] <= now.upper[0]["x0"]


@pytest.mark.parametrize("value", [0.0, 3.7, -1e9])
def test_a_constant_stream_gives_no_alarm(value):
    outs = all_of(Stream([[value]] * 1500, network=TINY))
    assert not any(out.alarm for out in outs)
    assert {out.surprise for out in outs[1:]} == {0.0}
    assert {out.anomaly for out in outs[40:]} == {0.0}


@pytest.mark.parametrize(
    ("events", "alarms"),
    [([(1200, 1)], [1200]), ([(1200, 10)], [1200]), ([(1200, 1800)], [1200]), ([(800, 1), (1600, 1)], [800, 1600])],
    ids=["one spike", "a plateau", "a step", "two spikes"],
)
def test_each_event_of_a_constant_stream_gives_exactly_one_alarm(events, alarms):
    rows = np.full((3000, 1), 7.0)
    for at, count in events:
        rows[at : at + count] = 50.0
    outs = all_of(Stream(rows, network=TINY, alarm_rate=0.01))
    assert [t for t, out in enumerate(outs) if out.alarm] == alarms
    assert all(out.anomaly < 0.3 for t, out in enumerate(outs[40:], 40) if t not in alarms)


def test_a_missing_expected_change_is_an_event():
    rows = np.where(np.arange(3000) % 288 < 144, 80.0, 20.0)[:, None]
    rows[2304:2448] = 20.0
    outs = all_of(Stream(rows, network=TINY))
    assert outs[2304].alarm
    assert outs[2304].anomaly > 0.6


def test_a_stream_that_is_mostly_zero_has_finite_scores_and_few_alarms():
    rows = np.zeros((4000, 1))
    rows[np.random.default_rng(0).random(4000) < 0.02] = 5.0
    outs = all_of(Stream(rows, network=TINY, alarm_rate=0.01))
    assert max(out.surprise for out in outs[1:]) < 1e9
    assert np.mean([out.alarm for out in outs[500:]]) < 0.015


def test_known_features_and_their_future_values_improve_forecasts():
    rng = np.random.default_rng(0)
    price = rng.normal(size=800)
    rows = [{"load": 20 + 3 * p + 0.1 * rng.normal(), "price": p} for p in price]
    plain = all_of(Stream([{"load": row["load"]} for row in rows], network=TINY))
    stream = Stream(rows, network=TINY, targets=["load"], features=["price"])
    outs = all_of(stream)

    def error(results):
        return np.mean([abs(out.prediction["load"] - out.observed["load"]) for out in results[400:]])

    assert error(outs) < 0.3 * error(plain)
    high, low = (stream.forecast(1, features=[{"price": p}]).rows[0]["load"] for p in (1.5, -1.5))
    assert high - low == pytest.approx(9.0, rel=0.25)


def test_known_features_move_every_step_ahead():
    rng, ahead = np.random.default_rng(0), 12
    promoted = np.repeat(rng.random(120) < 0.3, 6).astype(float)
    sold = 20 + 3 * np.sin(np.arange(720) / 4) + 10 * promoted + 0.3 * rng.normal(size=720)
    rows = [{"sold": y, "promoted": x} for y, x in zip(sold[:-ahead], promoted[:-ahead], strict=True)]
    stream = Stream(rows, network=TINY, targets=["sold"], features=["promoted"], horizon=ahead)
    errors = []
    for out in stream:
        at = out.index + 1
        if at > 400 and at % 11 == 0:
            plan = [{"promoted": x} for x in promoted[at : at + ahead]]
            forecasts = [stream.forecast(ahead, features=known).rows for known in (plan, None)]
            errors.append(
                [[abs(step["sold"] - y) for step, y in zip(each, sold[at:], strict=False)] for each in forecasts]
            )
    with_plan, without = np.mean(errors, axis=0)
    assert (with_plan[3:] < 0.8 * without[3:]).all()


def test_the_cause_is_the_most_surprising_target():
    rows = sines(600, columns=3)
    rows[500, 1] += 8
    out = all_of(Stream(rows, network=TINY))[500]
    assert out.cause == "x1"
    assert out.alarm
    assert out.surprises["x1"] > 100 * out.surprises["x0"]


@pytest.mark.parametrize("learner", [None, LearnerSpec("lstm-uoro", hidden=(4,))])
@pytest.mark.parametrize("at", [1, 50, 150])
def test_a_blob_continues_bit_for_bit(learner, at):
    rows = sines(200)
    rows[120] = np.nan
    first = Stream(learner=learner, network=TINY, horizon=2)
    first.feed(rows[:at])
    second = Stream.from_bytes(first.to_bytes())
    assert str(first.feed(rows[at:])) == str(second.feed(rows[at:]))  # as text: NaN is not equal to itself
    assert first.to_bytes() == second.to_bytes()


@pytest.mark.parametrize("horizon", [2, 4])
def test_a_state_from_before_misses_were_excused_is_read(horizon):
    rows = sines(400)
    first = Stream(network=TINY, horizon=2)
    first.feed(rows[:300])
    tree = unpack(first.to_bytes())
    engine = tree["streams"]["engine"]
    engine["forecaster"] = np.ascontiguousarray(engine["forecaster"][:, : -2 * rows.shape[1]])
    second = Stream.from_bytes(pack(tree), horizon=horizon)
    assert np.isfinite([list(out.upper[-1].values()) for out in second.feed(rows[300:])]).all()
    if horizon == 2:
        assert str(Stream.from_bytes(pack(tree)).feed(rows[300:])) == str(first.feed(rows[300:]))


def test_an_invalid_or_altered_blob_is_rejected():
    blob = pack({"a": np.arange(4.0)})
    assert unpack(blob)["a"].tolist() == [0, 1, 2, 3]
    for broken, message in (
        (b"", "not the state"),
        (blob[:-1], "checksum"),
        (blob[:12] + b"\x09\0" + blob[14:], "version 9"),
    ):
        with pytest.raises(BlobError, match=message):
            unpack(broken)


def forged(text: bytes) -> bytes:
    """A blob with a valid checksum and any content."""
    return HEAD.pack(MAGIC, VERSION, zlib.crc32(text, zlib.crc32(len(text).to_bytes(8, "little"))), len(text)) + text


@pytest.mark.parametrize(
    "text",
    [
        b"[" * 100_000,
        b'{"l":' * 50_000,
        b'{"a":["f8",[1000000000000],0]}',
        b'{"a":["O",[1],0]}',
        b'{"d":7}',
        b"3",
    ],
    ids=["brackets", "deep", "huge", "objects", "no pairs", "number"],
)
def test_a_forged_blob_gives_a_one_line_error(tmp_path, text):
    (tmp_path / "c").write_bytes(forged(text))
    for load in (lambda: Stream.from_bytes(forged(text)), lambda: Stream().load(tmp_path / "c")):
        with pytest.raises((BlobError, CheckpointError)) as caught:
            load()
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "path", ["options.slots", "streams", "streams.engine.forecaster", "history.pairs", "learner.kind", "keys"]
)
def test_a_tree_with_other_content_is_rejected(path):
    stream = Stream(network=TINY)
    stream.feed(sines(40))
    tree = unpack(stream.to_bytes())
    *way, last = path.split(".")
    for value in (None, {}):
        within = tree
        for name in way:
            within = within[name]
        within[last] = value
        with pytest.raises(BlobError):
            Stream.from_bytes(pack(tree))


WRONG_VALUES: dict[str, list[Any]] = {
    "options.missing": [None, 3, [{}], [1.5]],
    "options.learn": ["x", 1.5, None],
    "options.key": [3, [], {}],
    "options.horizon": ["3", 1.5, True],
    "stats.observations": ["x", None, -1, math.nan],
    "stats.error": ["x", None, {}],
    "columns.keys": [[1.5, "x"], 3],
    "columns.names": [[None], "xy", 3],
    "columns.key": [3, {}],
    "columns.slots": ["x", None],
    "timestamp": [[], {}],
    "keys": [[3], [[]]],
    "learner.options.xi": [-1, "x", None],
    "learner.options.seed": ["x", 2**70, None],
}


@pytest.mark.parametrize(
    ("path", "value"), [(path, value) for path, values in WRONG_VALUES.items() for value in values]
)
def test_a_tree_with_a_value_of_another_type_is_rejected_when_it_is_read(path, value):
    """Otherwise the next row would fail with a misleading error."""
    stream = Stream(network=TINY)
    stream.feed(sines(40))
    tree = unpack(stream.to_bytes())
    *way, last = path.split(".")
    within = tree
    for name in way:
        within = within[name]
    assert last in within
    within[last] = value
    with pytest.raises(BlobError) as caught:
        Stream.from_bytes(pack(tree))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("value", [None, "x", {}, -1])
@pytest.mark.parametrize("field", ["surprise.count", "calibrator.seen", "calibrator.echo", "state.steps"])
def test_a_cell_with_a_count_of_another_type_is_rejected(field, value):
    stream = Stream(learner=TINY)
    stream.feed(sines(40))
    tree = unpack(stream.to_bytes())
    part, name = field.split(".")
    tree["streams"]["engine"]["cells"][0][part][name] = value
    with pytest.raises(BlobError):
        Stream.from_bytes(pack(tree))


def test_statistics_in_a_blob_set_no_other_attribute():
    stream = Stream(network=TINY)
    stream.feed(sines(40))
    tree = unpack(stream.to_bytes())
    tree["stats"]["score"] = 3
    assert Stream.from_bytes(pack(tree)).feed(sines(5))


@pytest.mark.parametrize("change", [{"horizon": 4}, {"level": 0.5}, {"alarm_rate": 0.05}, {"alarm_per": "row"}])
def test_horizon_level_and_alarm_rate_may_change(change):
    rows = sines(500)
    first = Stream(network=TINY, horizon=2)
    first.feed(rows[:400])
    second = Stream.from_bytes(first.to_bytes(), **change)
    outs = second.feed(rows[400:])
    assert len(outs[-1].forecast) == change.get("horizon", 2)
    errors = [abs(out.prediction["x0"] - out.observed["x0"]) for out in outs]
    assert np.mean(errors) < 0.15  # it has not forgotten


class TestAlerts:
    def results(self):
        rows = sines(400, columns=1)
        rows[350] += 20
        return Stream(rows, network=TINY).read(400)

    def test_a_web_hook_gets_each_alarm(self):
        bodies = []

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                bodies.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                self.send_response(204)
                self.end_headers()

            def log_message(self, *args):
                pass

        with HTTPServer(("127.0.0.1", 0), Handler) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            alerts, results = Alerts(webhook=f"http://127.0.0.1:{server.server_port}/"), self.results()
            alerts.send(results)
            alerts.close()
            server.shutdown()
        assert 350 in [body["index"] for body in bodies]
        assert len(bodies) == results.steps.alarm.sum()

    def test_a_program_gets_each_alarm_and_a_failure_is_reported(self, tmp_path):
        notices = []
        for command in (f"tee -a {tmp_path / 'alarms'}", "false"):
            alerts = Alerts(command=command, report=notices.append)
            alerts.send(self.results())
            alerts.close()
        assert '"index": 350' in (tmp_path / "alarms").read_text()
        assert "could not be delivered" in notices[0]
