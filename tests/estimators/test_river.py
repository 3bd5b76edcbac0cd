"""River's own checks, and further ones of state, copies, columns, features and alarms."""

from __future__ import annotations

import copy
import math
import pickle
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

pytest.importorskip("river", reason="the extra ptncn[river] is not installed")

from river import anomaly, checks, datasets, drift, evaluate, metrics

from ptncn.estimators.river import PTNCNAnomalyDetector, PTNCNForecaster, PTNCNRegressor, StreamForecaster
from ptncn.streaming import DriftListener, Stream, default_learner

pytestmark = [
    # River's datasets leave their files to the garbage collector when they are not read to the end
    pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning"),
    pytest.mark.filterwarnings("ignore:Exception ignored in:pytest.PytestUnraisableExceptionWarning"),
]

ESTIMATORS = (PTNCNForecaster, PTNCNRegressor, PTNCNAnomalyDetector)
CHECKED_ON_EVERY_LEARNER = ("check_learn_one", "check_forecast", "check_clone_is_independent", "check_repr")
SMALL: dict[str, Any] = {"hidden": (8,), "seed": 1}


def planted(
    count: int, *, seed: int = 0, share: float = 0.02, size: float = 1.0
) -> list[tuple[dict[str, float], bool]]:
    """Two noisy waves with occasional outliers in one of them."""
    rng = np.random.default_rng(seed)
    rows = []
    for t in range(count):
        is_outlier = bool(rng.random() < share)
        offset = size * rng.choice([-1.0, 1.0]) if is_outlier else 0.0
        noise = 0.05 * rng.normal(size=2)
        rows.append(({"a": math.sin(t / 5) + noise[0] + offset, "b": math.cos(t / 11) + noise[1]}, is_outlier))
    return rows


class PlantedOutliers:
    """Replaces the dataset that River's anomaly checks would download."""

    def take(self, count: int) -> Iterator[tuple[dict[str, float], bool]]:
        return iter(planted(min(count, 300), size=3.0))


def every_check() -> Iterator[Any]:
    for kind in (*ESTIMATORS, StreamForecaster):
        for number, params in enumerate(kind._unit_test_params()):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(datasets, "CreditCard", PlantedOutliers)
                for order, check in enumerate(checks.yield_checks(kind(**params))):
                    if number == 0 or check.__name__ in CHECKED_ON_EVERY_LEARNER:
                        yield pytest.param(kind, params, check, id=f"{kind.__name__}{number}-{check.__name__}-{order}")


@pytest.mark.parametrize(("kind", "params", "check"), list(every_check()))
def test_rivers_own_checks_pass(kind: Any, params: dict[str, Any], check: Any) -> None:
    check(kind(**params))


@pytest.mark.parametrize("kind", [*ESTIMATORS, StreamForecaster])
def test_no_check_is_waived(kind: Any) -> None:
    assert kind()._unit_test_skips() == set()


def learn(model: Any, t: int) -> None:
    x = {"a": math.sin(t / 5), "b": math.cos(t / 7)}
    if isinstance(model, PTNCNAnomalyDetector):
        model.learn_one(x)
    elif isinstance(model, PTNCNRegressor):
        model.learn_one(x, {"sum": x["a"] + x["b"], "difference": x["a"] - x["b"]})
    else:
        model.learn_one(x["a"] + x["b"], x)


def predict(model: Any) -> Any:
    x = {"a": 0.3, "b": -0.2}
    if isinstance(model, PTNCNAnomalyDetector):
        return model.score_one(x)
    return model.predict_one(x) if isinstance(model, PTNCNRegressor) else model.forecast(3, [x] * 3)


@pytest.mark.parametrize("learner", ["ptncn", "lstm-tbptt", "lstm-uoro", "esn-rls", "copy"])
@pytest.mark.parametrize("kind", ESTIMATORS)
def test_predictions_change_nothing(kind: Any, learner: str) -> None:
    queried, plain = (kind(learner=learner, **SMALL) for _ in range(2))
    for t in range(60):
        predict(queried)
        learn(queried, t)
        learn(plain, t)
    assert predict(queried) == predict(queried) == predict(plain)


