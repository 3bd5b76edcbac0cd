"""Streams: predictions without lookahead, missing values, and alarms."""

import functools
from itertools import pairwise

import numpy as np
import pytest
from feeds import COPY, SMALL, sines
from hypothesis import given, settings
from hypothesis import strategies as st

from ptncn.learners import make
from ptncn.streaming import DriftListener, PageHinkley, RowError, Stream, StreamError, default_learner

DEFAULT = default_learner


def predicted(stream):
    """(n, columns), NaN where there was no prediction."""
    return np.array(
        [list((out.prediction or dict.fromkeys(out.observed, np.nan)).values()) for out in stream],
        dtype=float,
    )


class TestPrediction:
    @pytest.mark.parametrize("since", [1, 2, 40])
    @pytest.mark.parametrize("target", ["level", "change", "both"])
    def test_predictions_do_not_depend_on_the_row_they_are_scored_on(self, target, since):
        rows = sines(60)
        changed = rows.copy()
        changed[since:] += 7
        one, other = (predicted(Stream(x, DEFAULT, target=target)) for x in (rows, changed))
        np.testing.assert_array_equal(one[: since + 1], other[: since + 1])
        assert (one[since + 1 :] != other[since + 1 :]).all()

    @pytest.mark.parametrize("target", ["level", "change", "both"])
    def test_a_column_that_was_never_observed_has_no_prediction(self, target):
        rows = sines(20)
        rows[:10, 1] = np.nan
        outs = list(Stream(rows, SMALL, target=target))
        assert outs[10].prediction["x1"] is None
        assert outs[10].prediction["x0"] is not None
        assert outs[12].prediction["x1"] is not None

    def test_the_first_change_has_no_surprise_because_there_is_no_scale(self):
        outs = list(Stream(sines(5), DEFAULT, target="both"))
        assert [out.surprise is None for out in outs] == [True, True, False, False, False]
        assert outs[1].prediction == pytest.approx(outs[0].observed, abs=0.5)

    def test_predictions_are_in_the_units_of_the_source(self):
        rows = sines(1500, noise=0.0)
        for factor, offset in ((1.0, 0.0), (1e6, 3e8), (1e-6, 0.0)):
            error = np.abs(predicted(Stream(rows * factor + offset, DEFAULT)) - (rows * factor + offset))
            assert error[1000:].mean() / factor < 0.1

    def test_copying_the_last_change_and_the_last_level(self):
        copy = functools.partial(make, "copy", input_size=1, output="gaussian")
        ramp = np.arange(50.0)[:, None]
        assert predicted(Stream(ramp, copy(), target="change"))[2:] == pytest.approx(ramp[2:])
        flat = np.full((50, 1), 3.0)
        assert predicted(Stream(flat, copy(), target="level"))[1:] == pytest.approx(flat[1:])

    def test_sines_are_learnt_far_better_than_copying(self):
        stream = Stream(sines(3000, noise=0.02), DEFAULT)
        for _ in stream:
            pass
        assert stream.stats.against_copy < 0.4

    def test_forecasts_feed_predictions_back_and_have_no_side_effects(self):
        rows = sines(1200, noise=0.0)
        plain = predicted(Stream(rows, DEFAULT))
        stream = Stream(rows, DEFAULT, horizon=3)
        outs = list(stream)
        np.testing.assert_array_equal(
            plain[2:], np.array([list(out.prediction.values()) for out in outs[2:]], dtype=float)
        )
        for now, after in pairwise(outs):
            assert now.forecast[0] == pytest.approx(after.prediction)
        ahead = np.array([[list(step.values()) for step in out.forecast] for out in outs[1000:-3]])
        truth = np.stack([rows[1001 + k : 1001 + k + len(ahead)] for k in range(3)], axis=1)
        copied = rows[1000 : 1000 + len(ahead), None]
        assert np.abs(ahead - truth).mean() < 0.5 * np.abs(copied - truth).mean()

    def test_frozen_weights_learn_nothing(self):
        learner = DEFAULT(2)
        before = {name: weight.clone() for name, weight in learner.state_dict().items()}
        for _ in Stream(sines(50), learner, learn=False):
            pass
        assert all((before[name] == weight).all() for name, weight in learner.state_dict().items())

    def test_layer_errors_are_reported_from_the_first_line_on_request(self):
        outs = list(Stream([[None, None], *sines(4)], DEFAULT, layer_errors=True, targets=["x*"]))
        assert [len(out.errors) for out in outs] == [2] * 5
        assert outs[0].errors == (None, None)
        assert not list(Stream(sines(5), DEFAULT))[3].errors


