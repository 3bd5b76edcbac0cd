import math

import pytest
import torch

from ptncn import PTNCN
from ptncn.network.activations import NAMES, get_activation

DRIVES = torch.tensor([[-7.0, -0.5, 0.0, 0.5, 7.0]])
EXPECTED = {
    "tanh": [math.tanh(v) for v in (-7, -0.5, 0, 0.5, 7)],
    "sigmoid": [1 / (1 + math.exp(-v)) for v in (-7, -0.5, 0, 0.5, 7)],
    "relu": [0, 0, 0, 0.5, 7],
    "relu6": [0, 0, 0, 0.5, 6],
    "leaky_relu": [-0.07, -0.005, 0, 0.5, 7],
    "gelu": [v * 0.5 * (1 + math.erf(v / math.sqrt(2))) for v in (-7, -0.5, 0, 0.5, 7)],
    "identity": [-7, -0.5, 0, 0.5, 7],
    "sign": [-1, -1, 0, 1, 1],
    "step": [0, 0, 1, 1, 1],
    "kwta": [0, 0, 0, 1, 1],
}


@pytest.mark.parametrize("name", EXPECTED)
def test_each_activation_has_its_values(name):
    phi = get_activation(name, winners=0.4, generator=torch.Generator())
    torch.testing.assert_close(phi(DRIVES), torch.tensor([EXPECTED[name]], dtype=torch.float32))


def test_bernoulli_units_fire_with_their_probability_and_use_only_the_given_generator():
    phi = get_activation("bernoulli", 0.1, torch.Generator().manual_seed(0))
    drawn = phi(torch.full((100_000, 1), 0.7))
    assert set(drawn.unique().tolist()) == {0.0, 1.0}
    assert float(drawn.mean()) == pytest.approx(1 / (1 + math.exp(-0.7)), abs=0.01)
    again = get_activation("bernoulli", 0.1, torch.Generator().manual_seed(0))
    assert torch.equal(again(torch.full((100_000, 1), 0.7)), drawn)


def test_at_least_one_unit_wins():
    phi = get_activation("kwta", winners=0.01, generator=torch.Generator())
    assert phi(DRIVES).tolist() == [[0, 0, 0, 0, 1]]


@pytest.mark.parametrize("name", [*NAMES, "callable"])
def test_a_network_learns_with_each_activation_without_derivatives(name):
    """Four patterns in turn: the best constant guess has an error of 0.75, which noisy units alone do not reach."""
    options = {"error_rule": "transpose", "error_lr_factor": 0.1, "optimizer": "rmsprop", "rescale": "none"}
    choice = (lambda a: a.detach().clamp(-1, 1)) if name == "callable" else name  # has no derivative, on purpose
    net = PTNCN(
        4, [30, 10], output="gaussian", activation=choice, hidden_prediction="identity", winners=0.2,
        lr=0.003, weight_std=0.1, error_weight_std=0.1, **options,
    )  # fmt: skip
    state = net.begin(1)
    losses = []
    for t in range(400):
        out = net.step(torch.eye(4)[t % 4][None], state)
        losses.append(float(out.errors[0].square().sum()))
    assert sum(losses[-40:]) / 40 < (0.95 if name == "bernoulli" else 0.45)
    assert sum(losses[-40:]) < 0.85 * sum(losses[1:41])


def test_layers_may_have_different_activations():
    net = PTNCN(4, [3, 3], activation=["tanh", "relu"], weight_std=1.0)
    state = net.begin(5)
    rng = torch.Generator().manual_seed(0)
    for _ in range(3):
        out = net.step(torch.rand(5, 4, generator=rng), state)
    assert (out.states[0] < 0).any()
    assert (out.states[1] >= 0).all()