@pytest.mark.parametrize("learner", ["ptncn", "lstm-tbptt", "lstm-uoro", "esn-rls", "mean"])
@pytest.mark.parametrize("kind", ESTIMATORS)
@pytest.mark.parametrize("make_copy", [copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))])
def test_a_copy_made_mid_stream_continues_identically(kind: Any, learner: str, make_copy: Any) -> None:
    model = kind(learner=learner, **SMALL)
    for t in range(40):
        learn(model, t)
    twin = make_copy(model)
    for t in range(40, 80):
        learn(model, t)
        learn(twin, t)
    assert predict(twin) == predict(model)


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_results_are_reproducible_with_a_seed_and_not_without(kind: Any) -> None:
    models = [kind(hidden=(8,), seed=seed) for seed in (3, 3, None, None)]
    for model in models:
        for t in range(30):
            learn(model, t)
    weights = [model._rows.predictor.learner.snapshot()["weights"] for model in models]
    first, second, third, fourth = (next(iter(w.values())) for w in weights)
    assert first.equal(second)
    assert not third.equal(fourth)


def test_a_copying_forecaster_forecasts_the_last_value() -> None:
    model = PTNCNForecaster("copy", target="level")
    assert model.forecast(2) == [0.0, 0.0]
    for y in [1.0, 5.0, 2.5] * 50:
        model.learn_one(y)
    # not exactly: the scale changes slightly between seeing a value and repeating it
    assert model.forecast(2) == pytest.approx([2.5, 2.5], abs=0.02)


def test_a_copying_forecaster_of_changes_continues_linearly() -> None:
    model = PTNCNForecaster("copy", target="change")
    for y in (1.0, 2.0, 3.0):
        model.learn_one({"up": y, "down": -10 * y})
    assert model.forecast(2) == [pytest.approx({"up": 4, "down": -40}), pytest.approx({"up": 5, "down": -50})]


def test_several_series_are_forecast_by_rivers_evaluation_better_than_by_copying() -> None:
    series = [({}, {"a": math.sin(t / 5), "b": 100 * math.cos(t / 5)}) for t in range(1200)]

    def error(model: PTNCNForecaster) -> float:
        metric = metrics.multioutput.MicroAverage(metrics.MAE())
        score = evaluate.evaluate(series, model, metric, horizon=2)
        return float(score.metrics[0].get())

    assert error(PTNCNForecaster(seed=0)) < 0.6 * error(PTNCNForecaster("copy", target="level"))


def test_forecasts_follow_the_given_features() -> None:
    rng = np.random.default_rng(0)
    model = PTNCNForecaster(hidden=(16,), lr=3e-3, seed=0)
    for _ in range(2000):
        x = {"heating": float(rng.normal())}
        model.learn_one(20 + 3 * x["heating"], x)
    warm, cold = (model.forecast(2, [{"heating": value}] * 2) for value in (1.0, -1.0))
    assert warm == pytest.approx([23, 23], abs=1)
    assert cold == pytest.approx([17, 17], abs=1)
    assert len(model.forecast(2)) == 2


def test_dates_are_not_features() -> None:
    model, without = (PTNCNForecaster(**SMALL) for _ in range(2))
    for x, y in datasets.AirlinePassengers():
        model.learn_one(y=y, x=x)
        without.learn_one(y)
    assert model.forecast(3) == without.forecast(3)


def test_the_regressor_learns_targets_from_features_of_the_same_row() -> None:
    rng = np.random.default_rng(0)
    model = PTNCNRegressor(hidden=(16,), lr=3e-3, seed=0)
    errors, targets = [], []
    for t in range(2500):
        x = {"a": float(rng.normal()), "b": float(rng.normal())}
        y = {"sum": x["a"] + x["b"], "far": 1000 + 50 * x["b"]}
        if t >= 2000:
            prediction = model.predict_one(x)
            errors.append([prediction[name] - y[name] for name in y])
            targets.append(list(y.values()))
        model.learn_one(x, y)
    unexplained = np.square(errors).mean(0) / np.var(targets, axis=0)
    assert (unexplained < 0.15).all()


