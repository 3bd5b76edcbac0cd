"""The local optimisers against those of torch.optim, fed with the dense gradient."""

import pytest
import torch

from ptncn import kernels
from ptncn.network import Config
from ptncn.updates import OPTIMIZERS, Schedule, Synapses

ORACLES = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.1),
    "momentum": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9),
    "nesterov": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True),
    "rmsprop": lambda p: torch.optim.RMSprop(p, lr=0.1, alpha=0.97, eps=1e-6),
    "adam": lambda p: torch.optim.Adam(p, lr=0.1, betas=(0.8, 0.99), eps=1e-6),
}
SETTINGS = {
    "momentum": {"momentum": 0.9},
    "nesterov": {"momentum": 0.9},
    "rmsprop": {"alpha": 0.97, "eps": 1e-6},
    "adam": {"beta1": 0.8, "beta2": 0.99, "eps": 1e-6},
}


@pytest.fixture(params=["kernel", "pytorch"])
def with_and_without_kernel(request, monkeypatch):
    if request.param == "pytorch":
        monkeypatch.setattr(kernels, "load", lambda: None)
    elif kernels.load() is None:
        pytest.skip("the compiled kernel was not built: no C compiler")


def factors(steps: int, batch: int = 3):
    rng = torch.Generator().manual_seed(1)
    for _ in range(steps):
        yield tuple(torch.randn(batch, n, generator=rng, dtype=torch.float64) for n in (5, 4))


