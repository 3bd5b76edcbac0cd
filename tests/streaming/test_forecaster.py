"""The forecaster against closed forms, its two implementations against each other, and its accuracy on streams."""

from __future__ import annotations

import numpy as np
import pytest

from ptncn.streaming.forecaster import EXPERTS, Forecaster, Setting, reference
from ptncn.streaming.forecaster.layout import BLOCKS, differences, find_seasons, fresh, unit_weights, views, width
from ptncn.streaming.forecaster.model import load


def run(forecaster: Forecaster, series: np.ndarray) -> np.ndarray:
    """(3, T, C, H) means and bounds."""
    ahead = forecaster.observe(np.ascontiguousarray(series), rows=np.zeros(len(series), dtype=np.int64))
    return np.array(ahead[1:])


def absolute_errors(series: np.ndarray, means: np.ndarray, horizon: int) -> np.ndarray:
    """(T − horizon, C) of the forecasts for that many steps ahead."""
    return np.abs(series[horizon:] - means[:-horizon, :, horizon - 1])


def test_the_readout_of_each_horizon_is_the_ridge_regression_on_all_pairs_seen():
    setting = Setting(horizon=3, history=64, lags=4, few=1, short_lags=2, forgetting=1.0, clip=1e9)
    forecaster = Forecaster(setting, seasons=(7,))
    series = np.random.default_rng(0).normal(size=(120, 1)).cumsum(0)
    features, scales = [], []
    for t, row in enumerate(series):
        forecaster.observe(row[None])
        features.append(forecaster.part("long.z")[0, t % 3, 0].copy())
        scales.append(forecaster.part("scale")[0, t % 3, 0])
    for horizon in (1, 2, 3):
        origins = np.arange(8, len(series) - horizon)
        Z = np.array(features)[8:]
        targets = (series[origins + horizon, 0] - series[origins, 0]) / np.array(scales)[origins]
        # P has absorbed the features of the last rows too, but the weights have not, since their targets are missing
        known = Z[: len(origins)]
        ridge = np.linalg.solve(known.T @ known + setting.ridge * np.eye(Z.shape[1]), known.T @ targets)
        np.testing.assert_allclose(forecaster.part("long.W")[0, 0, horizon - 1], ridge, rtol=1e-8, atol=1e-10)