def test_the_regressor_sees_the_targets_of_the_previous_row() -> None:
    model = PTNCNRegressor("copy", target="level")
    assert model.predict_one({"a": 1.0}) == {}
    for t in range(200):
        model.learn_one({"a": 0.0}, {"y": float(t % 3)})
        if t > 100:
            assert model.predict_one({"a": 0.0}) == pytest.approx({"y": t % 3}, abs=0.02)


def test_the_order_of_columns_does_not_matter_and_new_columns_use_spare_inputs() -> None:
    models = [PTNCNRegressor(spare=spare, **SMALL) for spare in (1, 1, 0)]
    for t in range(50):
        x = {"a": math.sin(t), "b": math.cos(t)} | ({"c": float(t), "d": 1.0} if t > 20 else {})
        y = {"p": float(t % 3), "q": float(t % 5)}
        for model, row in zip(models, (x, dict(reversed(x.items())), x), strict=True):
            model.learn_one(row, dict(sorted(y.items(), reverse=row is not x)))
    assert models[0].predict_one({"a": 1.0, "c": 2.0}) == models[1].predict_one({"c": 2.0, "a": 1.0})
    assert [sorted(name for _, name in model._rows.places) for model in models] == [
        ["a", "b", "c", "p", "q"],
        ["a", "b", "c", "p", "q"],
        ["a", "b", "p", "q"],
    ]


def test_nothing_is_learnt_from_missing_values() -> None:
    model, without = (PTNCNAnomalyDetector(**SMALL) for _ in range(2))
    for t in range(50):
        model.learn_one({"a": math.sin(t), "b": None if t else 0.0})
        without.learn_one({"a": math.sin(t)} | ({} if t else {"b": 0.0}))
    assert model.score_one({"a": 0.1}) == without.score_one({"a": 0.1, "b": math.nan})


def test_planted_anomalies_are_found_at_the_chosen_alarm_rate() -> None:
    model = PTNCNAnomalyDetector(hidden=(16, 16), seed=0)
    alarms = {True: [], False: []}
    for t, (x, is_outlier) in enumerate(planted(3000, share=0.005)):
        if t >= 500:
            alarms[is_outlier].append(model.score_one(x) >= 0.99)
        model.learn_one(x)
    assert np.mean(alarms[True]) >= 0.9
    assert 0.005 <= np.mean(alarms[False]) <= 0.02


def test_scores_become_alarms_in_rivers_filter() -> None:
    model = anomaly.ThresholdFilter(PTNCNAnomalyDetector(**SMALL), threshold=0.99, protect_anomaly_detector=False)
    for x, _ in planted(400, share=0.0):
        model.anomaly_detector.learn_one(x)
    assert model.classify(model.score_one({"a": 5.0, "b": 0.0}))


def switching(seed: int) -> list[list[float]]:
    """A noisy wave that becomes faster and noisier at its 1500th row."""
    noise = np.random.default_rng(seed).normal(size=1800)
    return [[math.sin(t / 5) + 0.1 * noise[t] if t < 1500 else math.sin(t / 2) + 0.5 * noise[t]] for t in range(1800)]


@pytest.mark.parametrize(
    "make",
    [drift.ADWIN, lambda: drift.PageHinkley(threshold=100.0, mode="up"), lambda: drift.KSWIN(alpha=1e-4, seed=1)],
    ids=["ADWIN", "PageHinkley", "KSWIN"],
)
def test_rivers_drift_detectors_monitor_the_surprise(make: Any) -> None:
    detected = 0
    for seed in range(6):
        stream = Stream(switching(seed), default_learner, drift=make())
        drifts = [out.index for out in stream if out.drift]
        detected += any(1500 <= t < 1600 for t in drifts)
        assert sum(500 <= t < 1500 for t in drifts) <= 1
    assert detected >= 4  # a false alarm just before a switch can keep a detector from seeing it


def test_a_drift_detector_monitors_the_scores_of_the_anomaly_detector() -> None:
    model, adwin, drifts = PTNCNAnomalyDetector(hidden=(16,), seed=0), drift.ADWIN(), []
    for t, (x, _) in enumerate(planted(1500, share=0.0)):
        row = x if t < 1000 else {"a": 3 * x["b"] ** 2, "b": -x["a"]}
        adwin.update(model.score_one(row))
        model.learn_one(row)
        if adwin.drift_detected:
            drifts.append(t)
    assert any(1000 <= t < 1200 for t in drifts)


