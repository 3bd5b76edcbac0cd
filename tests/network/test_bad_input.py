"""Bad input is refused by name, before anything is changed."""

import math

import pytest
import torch

from ptncn import PTNCN


@pytest.fixture
def net():
    return PTNCN(4, [3, 2])


def unchanged_by(net, state, act, match):
    weights = {name: value.clone() for name, value in net.state_dict().items()}
    kept, steps = state.corrected.clone(), state.steps
    with pytest.raises(ValueError, match=match):
        act()
    assert all(torch.equal(value, weights[name]) for name, value in net.state_dict().items())
    assert torch.equal(state.corrected, kept)
    assert state.steps == steps


@pytest.mark.parametrize(
    ("x", "match"),
    [
        (torch.zeros(2, 5), r"\(2, 5\).*\(2, 4\)"),
        (torch.zeros(3, 4), r"\(3, 4\).*\(2, 4\)"),
        (torch.zeros(4), r"\(4,\).*\(2, 4\)"),
        (torch.tensor([[0, 0, 0, 0], [0, math.nan, 0, 0]]), "not finite.*row 1, column 1: nan"),
        (torch.tensor([[0, 0, math.inf, 0], [0, 0, 0, 0]]), "not finite.*row 0, column 2: inf"),
        (torch.tensor([[0, 0, -math.inf, 0], [0, 0, math.inf, 0]]), "2 values that are not finite"),
    ],
)
def test_observations(net, x, match):
    state = net.begin(2)
    net.step(torch.ones(2, 4), state)
    unchanged_by(net, state, lambda: net.step(x, state), match)


def test_large_observations_whose_sum_overflows_are_finite_all_the_same(net):
    net.step(torch.full((2, 4), 3e38), net.begin(2), learn=False)


@pytest.mark.parametrize("mask", [torch.ones(3), torch.ones(2, 4), torch.ones(2, 1)])
def test_masks(net, mask):
    state = net.begin(2)
    unchanged_by(net, state, lambda: net.step(torch.ones(2, 4), state, mask=mask), r"mask has shape.*\(2,\)")


def test_states_of_other_networks(net):
    x = torch.ones(2, 4)
    for other, match in [
        (PTNCN(4, [3]), "sizes"),
        (PTNCN(4, [3, 2], dtype="float64"), "float64"),
        (PTNCN(4, [3, 2], error_rule="fixed"), "other rules"),
        (PTNCN(4, [3, 2], presynaptic="z"), "other rules"),
    ]:
        state = other.begin(2)
        for act in (net.step, lambda x, s: net.predict(s), lambda x, s: net.dream(s, 2), lambda x, s: net.end(s)):
            unchanged_by(net, state, lambda act=act, state=state: act(x, state), match)
    with pytest.raises(ValueError, match="NoneType"):
        net.step(x, None)


@pytest.mark.parametrize("size", [0, -1, 2.5, True, "3"])
def test_sizes(net, size):
    with pytest.raises(ValueError, match="units"):
        PTNCN(size, [3])
    with pytest.raises(ValueError, match="units"):
        PTNCN(3, [4, size])
    with pytest.raises(ValueError, match="batch_size"):
        net.begin(size)


@pytest.mark.parametrize("sizes", [[], 3, None])
def test_lists_of_sizes(sizes):
    with pytest.raises(ValueError, match="hidden_sizes"):
        PTNCN(3, sizes)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"output": "poisson"}, "unknown distribution 'poisson'.*gaussian, bernoulli, categorical"),
        ({"preset": "mine"}, "unknown preset 'mine'.*paper, authors, best"),
        ({"activation": "tan"}, "unknown activation 'tan'.*tanh"),
        ({"activation": ["tanh"]}, "1 functions.*2 layers"),
        ({"hidden_prediction": "tan"}, "unknown activation 'tan'"),
        ({"betta": 0.1}, "unknown option 'betta'; did you mean 'beta'"),
        ({"optimizer": "sdg"}, "optimizer='sdg'.*sgd, momentum"),
        ({"rescale": "norm"}, "rescale='norm'.*unit, clip, none"),
        ({"lr": -0.1}, "lr=-0.1.*at least 0"),
        ({"lr": "fast"}, "lr='fast'.*number"),
        ({"lr": math.nan}, "lr=nan"),
        ({"beta": math.inf}, "beta=inf"),
        ({"momentum": 1.5}, "momentum=1.5.*from 0 to 1"),
        ({"corrections": 0}, "corrections=0"),
        ({"corrections": 1.5}, "corrections=1.5.*whole"),
        ({"max_norm": 0}, "max_norm=0"),
        ({"radius": 0}, "radius=0"),
        ({"temporal_sign": 2}, "temporal_sign=2"),
        ({"biases": 1}, "biases=1.*True or False"),
        ({"schedule": {"kind": "cosine", "steps": -1}}, "at least 1 step"),
        ({"dtype": "int8"}, "dtype='int8'"),
    ],
)
def test_options(options, match):
    with pytest.raises(ValueError, match=match):
        PTNCN(4, [3, 2], **options)


def test_sequences(net):
    with pytest.raises(ValueError, match=r"\(4,\)"):
        net(torch.zeros(4))
    with pytest.raises(ValueError, match=r"mask has shape \(2, 5\)"):
        net(torch.zeros(5, 2, 4), mask=torch.ones(2, 5))


def test_dreams():
    net = PTNCN(4, [3], output="gaussian")
    with pytest.raises(ValueError, match="steps=-1"):
        net.dream(net.begin(1), -1)
    with pytest.raises(ValueError, match="gaussian"):
        net.dream(net.begin(1), 1, sample=True)