@pytest.mark.usefixtures("with_and_without_kernel")
@pytest.mark.parametrize("name", ORACLES)
def test_two_hundred_steps_agree_with_torch(name):
    weight = torch.randn(5, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    theirs = weight.clone().requires_grad_()
    oracle = ORACLES[name]([theirs])
    ours = OPTIMIZERS[name]({"W1": weight}, Config(optimizer=name, **SETTINGS.get(name, {})))
    for pre, post in factors(200):
        theirs.grad = pre.T @ post
        oracle.step()
        ours.step("W1", Synapses(weight), pre, post, lr=0.1, decay=0.0)
        ours.updates += 1
        torch.testing.assert_close(weight, theirs.detach(), rtol=0, atol=1e-10)


def test_adafactor_is_the_dense_rule_of_the_paper():
    """Row and column means of the dense squares, their outer product, a clipped step; in batches and alone."""
    for batch in (1, 3):
        weight = torch.randn(5, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
        dense, rows, columns = weight.clone(), torch.zeros(5, 1), torch.zeros(1, 4)
        ours = OPTIMIZERS["adafactor"]({"W1": weight}, Config(optimizer="adafactor", alpha=0.9, eps=0.0))
        longest = 0.0
        for t, (pre, post) in enumerate(factors(100, batch), start=1):
            post = post * (5.0 if t % 10 == 0 else 1.0)  # bursts, which are clipped
            gradient = pre.T @ post
            rows = 0.9 * rows + 0.1 * (gradient**2).mean(1, keepdim=True)
            columns = 0.9 * columns + 0.1 * (gradient**2).mean(0, keepdim=True)
            square = rows @ columns / rows.mean() / (1 - 0.9**t)
            step = gradient / square.sqrt()
            longest = max(longest, float(step.square().mean().sqrt()))
            dense = 0.99 * dense - 0.1 * step / step.square().mean().sqrt().clamp_min(1.0)
            ours.step("W1", Synapses(weight), pre, post, lr=0.1, decay=0.01)
            ours.updates += 1
            torch.testing.assert_close(weight, dense, rtol=0, atol=1e-10)
        assert longest > 1.5


@pytest.mark.parametrize("size", [0.0, 1e-22])
def test_adafactor_stays_finite_if_a_tiny_update_is_rescaled(size):
    """A saturated layer has a tiny update; rescaled to unit norm, one factor is huge and the other tiny."""
    weight = torch.ones(5, 4)
    ours = OPTIMIZERS["adafactor"]({"W1": weight}, Config(optimizer="adafactor"))
    ours.step("W1", Synapses(weight), torch.full((1, 5), 1e22), torch.full((1, 4), size), lr=0.1, decay=0.0)
    torch.testing.assert_close(weight, torch.full((5, 4), 0.9 if size else 1.0))


@pytest.mark.parametrize("name", [*ORACLES, "adafactor"])
def test_no_row_grows_beyond_the_stated_bound(name):
    """Gradients that are tiny for a long time and then burst are the worst case for adaptive steps."""
    weight = torch.zeros(5, 4, dtype=torch.float64)
    ours = OPTIMIZERS[name]({"W1": weight}, Config(optimizer=name, **SETTINGS.get(name, {})))
    for t, (pre, post) in enumerate(factors(300)):
        pre = pre * (1e-6 if t % 50 else 1.0)
        post = post / (pre.T @ post).norm()  # at most as long as `longest` says
        post = post * (1e-5 if t % 50 else 1.0)
        before = weight.norm(dim=1)
        bound = ours.growth(1.0, lr=0.1, width=4, height=5)
        ours.step("W1", Synapses(weight), pre, post, lr=0.1, decay=0.0)
        ours.updates += 1
        assert (weight.norm(dim=1) - before).max() <= bound * (1 + 1e-9)


@pytest.mark.usefixtures("with_and_without_kernel")
@pytest.mark.parametrize("name", ["momentum", "nesterov", "rmsprop", "adam"])
def test_moments_of_gradients_that_vanished_do_not_become_denormal(name):
    weight = torch.ones(5, 4)
    ours = OPTIMIZERS[name]({"W1": weight}, Config(optimizer=name, momentum=0.5, alpha=0.5, beta1=0.5, beta2=0.5))
    tiny = torch.finfo(torch.float32).tiny
    for t in range(400):
        post = torch.ones(2, 4) if t == 0 else torch.zeros(2, 4)
        ours.step("W1", Synapses(weight), torch.ones(2, 5), post, lr=0.01, decay=0.0)
        ours.updates += 1
        for value in ours.held("W1"):
            assert not ((value != 0) & (value.abs() < tiny)).any()
    settled = weight.clone()
    ours.step("W1", Synapses(weight), torch.ones(2, 5), torch.zeros(2, 4), lr=0.01, decay=0.0)
    assert torch.equal(weight, settled)


@pytest.mark.parametrize(
    ("kind", "halfway"), [("linear", 0.55), ("cosine", 0.55), ("exponential", pytest.approx(0.1**0.5))]
)
def test_schedules_go_from_one_to_their_final_value(kind, halfway):
    schedule = Schedule(kind, steps=10, final=0.1)
    assert schedule(0) == 1
    assert schedule(5) == pytest.approx(0.55) if kind != "exponential" else schedule(5) == halfway
    assert schedule(10) == schedule(99) == pytest.approx(0.1)


@pytest.mark.parametrize(("kind", "steps", "final"), [("quadratic", 5, 0), ("linear", 0, 0), ("exponential", 5, 0)])
def test_impossible_schedules_are_rejected(kind, steps, final):
    with pytest.raises(ValueError, match=r"schedule"):
        Schedule(kind, steps, final)


@pytest.mark.skipif(kernels.load() is None, reason="the compiled kernel was not built: no C compiler")
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", ["momentum", "nesterov", "rmsprop", "adam"])
def test_large_matrices_shared_by_threads_agree_with_pytorch(name, dtype, monkeypatch):
    """More columns than a block holds, rows that do not divide by four or by the threads."""
    rng = torch.Generator().manual_seed(0)
    start = torch.randn(131, 1031, generator=rng, dtype=dtype)
    pairs = [[torch.randn(20, n, generator=rng, dtype=dtype) for n in start.shape] for _ in range(5)]
    monkeypatch.setattr(torch, "get_num_threads", lambda: 3)
    results = []
    for library in (kernels.load(), None):
        monkeypatch.setattr(kernels, "load", lambda library=library: library)
        weight = start.clone()
        ours = OPTIMIZERS[name]({"W1": weight}, Config(optimizer=name))
        for pre, post in pairs:
            ours.step("W1", Synapses(weight), pre, post, lr=0.01, decay=0.001)
            ours.updates += 1
        results.append(weight)
    torch.testing.assert_close(*results, rtol=0, atol=1e-10 if dtype == torch.float64 else 2e-5)