def test_a_drift_raises_the_step_size_for_a_while() -> None:
    listener = DriftListener(drift.PageHinkley(threshold=100.0, mode="up"), "raise-lr", factor=4.0, steps=50)
    stream, sizes = Stream(switching(1)[1200:1700], default_learner, drift=listener), []
    for out in stream:
        sizes.append((out.drift, stream.learner.lr))
    (drift_at,) = [t for t, (drifted, _) in enumerate(sizes) if drifted]
    usual = sizes[0][1]
    assert {size for _, size in sizes[drift_at : drift_at + 50]} == {4 * usual}
    assert {size for _, size in sizes[:drift_at] + sizes[drift_at + 50 :]} == {usual}


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: PTNCNForecaster(target="slope"), "target: expected one of level, change, both, got 'slope'"),
        (lambda: PTNCNForecaster(spare=-1), "spare: expected at least 0, got -1"),
        (lambda: PTNCNAnomalyDetector(alarm_rate=2.0), "alarm_rate: expected a share"),
        (lambda: PTNCNForecaster("lstm").learn_one(1.0), "unknown learner 'lstm'"),
        (lambda: PTNCNAnomalyDetector().learn_one({"a": math.inf}), "'a': expected a finite number"),
        (lambda: PTNCNForecaster().forecast(2, [{}]), "xs: expected 2 rows, one per step, got 1"),
        (lambda: [PTNCNForecaster.learn_one(model, y) for model in [PTNCNForecaster()] for y in (1.0, {"a": 1.0})],
         "targets were numbers until now"),
    ],
)  # fmt: skip
def test_bad_arguments_are_named(call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message.replace("(", r"\(")):
        call()


def test_intervals_contain_the_next_values() -> None:
    rng, model, covered = np.random.default_rng(0), StreamForecaster(horizon=2, hidden=(8,), seed=1), []
    for t in range(500):
        y = math.sin(t / 4) + 0.1 * rng.normal()
        if t >= 200:
            covered.append(y in model.forecast(1, with_interval=True)[0])
        model.learn_one(y)
    assert 0.85 < np.mean(covered) < 0.95


def test_each_key_is_forecast_independently() -> None:
    together, alone = (StreamForecaster(horizon=3, by="pump", hidden=(8,), seed=1) for _ in range(2))
    for t in range(60):
        for pump, level in (("north", 10.0), ("south", 500.0)):
            x, y = {"pump": pump, "rain": float(t % 5)}, {"flow": level + t % 7, "depth": 1.0 * t}
            together.learn_one(y, x)
            if pump == "south":
                alone.learn_one(y, x)
    xs = [{"pump": "south", "rain": 1.0}] * 3
    assert together.forecast(3, xs) == alone.forecast(3, xs)
    assert together.forecast(2, [{"pump": "west"}] * 2) == [{"flow": 0.0, "depth": 0.0}] * 2
    with pytest.raises(ValueError, match="names the series"):
        together.forecast(2)


def test_future_features_correct_the_forecast_of_a_stream() -> None:
    rng, model = np.random.default_rng(0), StreamForecaster(horizon=2, hidden=(8,), seed=1)
    for _ in range(300):
        price = rng.normal()
        model.learn_one(5 * price + 0.1 * rng.normal(), {"price": price, "city": "Ulm"})
    high, low = (model.forecast(2, [{"price": price}] * 2) for price in (1.0, -1.0))
    assert min(high) > 2
    assert max(low) < -2


def test_a_pickled_stream_forecaster_continues_identically() -> None:
    model = StreamForecaster(horizon=2, by="pump", hidden=(8,), seed=1)
    for t in range(40):
        model.learn_one(math.sin(t), {"pump": t % 2})
    twin = pickle.loads(pickle.dumps(model))
    for t in range(40, 60):
        for each in (model, twin):
            each.learn_one(math.sin(t), {"pump": t % 2})
    assert twin.forecast(2, [{"pump": 1}] * 2) == model.forecast(2, [{"pump": 1}] * 2)
