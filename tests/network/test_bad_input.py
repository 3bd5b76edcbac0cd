"""Bad input is rejected with a message that names it, before anything changes."""

import math

import pytest
import torch

from ptncn import PTNCN
from ptncn.updates import OPTIMIZERS


@pytest.fixture
def net():
    return PTNCN(4, [3, 2])


def assert_rejected(net, state, call, match):
    weights = {name: value.clone() for name, value in net.state_dict().items()}
    kept, steps = state.corrected.clone(), state.steps
    with pytest.raises(ValueError, match=match):
        call()
    assert all(torch.equal(value, weights[name]) for name, value in net.state_dict().items())
    assert torch.equal(state.corrected, kept)
    assert state.steps == steps


@pytest.mark.parametrize(
    ("x", "match"),
    [
        (torch.zeros(2, 5), r"observation: expected shape \(2, 4\), got \(2, 5\)"),
        (torch.zeros(3, 4), r"observation: expected shape \(2, 4\), got \(3, 4\)"),
        (torch.zeros(4), r"observation: expected shape \(2, 4\), got \(4,\)"),
        (torch.zeros(2, 4).to_sparse(), "observation: expected a dense tensor of real numbers, got .* in torch.sparse"),
        (
            torch.zeros(2, 4, dtype=torch.cfloat),
            "observation: expected a dense tensor of real numbers, got .*complex64",
        ),
        (
            torch.tensor([[0, 0, 0, 0], [0, math.nan, 0, 0]]),
            "expected finite numbers .* got 1 others; at row 1, column 1: nan",
        ),
        (torch.tensor([[0, 0, math.inf, 0], [0, 0, 0, 0]]), "expected finite numbers.* row 0, column 2: inf"),
        (torch.tensor([[0, 0, -math.inf, 0], [0, 0, math.inf, 0]]), "expected finite numbers .* got 2 others"),
    ],
)
def test_bad_observations(net, x, match):
    state = net.begin(2)
    net.step(torch.ones(2, 4), state)
    assert_rejected(net, state, lambda: net.step(x, state), match)


@pytest.mark.parametrize("columns", [4, 40])
def test_observations_whose_squares_overflow(columns):
    net = PTNCN(columns, [3])
    state, x = net.begin(1), torch.zeros(1, columns)
    x[0, 0], x[0, 1] = 1e16, -1e16  # which add up to 0
    assert_rejected(net, state, lambda: net.step(x, state), "expected finite numbers of at most 1e\\+15, got 2 others")


@pytest.mark.parametrize("path", [True, False])
@pytest.mark.parametrize("rescale", ["unit", "clip", "none"])
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_the_largest_observations_do_not_end_in_nan(path, rescale, optimizer):
    net = PTNCN(4, [6, 3], output="gaussian", optimizer=optimizer, rescale=rescale)
    net.compiled = path
    state = net.begin(1)
    for value in (1.0, 1e15, -1e15, 1.0, 1e9, 1e12, 0.0, 1.0):
        net.step(torch.full((1, 4), value), state)
    assert all(weight.isfinite().all() for weight in net.state_dict().values())


@pytest.mark.parametrize("mask", [torch.ones(3), torch.ones(2, 4), torch.ones(2, 1)])
def test_bad_masks(net, mask):
    state = net.begin(2)
    assert_rejected(net, state, lambda: net.step(torch.ones(2, 4), state, mask=mask), r"mask: expected shape \(2,\)")


@pytest.mark.parametrize(
    "value", [torch.ones(2, dtype=torch.bool).to_sparse(), "ab", [None, 1], torch.ones(2, device="meta"), object()]
)
def test_masks_and_observations_that_are_not_dense_numbers(net, value):
    state = net.begin(2)
    for call in (
        lambda: net.step(torch.zeros(2, net.input_size), state, mask=value),
        lambda: net.step(value, state),
    ):
        with pytest.raises(ValueError, match=r"mask: expected|observation: expected") as caught:
            call()
        assert "\n" not in str(caught.value)


def test_states_of_other_networks(net):
    x = torch.ones(2, 4)
    for other, match in [
        (PTNCN(4, [3]), "sizes"),
        (PTNCN(4, [3, 2], dtype="float64"), "float64"),
        (PTNCN(4, [3, 2], error_rule="fixed"), "the same error_rule"),
        (PTNCN(4, [3, 2], presynaptic="z"), "the same error_rule"),
    ]:
        state = other.begin(2)
        for call in (net.step, lambda x, s: net.predict(s), lambda x, s: net.dream(s, 2), lambda x, s: net.end(s)):
            assert_rejected(net, state, lambda call=call, state=state: call(x, state), match)
    with pytest.raises(ValueError, match="NoneType"):
        net.step(x, None)


