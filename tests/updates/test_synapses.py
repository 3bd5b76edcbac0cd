"""Postponed updates give the same numbers as immediate ones, at any time and after any other call."""

import pytest
import torch

import ptncn
from ptncn import PTNCN
from ptncn.updates import Synapses, factors


@pytest.fixture
def everything_is_large(monkeypatch, in_pytorch):
    monkeypatch.setattr(factors, "LARGE", 0)


@pytest.mark.usefixtures("everything_is_large")
@pytest.mark.parametrize("rows", [1, 3, 4, 5])
def test_products_include_the_queue(rows):
    rng = torch.Generator().manual_seed(0)
    draw = lambda *shape: torch.randn(shape, generator=rng, dtype=torch.float64)  # noqa: E731
    plain = draw(6, 5)
    queued = Synapses(plain.clone())
    longest = 0
    for t in range(100):
        pre, post, x, onto = draw(rows, 6), draw(rows, 5), draw(2, 6), draw(2, 5)
        keep = 0.9 if t == 50 else 1.0
        plain = keep * plain + 0.3 * pre.T @ post
        queued.add(pre, post, scale=0.3, keep=keep)
        longest = max(longest, queued.queued)
        torch.testing.assert_close(queued.send(x), x @ plain, rtol=0, atol=1e-10)
        torch.testing.assert_close(queued.send(x, onto, 0.7), onto + 0.7 * x @ plain, rtol=0, atol=1e-10)
        if t == 77:
            queued.write()
    torch.testing.assert_close(queued.write(), plain, rtol=0, atol=1e-10)
    assert (longest > 16) == (rows <= 4)  # larger batches are written at once


OPTIONS = {
    "temporal": {"lr": 0.002},  # small steps: rescaled differences of errors amplify rounding
    "clipped": {"rescale": "clip"},
    "not rescaled": {"rescale": "none", "error_rule": "transpose"},
    "fixed E": {"error_rule": "fixed"},
    "transpose": {"error_rule": "transpose"},
    "tight ball": {"max_norm": 0.15},
    "weight decay": {"weight_decay": 0.01},
    "three corrections": {"corrections": 3, "error_rule": "transpose"},
}


def run(options, steps=300, rows=1, read=None):
    net = PTNCN(7, [6, 5], dtype="float64", seed=2, biases=False, lam=0.0, **options)
    state = net.begin(rows)
    rng = torch.Generator().manual_seed(3)
    predictions = []
    for t in range(steps):
        x = torch.rand(rows, 7, generator=rng, dtype=torch.float64)
        predictions.append(net.step(x, state).prediction)
        if read is not None and t % 17 == 0:
            read(net)
    return torch.stack(predictions), {name: value.clone() for name, value in net.synapses().items()}


@pytest.mark.usefixtures("in_pytorch")
@pytest.mark.parametrize("rows", [1, 2])
@pytest.mark.parametrize("name", OPTIONS)
def test_three_hundred_postponed_steps_equal_immediate_ones(name, rows, monkeypatch):
    plain, weights = run(OPTIONS[name], rows=rows)
    monkeypatch.setattr(factors, "LARGE", 0)
    postponed, others = run(OPTIONS[name], rows=rows)
    torch.testing.assert_close(postponed, plain, rtol=0, atol=1e-10)
    for key, value in weights.items():
        torch.testing.assert_close(others[key], value, rtol=0, atol=1e-10)


@pytest.mark.usefixtures("everything_is_large")
@pytest.mark.parametrize("read", [PTNCN.state_dict, PTNCN.synapses, lambda net: list(net.parameters())])
def test_reading_the_weights_applies_queued_updates(read):
    net = PTNCN(7, [6, 5], max_norm=None)
    state = net.begin(1)
    for x in torch.rand(5, 1, 7, generator=torch.Generator().manual_seed(0)):
        net.step(x, state)
    assert net.layers[0].W.queued == 4
    read(net)
    assert net.layers[0].W.queued == 0
    plain, weights = run(OPTIONS["fixed E"])
    observed, others = run(OPTIONS["fixed E"], read=read)
    torch.testing.assert_close(observed, plain, rtol=0, atol=1e-10)
    torch.testing.assert_close(others["W1"], weights["W1"], rtol=0, atol=1e-10)


@pytest.mark.usefixtures("everything_is_large")
def test_a_checkpoint_with_a_queue_resumes_bit_for_bit(tmp_path):
    net = PTNCN(7, [6, 5], max_norm=None)
    state = net.begin(1)
    xs = torch.rand(60, 1, 7, generator=torch.Generator().manual_seed(0))
    for x in xs[:20]:
        net.step(x, state)
    ptncn.save(tmp_path / "run.ckpt", net, state)
    assert net.layers[0].W.queued == 19
    other, other_state, _ = ptncn.load(tmp_path / "run.ckpt")
    for x in xs[20:]:
        assert torch.equal(net.step(x, state).prediction, other.step(x, other_state).prediction)
    assert torch.equal(net.state_dict()["W1"], other.state_dict()["W1"])
