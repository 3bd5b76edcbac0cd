"""Running statistics of the feedback and of the observations: online, saved with the learner, without lookahead."""

import math

import pytest
import torch

from ptncn import PTNCN

OPTIONS = {"teaching": "small", "output_bias": "mean", "weight_std": 0.3, "dtype": torch.float64}


def frames(steps: int, rows: int = 3, size: int = 5) -> torch.Tensor:
    return torch.rand(steps, rows, size, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def test_the_prediction_starts_at_the_prior_and_follows_the_mean_observation():
    net = PTNCN(5, [4], lr=0.0, **{**OPTIONS, "weight_std": 0.0})
    state, seen = net.begin(3), frames(4)
    for t, x in enumerate(seen):
        mean = (seen[:t].reshape(-1, 5).sum(0) + 0.5) / (3 * t + 1)
        torch.testing.assert_close(net.step(x, state).prediction, mean.expand(3, 5))


def test_the_mean_sets_the_bias_only_for_the_first_observations(monkeypatch):
    monkeypatch.setattr("ptncn.network.state.OPENING", 6)
    net = PTNCN(5, [4], lr=0.0, **OPTIONS)
    state = net.begin(3)
    biases = [net.step(x, state) and net.synapses()["c1"].clone() for x in frames(5)]
    assert not torch.equal(biases[0], biases[1])
    for later in biases[2:]:
        assert torch.equal(later, biases[1])


def test_steps_without_learning_change_no_statistics():
    net = PTNCN(5, [4, 3], **OPTIONS)
    state = net.begin(3)
    for x in frames(4):
        net.step(x, state)
    before = net.snapshot()
    for x in frames(4):
        net.step(x, state, learn=False)
    after = net.snapshot()
    assert torch.equal(before["feedback"]["square"], after["feedback"]["square"])
    assert torch.equal(before["mean_observation"]["total"], after["mean_observation"]["total"])
    assert torch.equal(before["weights"]["c1"], after["weights"]["c1"])


def test_an_output_bias_at_the_mean_requires_biases():
    with pytest.raises(ValueError, match="output_bias='mean': expected 'zero' where biases=False"):
        PTNCN(5, [4], output_bias="mean", biases=False)


def test_weights_stay_finite_if_there_is_never_an_error():
    net = PTNCN(2, [3], output="gaussian", teaching="small", biases=False)
    state = net.begin(1)
    for _ in range(3):
        net.step(torch.zeros(1, 2), state)
    assert all(math.isfinite(weight.sum()) for weight in net.synapses().values())


@pytest.mark.parametrize("activation", ["tanh", "sigmoid"])
def test_a_small_displacement_gives_the_gradient_if_e_is_the_transpose_of_w(activation):
    """In the limit e_z = φ′(a) ⊙ Wᵀ e / r: the gradient of back-propagation through the layer, up to scale."""
    net = PTNCN(
        6, [5], output="gaussian", teaching="small", displacement=1e-6, activation=activation, error_rule="fixed",
        rescale="none", max_norm=None, lr=1.0, weight_std=0.5, dtype=torch.float64,
    )  # fmt: skip
    net.synapses()["E1"].copy_(net.synapses()["W1"].T)
    state, (first, x) = net.begin(4), frames(2, 4, 6)
    net.step(first, state, learn=False)
    before = {name: weight.clone().requires_grad_() for name, weight in net.synapses().items()}
    x_old, y_old = state.corrected.split([6, 5], dim=1)
    a = x_old @ before["M1"].T + y_old @ before["V1"].T + before["b1"]
    e = torch.nn.functional.linear(net._phi[0](a), before["W1"], before["c1"]) - x
    (0.5 * e.square().sum()).backward()
    net.step(x, state)
    usual = (e.detach() @ before["W1"].detach()).square().mean().sqrt()
    for name in ("M1", "V1", "b1"):
        change = (before[name] - net.synapses()[name]).detach() * usual
        torch.testing.assert_close(change, before[name].grad, rtol=1e-5, atol=1e-6)
