"""The false-alarm rate is the requested one."""

import numpy as np
import pytest

from ptncn.streaming import Calibrator

SHAPES = {
    "exponential": lambda r, n: r.exponential(size=n),
    "chi-square": lambda r, n: r.chisquare(8, size=n),
    "heavy-tailed": lambda r, n: r.standard_t(3, size=n) ** 2,
    "wild": lambda r, n: np.exp(3 * r.standard_normal(n)),
}


def alarms(surprises, rate):
    calibrator = Calibrator(rate)
    return np.array([calibrator.is_alarm(calibrator.update(surprise)) for surprise in surprises.tolist()])


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("rate", "length"), [(0.001, 60_000), (0.01, 20_000), (0.05, 10_000)])
def test_false_alarms_come_at_the_requested_rate_within_a_factor_of_two(shape, rate, length):
    surprises = SHAPES[shape](np.random.default_rng(1), length)
    measured = alarms(surprises, rate)[int(2 / rate) :].mean()
    assert rate / 2 < measured < rate * 2


def test_there_is_no_alarm_before_it_can_be_significant():
    assert not alarms(np.arange(99.0), 0.01).any()


def test_anomalies_neither_hide_the_next_ones_nor_raise_the_rate():
    rng = np.random.default_rng(2)
    surprises = rng.exponential(size=40_000)
    planted = np.zeros(40_000, dtype=bool)
    planted[2000::150] = True  # two in three hundred, at a rate of one in a hundred
    surprises[planted] = 100
    raised = alarms(surprises, 0.01)
    assert raised[planted].mean() > 0.95
    assert 0.005 < raised[~planted][3000:].mean() < 0.02


def test_the_rows_after_an_anomaly_do_not_make_alarms_rare():
    rng = np.random.default_rng(5)
    surprises = rng.gamma(2, size=60_000)
    planted = np.arange(2000, 60_000, 500)
    surprises[planted] = 60 * rng.uniform(0.5, 2, size=len(planted))
    for after in (1, 2, 3):
        surprises[planted + after] *= 3
    ordinary = np.ones(60_000, dtype=bool)
    ordinary[:5000] = False
    ordinary[(planted[:, None] + np.arange(6)).ravel()] = False
    raised = alarms(surprises, 0.001)
    assert raised[planted].mean() > 0.95
    assert 0.0006 < raised[ordinary].mean() < 0.0016


def test_the_surprises_of_an_untrained_learner_are_soon_forgotten():
    surprises = np.random.default_rng(6).exponential(size=1200)
    surprises[:200] *= 1000
    assert 0.02 < alarms(surprises, 0.05)[500:].mean() < 0.1


def test_a_lasting_rise_of_surprise_becomes_normal():
    rng = np.random.default_rng(3)
    raised = alarms(np.concatenate([rng.exponential(size=5000), 50 * rng.exponential(size=10_000)]), 0.01)
    assert raised[5000:5020].mean() > 0.5
    assert raised[8000:].mean() < 0.02


def test_equal_surprises_raise_no_alarm():
    assert not alarms(np.zeros(5000), 0.01).any()


def test_a_saved_calibrator_continues_identically():
    surprises = np.random.default_rng(4).standard_t(2, size=5000) ** 2
    one = Calibrator(0.01)
    for surprise in surprises[:3000].tolist():
        one.update(surprise)
    other = Calibrator(0.01)
    other.load_tree(one.tree())
    assert [one.update(s) for s in surprises[3000:].tolist()] == [other.update(s) for s in surprises[3000:].tolist()]


@pytest.mark.parametrize("rate", [0, 1, -0.1, 2])
def test_a_bad_rate_is_rejected(rate):
    with pytest.raises(ValueError, match="alarm_rate"):
        Calibrator(rate)


def test_a_rate_too_low_for_the_window_is_rejected():
    with pytest.raises(ValueError, match="too rare"):
        Calibrator(1e-5)
