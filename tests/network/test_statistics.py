"""The usual size of returned errors, and the mean observation: online, part of the learner, never a look ahead."""

import math

import pytest
import torch

import ptncn
from ptncn import PTNCN
from ptncn.network import statistics

OPTIONS = {"teaching": "small", "output_bias": "mean", "weight_std": 0.3, "dtype": torch.float64}


def frames(steps: int, rows: int = 3, size: int = 5) -> torch.Tensor:
    return torch.rand(steps, rows, size, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def test_the_first_prediction_knows_nothing_and_the_next_the_mean_of_what_was_seen():
    net = PTNCN(5, [4], lr=0.0, **{**OPTIONS, "weight_std": 0.0})
    state, seen = net.begin(3), frames(4)
    for t, x in enumerate(seen):
        mean = (seen[:t].reshape(-1, 5).sum(0) + 0.5) / (3 * t + 1)
        torch.testing.assert_close(net.step(x, state).prediction, mean.expand(3, 5))


def test_the_bias_is_left_alone_once_the_mean_is_known(monkeypatch):
    monkeypatch.setattr(statistics, "OPENING", 6)
    net = PTNCN(5, [4], lr=0.0, **OPTIONS)
    state = net.begin(3)
    biases = [net.step(x, state) and net.synapses()["c1"].clone() for x in frames(5)]
    assert not torch.equal(biases[0], biases[1])
    for later in biases[2:]:
        assert torch.equal(later, biases[1])


def test_nothing_is_kept_of_steps_that_do_not_learn():
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


def test_a_checkpoint_goes_on_to_the_bit(tmp_path):
    net = PTNCN(5, [4, 3], optimizer="rmsprop", **OPTIONS)
    state = net.begin(3)
    for x in frames(5):
        net.step(x, state)
    ptncn.save(tmp_path / "net", net, state)
    twin, twin_state, _ = ptncn.load(tmp_path / "net")
    for x in frames(9)[5:]:
        assert torch.equal(net.step(x, state).prediction, twin.step(x, twin_state).prediction)
    for name, weight in net.synapses().items():
        assert torch.equal(weight, twin.synapses()[name])


def test_a_bias_at_the_mean_needs_biases():
    with pytest.raises(ValueError, match="output_bias='mean': expected 'zero' where biases=False"):
        PTNCN(5, [4], output_bias="mean", biases=False)


def test_no_error_at_all_displaces_nothing():
    net = PTNCN(2, [3], output="gaussian", teaching="small", biases=False)
    state = net.begin(1)
    for _ in range(3):
        net.step(torch.zeros(1, 2), state)
    assert all(math.isfinite(weight.sum()) for weight in net.synapses().values())


@pytest.mark.parametrize("activation", ["tanh", "sigmoid"])
def test_a_small_displacement_gives_the_gradient_where_e_is_the_transpose_of_w(activation):
    """In the limit e_z = φ′(a) ⊙ Wᵀ e / r: what back-propagation through the layer would teach, up to its size."""
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
        taught = (before[name] - net.synapses()[name]).detach() * usual
        torch.testing.assert_close(taught, before[name].grad, rtol=1e-5, atol=1e-6)
