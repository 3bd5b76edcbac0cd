"""The network learns, even with units that have no derivative."""

import math

import pytest
import torch

from ptncn import PTNCN

SETTINGS = {
    "sign": {},
    "tanh": {"error_rule": "transpose", "weight_std": 0.3, "error_weight_std": 0.3},
}


@pytest.mark.parametrize("activation", SETTINGS)
def test_a_network_learns_the_noisy_cosine(activation):
    """The stream of the appendix: an untrained network has an error of 1.1, the last value 0.0025, the paper 0.017."""
    options = {"hidden_prediction": "identity", **SETTINGS[activation]}
    net = PTNCN(1, [20, 20], output="gaussian", activation=activation, **options)
    rng = torch.Generator().manual_seed(0)
    state, errors = net.begin(1), []
    for k in range(4000):
        x = math.cos(0.05 * k) + 0.02 * torch.randn(1, 1, generator=rng)
        errors.append(float(net.step(x, state).errors[0].square()))
    assert sum(errors[2000:]) / 2000 < 0.03