def test_nonlinear_units_are_read_out_by_ridge_regression_and_then_fed_their_own_forecasts():
    setting = Setting(horizon=9, history=64, lags=4, short_lags=2, unit_lags=4, units=6, forgetting=1.0, clip=1e9)
    forecaster = Forecaster(setting, seasons=(7,))
    draw = np.random.default_rng(0)
    series = np.sin(np.arange(150) / 3) + 0.1 * draw.normal(size=150)
    for value in series:
        forecaster.observe(np.array([[value]]))
    begun = int(forecaster.part("begun")[0, 0])
    centre, span = (forecaster.part(name)[0, 0] for name in ("centre", "span"))
    biases, *weights = unit_weights(setting)

    def features(values: np.ndarray) -> np.ndarray:
        """The features of windows whose last value is the newest."""
        x = (values[..., ::-1] - centre) / span
        drive = biases + x @ np.array(weights)
        return np.concatenate([np.ones((*x.shape[:-1], 1)), x, drive / np.sqrt(1 + drive**2)], axis=-1)

    Z = features(np.lib.stride_tricks.sliding_window_view(series, 4)[begun - 3 :])
    readouts = []
    for horizon in (1, 2, 3, 4):
        known = Z[:-horizon]
        targets = (series[begun + horizon :] - series[begun:-horizon]) / span
        penalty = setting.unit_ridge * np.eye(Z.shape[1])
        readouts.append(np.linalg.solve(known.T @ known + penalty, known.T @ targets))
    np.testing.assert_allclose(forecaster.part("nonlinear.W")[0, 0], readouts, rtol=1e-4, atol=1e-5)
    ahead = list(series[-4:])
    while len(ahead) < 4 + 9:
        ahead += [ahead[-1] + span * step for step in np.array(readouts) @ features(np.array(ahead[-4:]))]
    kept = [h * (h + 1) // 2 + 149 % (h + 1) for h in range(9)]
    outputs = forecaster.part("outputs")[0, 0, kept, BLOCKS.index("nonlinear")]
    np.testing.assert_allclose(outputs, ahead[4:13], rtol=1e-4)


def test_chaos_is_forecast_by_nonlinear_units():
    series = np.empty((1500, 1))
    series[0] = 0.4
    for t in range(1, len(series)):
        series[t] = 3.9 * series[t - 1] * (1 - series[t - 1])
    errors = [
        absolute_errors(series, run(Forecaster(Setting(horizon=3, units=units)), series)[0], 1)[1000:].mean()
        for units in (0, 64)
    ]
    assert errors[1] < 0.1 * errors[0]


def test_nonlinear_units_restart_after_a_change_of_level():
    t = np.arange(900)
    series = (np.sin(t / 5) + 40.0 * (t >= 400))[:, None]
    forecaster = Forecaster(Setting(units=16))
    run(forecaster, series[:400])
    assert forecaster.part("begun")[0, 0] < 100
    run(forecaster, series[400:])
    assert forecaster.part("begun")[0, 0] >= 400
    assert forecaster.part("span")[0, 0] > 5


@pytest.mark.skipif(load() is None, reason="there is no compiler")
def test_the_kernel_and_the_reference_give_the_same_numbers():
    setting = Setting(columns=2, horizon=5, states=3, extra=1, history=100, unit_lags=3, units=7)
    one, other = Forecaster(setting, 3), Forecaster(setting, 3)
    other._step, other._looks = reference.Step(setting), True
    draw = np.random.default_rng(0)
    t = np.arange(260)[:, None, None]
    series = np.sin(2 * np.pi * t / np.array([12, 17, 24])[:, None] + np.array([0, 1])) + 0.2 * draw.normal(
        size=(260, 3, 2)
    )
    series[draw.random(series.shape) < 0.02] = np.nan
    series[:4, 1] = np.nan
    for row in series:
        rows = np.flatnonzero(draw.random(3) < 0.9)
        states, extra = draw.normal(size=(len(rows), 3)), draw.normal(size=(len(rows), 1))
        expected = other.observe(row[rows], states, extra, rows=rows)
        found = one.observe(row[rows], states, extra, rows=rows)
        for mine, reference_s in zip(found, expected, strict=True):
            np.testing.assert_allclose(mine, reference_s, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(one.state, other.state, rtol=1e-6, atol=1e-9)


def test_streams_of_a_batch_are_independent():
    draw = np.random.default_rng(1)
    series = draw.normal(size=(80, 3, 1)).cumsum(0)
    together = Forecaster(Setting(horizon=2, history=80, lags=32), 3)
    for row in series:
        batch = together.observe(row)
    for stream in range(3):
        alone = run(Forecaster(Setting(horizon=2, history=80, lags=32)), series[:, stream])
        np.testing.assert_array_equal(alone[0, -1], batch.mean[stream])


def test_rows_in_one_call_give_the_same_numbers_as_one_by_one():
    series = np.sin(np.arange(200) / 3)[:, None] + 0.1 * np.random.default_rng(1).normal(size=(200, 1))
    once, often = Forecaster(Setting(history=80, lags=32)), Forecaster(Setting(history=80, lags=32))
    whole = once.observe(series, rows=np.zeros(200, dtype=np.int64))
    for t, row in enumerate(series):
        ahead = often.observe(row[None])
        assert ahead.mean[0] == whole.mean[t]
        np.testing.assert_array_equal(ahead.expected[0], whole.expected[t])
    np.testing.assert_array_equal(whole.expected[1:], whole.mean[:-1, :, 0])
    np.testing.assert_array_equal(once.state, often.state)


def waves_with_gaps(rows: int, columns: int) -> tuple[np.ndarray, np.ndarray]:
    """(rows, columns) noisy cycles of which some values are missing, and (rows, 3) states."""
    draw = np.random.default_rng(3)
    series = 3 + np.sin(np.arange(rows)[:, None] / (2 + np.arange(columns))) + 0.1 * draw.normal(size=(rows, columns))
    series[draw.random(series.shape) < 0.01] = np.nan
    return series, draw.normal(size=(rows, 3))


def test_blocks_of_rows_give_the_numbers_of_the_reference_and_of_single_rows():
    setting = Setting(columns=2, horizon=11, states=3, history=256, units=5)
    series, states = waves_with_gaps(280, 2)
    nothing, rows = np.empty((280, 0)), np.zeros(280, dtype=np.int64)
    blocks, often, other = Forecaster(setting), Forecaster(setting), Forecaster(setting)
    other._step, other._looks = reference.Step(setting), True
    for begin, end in ((0, 1), (1, 90), (90, 150), (150, 280)):
        part = slice(begin, end)
        whole = blocks.observe(series[part], states[part], nothing[part], rows=rows[part])
        each = [often.observe(series[t : t + 1], states[t : t + 1], nothing[:1]) for t in range(begin, end)]
        slow = other.observe(series[part], states[part], nothing[part], rows=rows[part])
        for found, single, expected in zip(whole, map(np.concatenate, zip(*each, strict=True)), slow, strict=True):
            np.testing.assert_array_equal(found, single)
            np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-9)
    np.testing.assert_array_equal(blocks.state, often.state)
    np.testing.assert_allclose(blocks.state, other.state, rtol=1e-5, atol=1e-7)


def test_threads_that_share_the_columns_of_a_stream_change_no_result(monkeypatch):
    monkeypatch.setattr("ptncn.streaming.forecaster.model.COLUMN_SHARE", 100)
    setting = Setting(columns=5, horizon=7, states=3, history=200, units=5)
    series, states = waves_with_gaps(400, 5)
    runs = []
    for threads in ("1", "3"):
        monkeypatch.setenv("OMP_NUM_THREADS", threads)
        forecaster = Forecaster(setting)
        found = forecaster.observe(series, states, np.empty((400, 0)), rows=np.zeros(400, dtype=np.int64))
        runs.append((*found, forecaster.state))
    for alone, together in zip(*runs, strict=True):
        np.testing.assert_array_equal(alone, together)


def test_a_saved_stream_continues_with_the_same_numbers():
    draw = np.random.default_rng(2)
    series = draw.normal(size=(150, 2)).cumsum(0)
    setting = Setting(columns=2, horizon=4, history=80, lags=32)
    whole = Forecaster(setting)
    for row in series[:100]:
        whole.observe(row[None])
    bank = Forecaster(setting, 3)
    bank.load_tree(whole.tree(0), row=1)
    for row in series[100:]:
        expected = whole.observe(row[None])
        found = bank.observe(row[None], rows=np.array([1]))
        for mine, before in zip(found, expected, strict=True):
            np.testing.assert_array_equal(mine, before)


def test_a_season_is_found_and_followed():
    t = np.arange(1200)
    weekly = np.where(t // 24 % 7 >= 5, 0.3, 1.0)
    series = (weekly * (2 + np.sin(2 * np.pi * t / 24)) + 0.05 * np.random.default_rng(3).normal(size=1200))[:, None]
    forecaster = Forecaster(Setting(horizon=24, history=1024))
    means = run(forecaster, series)[0]
    assert 168 in forecaster.part("season")[0, 0]
    error = absolute_errors(series, means, 24)[700:].mean()
    assert error < 1.1 * np.abs(series[168:] - series[:-168])[700:].mean()


def test_a_random_walk_is_forecast_no_worse_than_by_copying():
    series = np.random.default_rng(4).normal(size=(3000, 1)).cumsum(0)
    means = run(Forecaster(Setting(horizon=12)), series)[0]
    for horizon in (1, 12):
        copied = np.abs(series[horizon:] - series[:-horizon])[500:].mean()
        assert absolute_errors(series, means, horizon)[500:].mean() < 1.05 * copied


def test_spikes_do_not_spoil_later_forecasts():
    draw = np.random.default_rng(5)
    clean = np.sin(np.arange(2000) / 3)[:, None] + 0.05 * draw.normal(size=(2000, 1))
    spoilt = clean.copy()
    spoilt[draw.choice(2000, 20, replace=False)] += 50.0
    means = run(Forecaster(Setting()), spoilt)[0]
    assert np.median(absolute_errors(spoilt, means, 1)[500:]) < 0.1


@pytest.mark.parametrize("value", [0.0, 5.0, -1e9])
def test_a_constant_stream_is_forecast_exactly(value):
    means, lower, upper = run(Forecaster(Setting(horizon=3)), np.full((200, 1), value))
    assert (means == value).all()
    assert (lower[50:] <= value).all()
    assert (upper[50:] >= value).all()


@pytest.mark.parametrize("value", [1e-160, 1e-310])
def test_a_number_whose_square_is_zero_does_not_end_in_nan(value):
    series = np.concatenate([np.zeros(20), [value, 0.0], np.sin(np.arange(40) / 3)])[:, None]
    one, other = Forecaster(Setting()), Forecaster(Setting())
    other._step, other._looks = reference.Step(other.setting), True
    means = run(one, series)[0]
    assert np.isfinite(means).all()
    np.testing.assert_allclose(run(other, series)[0], means, rtol=1e-6, atol=1e-9)


def test_missing_values_are_filled_in_and_not_learnt_from():
    series = np.sin(np.arange(600) / 4)[:, None]
    forecaster = Forecaster(Setting())
    for row in series[:500]:
        forecaster.observe(row[None])
    scored = forecaster.part("scored").copy()
    for _ in range(10):
        ahead = forecaster.observe(np.full((1, 1), np.nan))
    np.testing.assert_array_equal(forecaster.part("scored"), scored)
    assert abs(ahead.mean[0, 0, 0] - series[510, 0]) < 0.1


def test_a_regular_switch_is_forecast():
    """Only one row in 144 distinguishes the rules: its error must outweigh the rounding errors of the others."""
    values = np.where(np.arange(4000) % 288 < 144, 80.0, 20.0)
    ahead = run(Forecaster(Setting()), values[:, None])[0, :, 0, 0]
    np.testing.assert_allclose(ahead[2000:-1], values[2001:], atol=0.1)


def test_a_short_seasonal_series_with_a_trend_is_forecast_as_well_as_by_the_season_and_the_trend():
    t, draw = np.arange(144), np.random.default_rng(3)
    values = 100 + 0.8 * t + 15 * np.sin(2 * np.pi * t / 12) + draw.normal(size=144)
    ahead = run(Forecaster(Setting(horizon=24)), values[:, None])[0, :, 0, -1]
    at = np.arange(72, 144 - 24)
    known = np.abs(values[at] + 0.8 * 24 - values[at + 24]).mean()
    assert np.abs(ahead[at] - values[at + 24]).mean() < 2 * known


@pytest.mark.parametrize("kind", ["every seventh", "every night", "every night, later on"])
def test_rows_that_are_always_missing_are_forecast_at_the_level_of_the_others(kind: str):
    t = np.arange(1500)
    gone = {"every seventh": t % 7 == 3, "every night": t % 24 < 8, "every night, later on": (t % 24 < 8) & (t > 500)}
    cycle = 0.0 if kind == "every seventh" else 20 * np.sin(2 * np.pi * t / 24)
    values = 100 + 0.1 * t + cycle + np.random.default_rng(5).normal(size=1500)
    ahead = run(Forecaster(Setting(horizon=24)), np.where(gone[kind], np.nan, values)[:, None])[0, :, 0]
    limit = 20.0 if kind == "every night" else 2.0  # a part of the cycle that was never seen cannot be known
    for horizon in (1, 12, 24):
        errors = np.abs(values[horizon:] - ahead[:-horizon, horizon - 1])[750:]
        off = gone[kind][horizon:][750:]
        assert errors[off].mean() < limit
        assert errors[~off].mean() < 1.2


def test_bounds_have_the_requested_coverage_before_and_after_a_switch():
    draw = np.random.default_rng(6)
    t = np.arange(4000)
    noise = np.where(t < 2000, 0.1, 1.0) * draw.standard_t(4, size=4000)
    series = (np.where(t < 2000, np.sin(t / 4), 3 + np.sin(t / 2.5)) + noise)[:, None]
    _, lower, upper = run(Forecaster(Setting(level=0.9)), series)
    inside = (series[1:] >= lower[:-1, :, 0]) & (series[1:] <= upper[:-1, :, 0])
    for begin in range(100, 2900, 100):
        assert abs(inside[begin : begin + 1000].mean() - 0.9) <= 0.02


def test_differences_are_the_mean_squares_of_the_definition():
    series = np.random.default_rng(7).normal(size=50)
    for lag, found in enumerate(differences(series, 20)):
        assert found == pytest.approx(np.mean((series[lag:] - series[: 50 - lag]) ** 2), abs=1e-9)


def test_seasons_are_found_in_noise_but_not_in_walks_and_constants():
    draw = np.random.default_rng(8)
    t = np.arange(1000)
    assert 48 in find_seasons(np.sin(2 * np.pi * t / 48) + 0.3 * draw.normal(size=1000))
    assert find_seasons(np.full(100, 7.0)) == (0, 0)
    assert find_seasons(np.arange(100.0)) == (0, 0)
    walks = [find_seasons(draw.normal(size=1000).cumsum()) for _ in range(20)]
    assert sum(walk != (0, 0) for walk in walks) <= 4


def test_weights_are_a_mixture_and_favour_the_best_expert():
    series = np.random.default_rng(9).normal(size=(500, 1)).cumsum(0)
    forecaster = Forecaster(Setting(), seasons=(9,))
    run(forecaster, series)
    weights = forecaster.weights()[0, 0, 0]
    assert weights.sum() == pytest.approx(1.0)
    assert weights[EXPERTS.index("season 1")] < 0.05


def test_bad_sizes_and_rows_are_rejected():
    forecaster = Forecaster(Setting(columns=2))
    with pytest.raises(ValueError, match="seasons: expected up to 2"):
        Forecaster(Setting(history=100), seasons=(51,))
    with pytest.raises(ValueError, match="state: expected"):
        forecaster.load_tree({"state": np.zeros((1, 3))})
    if load() is not None:
        with pytest.raises(ValueError, match="values: expected contiguous float64"):
            forecaster.observe(np.zeros((1, 3)))
        with pytest.raises(ValueError, match="rows outside"):
            forecaster.observe(np.zeros((1, 2)), rows=np.array([5]))
        for name in ("count", "begun"):
            for value in (np.nan, -1e18, 1e18):
                broken = Forecaster(Setting(columns=2))
                broken.part(name)[:] = value
                with pytest.raises(ValueError, match="a broken count of rows"):
                    broken.observe(np.zeros((1, 2)))


def test_parts_of_a_state_fill_it_without_overlap():
    setting = Setting(columns=2, horizon=3, states=4)
    state = np.zeros((2, width(setting)))
    for view in views(state, setting).values():
        view += 1
    assert (state == 1).all()
    assert fresh(2, setting).shape == state.shape


def test_among_similar_lags_the_customary_season_is_found():
    found = set()
    for seed in range(6):
        draw = np.random.default_rng(seed)
        t = np.arange(1500)
        found.add(
            find_seasons(np.sin(2 * np.pi * t / 288) + np.cos(6 * np.pi * t / 288) + 0.7 * draw.normal(size=len(t)))[0]
        )
    assert found == {288}


@pytest.mark.parametrize("season", [50, 53, 286, 291])
def test_a_clear_season_is_not_rounded_to_a_customary_one(season: int):
    t = np.arange(1500)
    assert find_seasons(np.sin(2 * np.pi * t / season) + np.cos(6 * np.pi * t / season))[0] == season


def test_under_a_growing_trend_the_readout_is_as_good_as_a_ridge_regression_on_the_same_lags():
    draw, n, horizon = np.random.default_rng(0), 1200, 24
    t = np.arange(n)
    y = 300 + 0.02 * t + 1e-5 * t * t + 3 * np.sin(2 * np.pi * t / 52.2) + draw.normal(size=n) * 0.3
    made = run(Forecaster(Setting(horizon=horizon)), y[:, None])[0, :, 0, horizon - 1]
    lags, half = 48, n // 2
    windows = np.lib.stride_tricks.sliding_window_view(y, lags + 1)
    past = windows[:, -1:] - windows[:, :-1]
    origins = np.arange(lags, n - horizon)
    goal = y[origins + horizon] - y[origins]
    seen, later = origins < half - horizon, origins >= half
    ridge = np.linalg.solve(
        past[: len(origins)][seen].T @ past[: len(origins)][seen] + np.eye(lags),
        past[: len(origins)][seen].T @ goal[seen],
    )
    rival = np.abs(goal[later] - past[: len(origins)][later] @ ridge).mean()
    ours = np.abs(y[origins + horizon] - made[origins])[later].mean()
    assert ours < 1.02 * rival


@pytest.mark.parametrize("horizon", [1, 12])
def test_the_bounds_cover_the_requested_share_of_every_thousand_rows_even_after_a_switch(horizon: int):
    draw, n = np.random.default_rng(3), 5100
    t = np.arange(n)
    y = np.where(t < 2600, 5 * np.sin(t / 4), 40 + 9 * np.sin(t / 7)) + np.where(t < 3600, 1, 3) * draw.normal(size=n)
    _, lower, upper = run(Forecaster(Setting(horizon=horizon)), y[:, None])[:, :, 0, horizon - 1]
    origins = np.arange(n - 5000 - horizon, n - horizon)
    inside = (lower[origins] <= y[origins + horizon]) & (y[origins + horizon] <= upper[origins])
    np.testing.assert_allclose(inside.reshape(5, 1000).mean(1), 0.9, atol=0.02)


def test_misses_that_a_jump_made_inevitable_are_made_up_for_slowly():
    draw = np.random.default_rng(4)
    series = np.where(np.arange(3600) < 1000, 0.0, 30.0)[:, None] + draw.normal(size=(3600, 1))
    forecaster = Forecaster(Setting(horizon=24))
    _, lower, upper = run(forecaster, series[:1001])[:, :, 0]
    excused = forecaster.part("excused")[0, 0].copy()
    np.testing.assert_allclose(excused, 0.7 * 0.9 * np.arange(24))
    _, low, high = run(forecaster, series[1001:])[:, :, 0]
    lower, upper = np.concatenate([lower, low]), np.concatenate([upper, high])
    assert (forecaster.part("excused") == 0).all()
    misses = (series[24:, 0] < lower[:-24, 23]) | (series[24:, 0] > upper[:-24, 23])
    assert misses[976:1000].all()
    assert abs(misses[976:1976].mean() - 0.1) <= 0.02


def ahead_of(values: np.ndarray, horizon: int) -> np.ndarray:
    """(T, horizon) forecasts after each row."""
    forecaster = Forecaster(Setting(horizon=horizon))
    rows = np.zeros(len(values), dtype=np.int64)
    return forecaster.observe(np.ascontiguousarray(values, dtype=float)[:, None], rows=rows).mean[:, 0]


def test_the_median_is_forecast_if_nothing_else_is_predictable():
    draw = np.random.default_rng(0)
    values = np.where(draw.random(2000) < 0.05, draw.gamma(2, size=2000), 0.0)  # mostly zero
    errors = np.abs(values[1012:] - ahead_of(values, 12)[1000:-12, -1])
    assert errors.mean() < 1.05 * np.abs(values[1012:]).mean()  # copying has twice the error


def test_a_growing_season_is_extrapolated():
    t = np.arange(240)
    values = 100 + 2.0 * t + 30 * np.sin(2 * np.pi * t / 12) + np.random.default_rng(1).normal(size=240)
    made = ahead_of(values, 24)
    errors = np.abs(values[144:] - made[120:-24, -1])
    assert errors.mean() < 0.25 * np.abs(values[144:] - values[120:-24]).mean()


@pytest.mark.skipif(load() is None, reason="there is no compiler")
@pytest.mark.parametrize("kind", ["two cycles", "growing", "walk", "mostly zero", "noise", "missing"])
def test_the_kernel_finds_the_seasons_that_the_reference_finds(kind: str):
    draw, t = np.random.default_rng(8), np.arange(700)
    daily = np.sin(2 * np.pi * t / 12) + 0.3 * draw.normal(size=700)
    series = {
        "two cycles": daily + 2 * np.sin(2 * np.pi * t / 84),
        "growing": 0.05 * t + (1 + t / 300) * daily,
        "walk": draw.normal(size=700).cumsum(),
        "mostly zero": np.where(draw.random(700) < 0.05, daily, 0.0),
        "noise": draw.normal(size=700),
        "missing": np.where(draw.random(700) < 0.2, np.nan, daily),
    }[kind][:, None]
    setting = Setting(history=300)
    one, other = Forecaster(setting), Forecaster(setting)
    other._step, other._looks = reference.Step(setting), True
    rows = np.zeros(700, dtype=np.int64)
    for forecaster in (one, other):
        forecaster.observe(series, rows=rows)
    for name in ("season", "look", "history", "profile"):
        np.testing.assert_allclose(one.part(name), other.part(name), rtol=1e-5, atol=1e-7)


def test_the_number_of_threads_changes_no_result(monkeypatch):
    monkeypatch.setattr("ptncn.streaming.forecaster.model.SHARE", 10)
    draw = np.random.default_rng(9)
    rows, series = draw.integers(0, 7, size=3000), draw.normal(size=(3000, 1)).cumsum(0)
    runs = []
    for threads in ("1", "3"):
        monkeypatch.setenv("OMP_NUM_THREADS", threads)
        forecaster = Forecaster(Setting(history=200, horizon=2), 7)
        runs.append((*forecaster.observe(series, rows=rows), forecaster.state))
    for alone, together in zip(*runs, strict=True):
        np.testing.assert_array_equal(alone, together)
