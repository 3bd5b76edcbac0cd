"""Tests for mutants of the rules that no other test caught."""

import pytest
import torch

from ptncn import PTNCN
from ptncn.updates import MaxNorm, Synapses


@pytest.mark.parametrize("learn", [True, False])
def test_rows_that_were_not_observed_have_no_errors(learn):
    net = PTNCN(5, [4, 3], weight_std=0.5)
    state = net.begin(3)
    mask = torch.tensor([True, False, True])
    for x in torch.rand(3, 3, 5, generator=torch.Generator().manual_seed(0)):
        out = net.step(x, state, learn=learn, mask=mask)
    for e in out.errors:
        assert not e[1].any()
        assert e[[0, 2]].abs().sum(-1).all()


def test_the_deferred_norm_check_is_in_time_when_one_row_grows():
    """Three rows stay short and one grows steadily beyond the radius: it is projected at that very step."""
    weight = torch.full((4, 3), 0.1, dtype=torch.float64)
    always = weight.clone()
    step = torch.zeros_like(weight)
    step[2] = torch.tensor([0.03, -0.02, 0.01], dtype=torch.float64)
    ball, clipped = MaxNorm(2.0), 0
    for _ in range(100):
        weight += step
        always += step
        ball.project(Synapses(weight), growth=float(step.norm(dim=1).max()))
        clipped += int(always.norm(dim=1).max() > 2.0)
        always *= (2.0 / always.norm(dim=1, keepdim=True)).clamp_max(1.0)
        torch.testing.assert_close(weight, always, rtol=0, atol=1e-12)
    assert 10 < clipped < 90
