"""Surprise and scales of many streams: the compiled gauge against its reference, and properties of both."""

import numpy as np
import pytest

from ptncn.streaming.gauge import Gauge, load


def feed(gauge, rows, predicted=None):
    """Readings and inputs of (n, slots, C) rows, each predicted by copying the last one."""
    slots = np.arange(rows.shape[1])
    readings, before = [], np.full(rows.shape[1:], np.nan)
    for row in rows:
        expected = before if predicted is None else predicted
        readings.append((*gauge.judge(slots, row.copy(), expected), gauge.scale(slots, row.copy())))
        before = np.where(np.isnan(row), before, row)
    return readings


SURPRISE, PARTS, INPUTS = 0, 3, 4


def make_gauge(slots, targets, compiled):
    gauge = Gauge(targets)
    if not compiled:
        gauge._library = None
    gauge.resize(slots)
    return gauge


@pytest.mark.skipif(load() is None, reason="the kernel is not built")
def test_compiled_and_reference_give_the_same_numbers():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(300, 5, 3)) * [1.0, 1e6, 1e-6] + [0.0, 1e8, 0.0]
    rows[rng.random(rows.shape) < 0.1] = np.nan
    rows[:20, 2, 1] = np.nan
    rows[:, 4] = 7.0
    one, other = make_gauge(5, 3, True), make_gauge(5, 3, False)
    for ours, theirs in zip(feed(one, rows), feed(other, rows), strict=True):
        for left, right in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(left, right, rtol=1e-9, atol=1e-12, equal_nan=True)
    np.testing.assert_allclose(one.state, other.state, rtol=1e-9, equal_nan=True)


@pytest.mark.parametrize("compiled", [True, False])
class TestPromises:
    def test_surprise_is_half_the_sum_of_squared_errors_relative_to_usual_ones(self, compiled):
        gauge = make_gauge(1, 2, compiled)
        rows = np.random.default_rng(1).normal(size=(400, 1, 2)) * [1.0, 50.0]
        surprises = [reading[SURPRISE][0] for reading in feed(gauge, rows, np.zeros((1, 2)))]
        assert np.mean(surprises[100:]) == pytest.approx(1.0, abs=0.25)  # ½ for each of two targets

    def test_a_constant_stream_has_no_surprises(self, compiled):
        readings = feed(make_gauge(1, 1, compiled), np.full((100, 1, 1), 3.7), np.array([[3.7 * (1 + 1e-12)]]))
        assert [reading[SURPRISE][0] for reading in readings[1:]] == [0.0] * 99

    def test_scales_of_a_stream_that_is_mostly_zero_stay_sensible(self, compiled):
        rows = np.zeros((5000, 1, 1))
        rows[::100] = 5.0
        gauge = make_gauge(1, 1, compiled)
        readings = feed(gauge, rows)
        assert all(np.abs(reading[INPUTS]).max() <= 6 for reading in readings[2:])
        surprises = np.array([reading[SURPRISE][0] for reading in readings[1000:]])
        assert surprises.max() < 1e6

    def test_missing_values_have_no_effect(self, compiled):
        rows = np.random.default_rng(2).normal(size=(60, 1, 2))
        rows[50] = np.nan
        rows[51, 0, 1] = np.nan
        gauge = make_gauge(1, 2, compiled)
        readings = feed(gauge, rows)
        assert np.isnan(readings[50][SURPRISE][0])
        assert np.isnan(readings[50][PARTS]).all()
        assert readings[51][SURPRISE][0] == pytest.approx(
            2 * readings[51][PARTS][0, 0]
        )  # the other target is scaled up
        assert readings[51][PARTS][0, 1] == 0

    def test_an_unknown_slot_is_rejected(self, compiled):
        if not compiled:
            pytest.skip("NumPy raises its own IndexError")
        if load() is None:
            pytest.skip("the kernel is not built")
        with pytest.raises(ValueError, match="slots: expected 0 to 0, got"):
            make_gauge(1, 1, True).scale(np.array([3]), np.zeros((1, 1)))


@pytest.mark.skipif(load() is None, reason="the kernel is not built")
@pytest.mark.parametrize("values", [np.zeros((2, 2)), np.zeros((2, 3), dtype=np.float32), np.zeros((3, 2)).T])
def test_arrays_of_another_size_or_type_are_rejected(values):
    gauge, slots = Gauge(3), np.zeros(2, dtype=np.int64)
    gauge.resize(1)
    before = gauge.state.copy()
    with pytest.raises(ValueError, match="values: expected contiguous float64 \\(2, 3\\)"):
        gauge.scale(slots, values)
    with pytest.raises(ValueError, match="slots: expected contiguous int64"):
        gauge.scale(slots.astype(np.int32), np.zeros((2, 3)))
    np.testing.assert_array_equal(gauge.state, before)