class TestGaps:
    def test_missing_values_are_replaced_by_predictions(self):
        rows = sines(2000, noise=0.0)
        gaps = rows.copy()
        gaps[1500:1508] = np.nan
        outs = list(Stream(gaps, DEFAULT))
        filled = np.array([list(out.prediction.values()) for out in outs[1500:1508]])
        assert np.abs(filled - rows[1500:1508]).max() < 0.35
        assert all(out.surprise is None and out.anomaly is None and not out.alarm for out in outs[1500:1508])
        assert all(set(out.observed.values()) == {None} for out in outs[1500:1508])

    def test_nothing_is_learnt_from_a_row_without_observations(self):
        rows = sines(100)
        stream = Stream(np.concatenate([rows, np.full((1, 2), np.nan)]), DEFAULT)
        for _ in range(100):
            next(stream)
        learner = stream.learner
        before = {name: weight.clone() for name, weight in learner.state_dict().items()}
        next(stream)
        assert all((before[name] == weight).all() for name, weight in learner.state_dict().items())

    def test_the_error_of_a_missing_column_is_zero(self):
        rows = sines(50)
        rows[40, 1] = np.nan
        stream = Stream(rows, make("lstm-tbptt", input_size=2, hidden_size=4, output="gaussian"), target="change")
        for _ in range(40):
            next(stream)
        guess = stream.engine.stream(0).predictor.observe(rows[40], learn=True)
        assert guess.step.errors[0][0, 1] == 0
        assert guess.step.errors[0][0, 0] != 0

    def test_a_stream_may_begin_with_gaps(self):
        outs = list(Stream([[None, None], [None, 1.0], [2.0, 3.0], [2.5, None], [3.0, 4.0]], DEFAULT))
        assert [out.prediction is None for out in outs] == [True, True, False, False, False] or outs[4].prediction
        assert outs[4].surprise is not None

    @given(
        st.lists(
            st.lists(st.one_of(st.none(), st.floats(allow_nan=True, width=32)), min_size=2, max_size=2),
            min_size=1,
            max_size=60,
        )
    )
    @settings(max_examples=30, deadline=None)
    def test_any_numbers_are_either_accepted_or_rejected(self, rows):
        outs = list(Stream([[1.0, 2.0], *rows], SMALL, on_error="mask", horizon=1))
        assert len(outs) == 1 + len(rows)
        assert all(out.surprise is None or out.surprise >= 0 for out in outs)


class TestSources:
    def test_dicts_and_timestamps_and_categories(self):
        rows = [{"time": i, "a": i % 5, "c": "xyz"[i % 3]} for i in range(900)]
        outs = list(Stream(rows, DEFAULT, categorical=["c"], slots=4))
        assert outs[7].timestamp == 7
        assert outs[7].observed == {"a": 2.0, "c": "y"}
        assert np.mean([out.prediction["c"] == out.observed["c"] for out in outs[600:]]) > 0.95

    def test_a_learner_of_another_size_is_rejected(self):
        with pytest.raises(StreamError, match="the learner has 3 inputs; the columns with target='change' need 2"):
            next(Stream(sines(3), make("copy", input_size=3, output="gaussian")))

    def test_an_invalid_row_is_rejected_with_its_number(self):
        stream = Stream([[1.0], "x"], COPY)
        next(stream)
        with pytest.raises(RowError, match="source: line 2: expected an array, a list or a dict, got str"):
            next(stream)

    def test_an_empty_source_is_an_error(self):
        with pytest.raises(StreamError, match="expected at least one observation"):
            next(Stream([], COPY))

    @pytest.mark.parametrize("options", [{"horizon": -1}, {"on_error": "x"}, {"target": "x"}, {"columns_change": "x"}])
    def test_bad_options_are_rejected(self, options):
        with pytest.raises(ValueError, match=next(iter(options))):
            Stream([], COPY, **options)


