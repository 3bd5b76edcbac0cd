"""Prequential error against explicit sums, and its bounded memory."""

from __future__ import annotations

import json
import math
from itertools import pairwise

import pytest
import torch

from ptncn.learner import Step
from ptncn.metrics import SE, Meter, Prequential


def feed(meter: Prequential, errors: list[list[float | None]]) -> None:
    """One step for each entry, with one squared error a row; None is a row that is not scored."""
    for rows in errors:
        prediction = torch.tensor([[0.0 if error is None else error**0.5] for error in rows], dtype=torch.float64)
        scored = torch.tensor([error is not None for error in rows])
        meter.update(Step(prediction, prediction, (), scored), torch.zeros(len(rows), 1))


def test_the_mean_is_over_all_scored_frames_and_the_faded_mean_over_recent_ones():
    meter = Prequential(SE(), fading=0.5)
    assert isinstance(meter, Meter)
    assert meter.name == "prequential_se"
    feed(meter, [[None, None], [4.0, 1.0], [9.0, None]])
    assert meter.compute() == {
        "mean": pytest.approx((4 + 1 + 9) / 3),
        "faded": pytest.approx((0.5 * (4 + 1) + 9) / (0.5 * 2 + 1)),
    }


def test_the_faded_mean_is_the_weighted_sum_written_out():
    errors = torch.rand(200, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    meter = Prequential(SE(), fading=0.97)
    feed(meter, [[error] for error in errors.tolist()])
    weights = 0.97 ** torch.arange(199, -1, -1, dtype=torch.float64)
    assert meter.compute()["faded"] == pytest.approx(((weights * errors).sum() / weights.sum()).item(), rel=1e-9)


def test_steps_without_scored_rows_do_not_fade_the_mean():
    with_gap, without = Prequential(SE(), fading=0.5), Prequential(SE(), fading=0.5)
    feed(with_gap, [[4.0], [None], [None], [1.0]])
    feed(without, [[4.0], [1.0]])
    assert with_gap.compute() == without.compute()


def test_the_curve_forgets_an_early_error_only_in_its_faded_column():
    meter = Prequential(SE(), fading=0.5)
    feed(meter, [[None], [8.0], *[[0.0]] * 20])
    curve = meter.curve()
    assert [point.step for point in curve] == list(range(2, 23))
    assert curve[0] == (2, pytest.approx(8.0), pytest.approx(8.0))
    assert curve[-1].mean == pytest.approx(8 / 21)
    assert curve[-1].faded < 1e-5


@pytest.mark.parametrize("points", [8, 9])
def test_memory_is_bounded_and_points_stay_evenly_spaced_to_the_end(points):
    meter = Prequential(SE(), points=points)
    for _ in range(50):
        feed(meter, [[1.0]] * 20)
        steps = [point.step for point in meter.curve()]
        assert points // 2 <= len(steps) <= points
        gaps = {later - earlier for earlier, later in pairwise(steps)}
        assert gaps == {steps[0]}
    assert 1000 - steps[-1] < steps[0]


def test_a_saved_meter_continues_bit_for_bit():
    errors = torch.rand(60, generator=torch.Generator().manual_seed(0), dtype=torch.float64).tolist()
    straight, resumed = (Prequential(SE(), points=8) for _ in range(2))
    for error in errors:
        feed(straight, [[error]])
        feed(resumed, [[error]])
        saved = json.loads(json.dumps(resumed.tree()))
        resumed = Prequential(SE(), points=8)
        resumed.load_tree(saved)
    assert resumed.tree() == straight.tree()
    assert resumed.curve() == straight.curve()
    assert resumed.compute() == straight.compute()
    straight.reset()
    assert math.isnan(straight.compute()["mean"])
    assert straight.curve() == []


def test_bad_settings_are_named():
    with pytest.raises(ValueError, match="fading: expected a number above 0 and at most 1, got 0"):
        Prequential(SE(), fading=0)
    with pytest.raises(ValueError, match="points: expected at least 2, got 1"):
        Prequential(SE(), points=1)
