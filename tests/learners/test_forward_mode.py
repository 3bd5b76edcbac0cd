"""Forward-mode learners learn two sines in each of two channels, which no trivial learner predicts."""

import pytest
import torch

from ptncn.learners import make
from ptncn.learners.rtrl import UORO

CELLS = ["rnn", "lstm", "gru", "rhn"]


def sines(steps, batch_size):
    """(T, B, 2) a beat of two sines, and one of them a quarter ahead; rows differ in phase."""
    phase = 6.28 * torch.rand(1, batch_size, 1, generator=torch.Generator().manual_seed(0))
    t = torch.arange(steps).float()[:, None, None]
    beat = torch.sin(0.7 * t + phase) + torch.sin(0.31 * t + 2 * phase)
    return torch.cat([0.5 + 0.22 * beat, 0.5 + 0.4 * torch.sin(0.7 * t + phase + 1.3)], dim=2)


def final_error(learner, steps, batch_size):
    """Squared error of a frame, mean over the last 100 steps of learning online."""
    state, errors = learner.begin(batch_size), []
    for x in sines(steps, batch_size):
        errors.append(float((learner.step(x, state).prediction - x).square().sum(1).mean()))
    return sum(errors[-100:]) / 100


class ReadoutOnly(UORO):
    """The same network with fixed recurrent weights."""

    def carries(self, state):
        return False


def test_copying_the_last_frame_or_the_mean_does_not_follow_the_sines():
    assert final_error(make("copy", input_size=2), 500, 16) > 0.045
    assert final_error(make("mean", input_size=2), 500, 16) > 0.1


def test_a_readout_of_random_recurrent_weights_does_not_follow_the_sines():
    assert final_error(ReadoutOnly(2, 12, cell="lstm", lr=2e-3, output="gaussian"), 600, 128) > 0.05


@pytest.mark.parametrize("rule", ["rtrl", "kf-rtrl"])
@pytest.mark.parametrize("cell", CELLS)
def test_rtrl_and_kf_rtrl_follow_the_sines_closely(cell, rule):
    learner = make(f"{cell}-{rule}", input_size=2, hidden_size=16, lr=3e-3, output="gaussian")
    assert final_error(learner, 500, 16) < 0.015


@pytest.mark.parametrize("cell", CELLS)
def test_uoro_follows_the_sines_if_many_rows_average_its_noise(cell):
    learner = make(f"{cell}-uoro", input_size=2, hidden_size=12, lr=2e-3, output="gaussian")
    assert final_error(learner, 600, 128) < 0.025
