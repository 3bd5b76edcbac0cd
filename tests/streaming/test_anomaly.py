"""Anomaly scores against closed forms, the two implementations against each other, and alarms at the chosen rate."""

from __future__ import annotations

import numpy as np
import pytest

from ptncn.streaming.anomaly import Anomaly, AnomalySetting, Scores, load
from ptncn.streaming.anomaly_reference import nines


def score(values: np.ndarray, expected: np.ndarray | float = 0.0, **options: float) -> Scores:
    """One stream of one column."""
    values = np.ascontiguousarray(values, dtype=float).reshape(-1, 1)
    expected = np.ascontiguousarray(np.broadcast_to(np.reshape(expected, (-1, 1)), values.shape), dtype=float)
    scorer = Anomaly(AnomalySetting(**options))
    return scorer.observe(values, expected, rows=np.zeros(len(values), dtype=np.int64))


def test_nines_are_those_of_an_exponential_distribution():
    setting, tail = AnomalySetting(), np.zeros(4)
    for x in np.random.default_rng(0).exponential(size=60_000):
        nines(tail, np.array(x), 0.01, setting)
    for probability in (1e-2, 1e-3, 1e-5):
        measured = nines(tail.copy(), np.array(-np.log(probability)), 0.01, setting)
        assert measured == pytest.approx(-np.log10(probability), rel=0.15)