class TestAlarms:
    @pytest.mark.parametrize(("rate", "length"), [(0.001, 12_000), (0.01, 5000), (0.05, 3000)])
    def test_false_alarms_come_at_the_requested_rate_within_a_factor_of_two(self, rate, length):
        rows = sines(length, noise=0.1, seed=5)
        learner = COPY if length > 10_000 else DEFAULT
        alarms = np.array([out.alarm for out in Stream(rows, learner, alarm_rate=rate)])
        assert rate / 2 < alarms[max(1000, int(1 / rate)) :].mean() < rate * 2

    def test_planted_anomalies_are_found(self):
        rows = sines(8000, columns=3, noise=0.05, seed=1)
        planted = np.zeros(8000, dtype=bool)
        planted[2000::200] = True  # one in two hundred
        rows[planted, 1] += np.where(np.arange(planted.sum()) % 2, 1.0, -1.0)
        alarms = np.array([out.alarm for out in Stream(rows, DEFAULT, alarm_rate=0.01)])
        after = np.roll(planted, 1) | np.roll(planted, 2)  # the return to normal is an anomaly too
        counted = (np.arange(8000) >= 2000) & ~after
        recall = alarms[planted].mean()
        precision = (alarms & planted)[counted].sum() / alarms[counted].sum()
        false = alarms[counted & ~planted].mean()
        assert recall > 0.9
        assert precision > 0.3  # 30 planted among at most 60 × 2 false ones
        assert false < 0.02


class TestDrift:
    def switching(self):
        rows = sines(1600, columns=1)
        rows[1000:, 0] += 3 * np.sin(np.arange(600))
        return rows

    def test_a_change_of_regime_is_detected_and_nothing_before_it(self):
        drifts = [out.index for out in Stream(self.switching(), DEFAULT, drift=PageHinkley()) if out.drift]
        assert drifts
        assert 1000 <= drifts[0] < 1100

    def test_the_step_size_is_raised_for_a_while(self):
        learner = make("lstm-tbptt", input_size=1, hidden_size=4, output="gaussian", window=2, stride=2)
        usual = learner.lr
        listener = DriftListener(PageHinkley(), "raise-lr", factor=3, steps=50)
        raised = []
        for out in Stream(self.switching(), learner, drift=listener):
            if learner.lr != usual:
                raised.append(out.index)
            if out.drift:
                assert learner.lr == pytest.approx(3 * usual)
        assert len(raised) >= 50
        assert raised[0] >= 1000
        assert learner.lr == usual or raised[-1] == 1599

    def test_a_learner_without_a_step_size_is_rejected(self):
        with pytest.raises(StreamError, match="'copy' has no step size"):
            next(Stream(sines(3), COPY, drift=DriftListener(PageHinkley(), "raise-lr")))

    def test_any_detector_works_and_gets_past_surprises_again_on_loading(self, tmp_path):
        class Counter:
            def __init__(self):
                self.seen = []
                self.drift_detected = False

            def update(self, x):
                self.seen.append(x)
                self.drift_detected = len(self.seen) == 30

        one, other = Counter(), Counter()
        stream = Stream(sines(50), COPY, drift=one)
        for _ in stream:
            pass
        stream.save(tmp_path / "c")
        again = Stream(sines(80), COPY, drift=other)
        again.load(tmp_path / "c")
        assert other.seen == one.seen
        assert [out.index for out in again if out.drift] == [62]  # the detector does not get the first 31 surprises

    @pytest.mark.parametrize("options", [{"action": "cry"}, {"factor": 0}, {"steps": 0}])
    def test_bad_actions_are_rejected(self, options):
        with pytest.raises(ValueError, match=next(iter(options)) if "cry" not in options.values() else "cry"):
            DriftListener(PageHinkley(), **options)