@pytest.mark.parametrize("size", [0, -1, 2.5, True, "3"])
def test_bad_sizes(net, size):
    with pytest.raises(ValueError, match="sizes of layers: expected positive integers, got"):
        PTNCN(size, [3])
    with pytest.raises(ValueError, match="sizes of layers: expected positive integers, got"):
        PTNCN(3, [4, size])
    with pytest.raises(ValueError, match="batch_size"):
        net.begin(size)


@pytest.mark.parametrize("sizes", [[], 3, None])
def test_bad_lists_of_sizes(sizes):
    with pytest.raises(ValueError, match="hidden_sizes"):
        PTNCN(3, sizes)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"output": "poisson"}, "unknown distribution 'poisson'.*gaussian, bernoulli, categorical"),
        ({"preset": "mine"}, "unknown preset 'mine'.*paper, authors, best"),
        ({"activation": "tan"}, "unknown activation 'tan'.*tanh"),
        ({"activation": ["tanh"]}, "activation: expected one function, or one for each of 2 layers, got 1"),
        ({"hidden_prediction": "tan"}, "unknown activation 'tan'"),
        ({"betta": 0.1}, "unknown option 'betta'; did you mean 'beta'"),
        ({"optimizer": "sdg"}, "optimizer: expected one of sgd, momentum.*, got 'sdg'"),
        ({"rescale": "norm"}, "rescale: expected one of unit, clip, none, got 'norm'"),
        ({"lr": -0.1}, "lr: expected a finite number of at least 0.*, got -0.1"),
        ({"lr": "fast"}, "lr: expected a number, got 'fast'"),
        ({"lr": math.nan}, "lr: expected .*, got nan"),
        ({"beta": math.inf}, "beta: expected .*, got inf"),
        ({"momentum": 1.5}, "momentum: expected a finite number from 0.* to 1.*, got 1.5"),
        ({"corrections": 0}, "corrections: expected a finite number from 1 to 2147483647, got 0"),
        ({"corrections": 1.5}, "corrections: expected an integer, got 1.5"),
        ({"max_norm": 0}, "max_norm: expected .* above 0, got 0"),
        ({"radius": 0}, "radius: expected .* above 0, got 0"),
        ({"temporal_sign": 2}, "temporal_sign: expected one of .*, got 2"),
        ({"biases": 1}, "biases: expected True or False, got 1"),
        ({"schedule": {"kind": "cosine", "steps": -1}}, "at least 1 step"),
        ({"schedule": {"kind": "cosine", "steps": "9"}}, "at least 1 step, got '9'"),
        ({"schedule": {"kind": "cosine", "steps": 9, "final": "x"}}, "schedule: expected a finite number"),
        ({"schedule": {"kind": "cosine"}}, "schedule: expected a dict with final, kind, steps"),
        ({"schedule": "cosine"}, "schedule: expected a dict with final, kind, steps, or a function, got 'cosine'"),
        ({"dtype": "int8"}, "dtype: expected float32 or float64, got 'int8'"),
        ({"activation": 3}, "activation: expected one function, or one for each of 2 layers, got 3"),
        ({"seed": "7"}, "seed: expected an integer of 64 bits, got '7'"),
        ({"seed": 10**40}, "seed: expected an integer of 64 bits"),
        ({"batch_first": "no"}, "batch_first: expected True or False, got 'no'"),
        ({"lr": 10**400}, "lr: expected a finite number"),
        ({"corrections": 10**400}, "corrections: expected a finite number"),
        ({"memory": 10**400}, "memory: expected whole numbers"),
    ],
)
def test_bad_options(options, match):
    with pytest.raises(ValueError, match=match) as caught:
        PTNCN(4, [3, 2], **options)
    assert "\n" not in str(caught.value)


def test_bad_sequences(net):
    with pytest.raises(ValueError, match=r"\(4,\)"):
        net(torch.zeros(4))
    with pytest.raises(ValueError, match=r"mask: expected shape .*, got \(2, 5\)"):
        net(torch.zeros(5, 2, 4), mask=torch.ones(2, 5))


def test_bad_dreams():
    net = PTNCN(4, [3], output="gaussian")
    with pytest.raises(ValueError, match="steps: expected a number of at least 0, got -1"):
        net.dream(net.begin(1), -1)
    with pytest.raises(ValueError, match="gaussian"):
        net.dream(net.begin(1), 1, sample=True)