@pytest.mark.skipif(load() is None, reason="there is no compiler")
@pytest.mark.parametrize("events", [0, 1])
def test_the_kernel_and_the_reference_give_the_same_numbers(events):
    setting = AnomalySetting(columns=3, rate=0.05, events=events)
    one, other = Anomaly(setting, 2), Anomaly(setting, 2)
    other._library = None
    rng = np.random.default_rng(1)
    values = rng.standard_t(2, size=(600, 3))
    values[rng.random(values.shape) < 0.05] = np.nan
    values[:, 2] = np.where(rng.random(600) < 0.95, 0.0, values[:, 2])
    expected, rows = 0.3 * rng.normal(size=(600, 3)), rng.integers(2, size=600)
    expected[:5] = np.nan
    result, reference = (each.observe(values, expected, rows=rows) for each in (one, other))
    for ours, theirs in zip(result, reference, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(one.state, other.state, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("value", [0.0, 7.5, -1e12])
def test_a_constant_stream_is_never_unusual(value):
    scores = score(np.full(5000, value), value)
    assert not scores.unusual.any()
    assert not scores.alarm.any()


def test_the_score_does_not_saturate_and_stays_below_one():
    rng = np.random.default_rng(2)
    scores = []
    for size in (10.0, 100.0, 1e4, 1e8):
        values = rng.normal(size=1001)
        values[-1] = size
        scores.append(score(values).anomaly[-1])
    assert scores == sorted(scores)
    assert scores[0] > 0.5
    assert scores[-1] < 1


def test_an_event_has_one_peak_and_one_alarm():
    values = np.random.default_rng(3).normal(size=2000)
    values[1500:1540] += 12.0
    scores = score(values, rate=0.001)
    assert scores.anomaly[1500] > 0.6
    assert (scores.anomaly[1510:1640] > 0.3).sum() == 0
    assert scores.alarm[1500:1600].sum() == 1
    assert scores.severity[1500] > 4


@pytest.mark.parametrize("share", [0.05, 0.5, 50.0])
def test_the_rarity_of_a_value_outside_the_range_grows_with_rows_and_distance(share):
    values = np.arange(2001.0) % 2  # from 0 to 1, as expected
    values[-1] = 1.0 + share
    nines = np.log10(2001 * share / 0.05)
    for last in (values[-1], 1.0 - values[-1]):
        values[-1] = last
        unusual = score(values, values, level_weight=0.0).unusual[-1]
        assert unusual == pytest.approx(nines / (nines + 3))


def test_recurring_events_of_the_same_kind_count_for_less():
    values, jumps = np.arange(6001.0) % 2, np.arange(600, 6000, 600)
    values[jumps] = 1.5 ** np.arange(1, len(jumps) + 1)  # each leaves the range by half of it
    options = {
        "level_weight": 0.0,
        "quiet_weight": 0.0,
        "bulk": 600.0,
    }  # the last one also limits the nines of a record
    scores = score(values, values, **options)
    np.testing.assert_allclose(scores.unusual[jumps], np.log10(6000) / (np.log10(6000) + 3), rtol=1e-2)
    before, faded = 0.0, (1 - 1 / 600) ** 600
    for jump in jumps:
        nines = np.log10(6000) - np.log10(1 + before / 2)
        assert scores.anomaly[jump] == pytest.approx(nines / (nines + 3), rel=1e-2)
        before = (before + 1) * faded


def test_an_event_of_another_kind_counts_in_full():
    rng = np.random.default_rng(9)
    values = rng.normal(size=6000)
    values[1000:5000:200] += 9.0  # points of the same height
    repeated = score(values).anomaly[4800]
    values[4800] = 0.0
    values[4800:4830] = values[4799]  # then nothing moves
    assert repeated < 0.5 < score(values).anomaly[4800:4840].max()


def test_alarms_follow_the_score():
    """A row with an alarm is hardly less unusual than any nearby row without one."""
    rng = np.random.default_rng(10)
    values = rng.standard_t(3, size=20_000)
    scores = score(values, rate=0.01)
    alarms = np.flatnonzero(scores.alarm[1000:]) + 1000
    covered = np.zeros(len(values), dtype=bool)
    for alarm in alarms:
        covered[alarm : alarm + 21] = True
    other = np.where(covered, 0.0, scores.anomaly)
    worse = sum(other[alarm - 50 : alarm + 51].max() > scores.anomaly[alarm] + 0.05 for alarm in alarms)
    assert worse < 0.2 * len(alarms)


@pytest.mark.parametrize("events", [0, 1])
@pytest.mark.parametrize(
    "stream",
    [
        lambda rng: rng.normal(size=20_000),
        lambda rng: rng.standard_t(2, size=20_000),
        lambda rng: np.where(rng.random(20_000) < 0.03, rng.gamma(2, size=20_000), 0.0),
        lambda rng: rng.poisson(3, size=20_000),
        lambda rng: np.where(np.arange(20_000) < 10_000, 1.0, 5.0) * rng.normal(size=20_000),
    ],
    ids=["normal", "heavy tails", "mostly zero", "counts", "switch"],
)
def test_alarms_come_at_the_requested_rate(stream, events):
    alarms = score(stream(np.random.default_rng(4)), rate=0.01, events=events).alarm
    assert 0.01 / 1.5 <= alarms.mean() <= 0.01 * 1.5


def test_streams_with_very_different_tails_have_comparable_scores():
    rng = np.random.default_rng(5)
    quiet, spiky = score(rng.normal(size=20_000)), score(rng.standard_t(2, size=20_000))
    shares = [(each.unusual[1000:] > 0.5).mean() for each in (quiet, spiky)]
    assert all(1e-4 < share < 1e-2 for share in shares)


def test_more_columns_do_not_cause_more_rare_rows():
    noise = np.random.default_rng(7).normal(size=(20_000, 8))
    scorer = Anomaly(AnomalySetting(columns=8))
    together = scorer.observe(noise, np.zeros_like(noise), rows=np.zeros(len(noise), dtype=np.int64)).unusual
    alone = [(score(column).unusual[1000:] > 0.5).mean() for column in noise.T]
    assert (together[1000:] > 0.5).mean() < 2 * np.mean(alone)


def test_alarms_are_raised_for_each_row_of_an_event_on_request():
    values = np.random.default_rng(8).normal(size=2000)
    values[1500:1510] += 12.0
    rows, events = (score(values, rate=0.05, events=events).alarm[1500:1510].sum() for events in (0, 1))
    assert events == 1
    assert rows >= 9  # as far as the rate allows


def test_a_saved_stream_continues_with_the_same_numbers():
    values = np.random.default_rng(6).normal(size=(300, 1))
    expected, rows = np.zeros((300, 1)), np.zeros(300, dtype=np.int64)
    whole = Anomaly(AnomalySetting()).observe(values, expected, rows=rows)
    first, bank = Anomaly(AnomalySetting()), Anomaly(AnomalySetting(), 3)
    first.observe(values[:100], expected[:100], rows=rows[:100])
    bank.load_tree(first.tree(0), row=2)
    rest = bank.observe(values[100:], expected[100:], rows=rows[100:] + 2)
    np.testing.assert_array_equal(rest.anomaly, whole.anomaly[100:])


def test_bad_sizes_are_rejected():
    scorer = Anomaly(AnomalySetting(columns=2))
    with pytest.raises(ValueError, match="values: expected contiguous float64"):
        scorer.observe(np.zeros((1, 3)), np.zeros((1, 2)))
    with pytest.raises(ValueError, match="alarm_rate: expected a share"):
        AnomalySetting(rate=1.5)
    with pytest.raises(ValueError, match="state: expected"):
        scorer.load_tree({"state": np.zeros((1, 3))})
    if load() is not None:
        with pytest.raises(ValueError, match="rows: expected numbers from 0 to 0"):
            scorer.observe(np.zeros((1, 2)), np.zeros((1, 2)), rows=np.array([3]))
