"""Errors against manual calculations and independent formulas."""

from __future__ import annotations

import json
import math

import pytest
import torch
from torch import Tensor

from ptncn.learner import Step
from ptncn.metrics import BPC, CE, SE, Accuracy, Meter


def step(logits: Tensor, scored: list[bool], prediction: Tensor | None = None) -> Step:
    return Step(logits if prediction is None else prediction, logits, (), torch.tensor(scored))


ONE_HOT = torch.eye(3)


def test_se_sums_over_features_and_averages_over_scored_frames():
    meter = SE()
    meter.update(step(torch.tensor([[0.0, 0.5], [9.0, 9.0]]), [True, False]), torch.tensor([[1.0, 1.0], [0.0, 0.0]]))
    meter.update(step(torch.tensor([[1.0, 1.0], [0.0, 2.0]]), [True, True]), torch.tensor([[1.0, 0.0], [0.0, 0.0]]))
    assert meter.compute() == (1.25 + 1.0 + 4.0) / 3


def test_ce_is_in_nats_and_sums_over_pixels():
    meter = CE()
    probability, x = torch.tensor([[0.25, 0.5, 0.9]]), torch.tensor([[1.0, 0.0, 0.7]])
    meter.update(step(torch.logit(probability), [True]), x)
    expected = -math.log(0.25) - math.log(0.5) - 0.7 * math.log(0.9) - 0.3 * math.log(0.1)
    assert meter.compute() == pytest.approx(expected, rel=1e-6)


def test_ce_of_a_confident_mistake_is_its_logit_and_not_infinity():
    meter = CE()
    meter.update(step(torch.tensor([[500.0, -500.0]]), [True]), torch.tensor([[0.0, 1.0]]))
    assert meter.compute() == pytest.approx(1000.0)


def test_bpc_is_the_information_of_the_observed_character():
    meter = BPC()
    probability = torch.tensor([[0.5, 0.25, 0.25], [0.5, 0.125, 0.375], [1.0, 0.0, 0.0]])
    meter.update(step(torch.log(probability) + 7.0, [True, True, False]), ONE_HOT[[0, 1, 2]])
    assert meter.compute() == pytest.approx((1 + 3) / 2, rel=1e-6)


def test_accuracy_is_the_share_of_correct_predictions():
    meter = Accuracy()
    prediction = torch.tensor([[0.5, 0.3, 0.2], [0.1, 0.8, 0.1], [0.2, 0.3, 0.5], [0.6, 0.2, 0.2]])
    meter.update(step(prediction, [True, True, True, False]), ONE_HOT[[0, 1, 0, 1]])
    assert meter.compute() == pytest.approx(2 / 3)


@pytest.mark.parametrize("kind", [SE, CE, BPC, Accuracy])
def test_rows_that_are_not_scored_may_hold_anything(kind):
    logits, x = torch.randn(2, 3, generator=torch.Generator().manual_seed(0)), ONE_HOT[[0, 1]].clone()
    clean, dirty = kind(), kind()
    clean.update(step(logits[:1], [True]), x[:1])
    x[1] = math.nan
    dirty.update(step(logits, [True, False]), x)
    assert dirty.compute() == clean.compute()
    assert math.isfinite(dirty.compute())


@pytest.mark.parametrize("kind", [SE, CE, BPC, Accuracy])
def test_a_saved_meter_continues_bit_for_bit_and_a_reset_one_is_new(kind):
    generator = torch.Generator().manual_seed(0)
    straight, resumed = kind(), kind()
    assert isinstance(straight, Meter)
    assert math.isnan(straight.compute())
    for time in range(20):
        logits, x = torch.randn(4, 3, generator=generator), ONE_HOT[torch.randint(3, (4,), generator=generator)]
        now = step(logits, [True, time % 2 == 0, False, True])
        straight.update(now, x)
        resumed.update(now, x)
        saved = json.loads(json.dumps(resumed.tree()))
        resumed = kind()
        resumed.load_tree(saved)
    assert resumed.tree() == straight.tree()
    assert resumed.compute() == straight.compute()
    straight.reset()
    assert math.isnan(straight.compute())


def test_sums_are_float64_so_that_a_long_run_loses_nothing():
    meter = SE()
    meter.load_tree({"sum": 1e9, "count": 10})
    meter.update(step(torch.tensor([[1.0]]), [True]), torch.tensor([[0.0]]))  # float32 would swallow the 1
    assert meter.tree() == {"sum": 1e9 + 1, "count": 11}
