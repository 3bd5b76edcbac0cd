"""The compiled kernel gives the same numbers as PyTorch, and leaves options that it does not support to PyTorch."""

import pytest
import torch

from ptncn import PTNCN, kernels
from ptncn.network import backend
from ptncn.updates import OPTIMIZERS, factors

pytestmark = pytest.mark.skipif(kernels.load() is None, reason="the compiled kernel was not built: no C compiler")

RULES = {
    "sgd": {"error_rule": "transpose", "lr": 0.02},
    "clip": {"rescale": "clip", "reduction": "mean", "error_rule": "transpose"},
    "not rescaled": {"rescale": "none", "lr": 0.01, "error_rule": "transpose"},
    "temporal": {"lr": 0.002},
    "momentum": {"optimizer": "momentum", "lr": 0.003, "error_rule": "fixed"},
    "authors": {"preset": "authors"},
    "rmsprop": {"optimizer": "rmsprop", "lr": 0.001, "rescale": "none", "error_rule": "transpose"},
    "adam": {"optimizer": "adam", "lr": 0.001, "rescale": "none", "error_rule": "transpose"},
    "adafactor": {"optimizer": "adafactor", "lr": 0.001, "rescale": "none", "error_rule": "transpose"},
    "adafactor clip": {"optimizer": "adafactor", "lr": 0.001, "rescale": "clip", "reduction": "mean", "max_norm": 0.3},
    "tight ball": {"max_norm": 0.2, "lr": 0.005, "error_rule": "transpose"},
    "decay": {"weight_decay": 0.05, "error_rule": "transpose"},
    "small": {"teaching": "small", "lr": 0.001, "rescale": "none", "error_rule": "transpose"},
    "small temporal": {"teaching": "small", "lr": 0.0005, "displacement": 0.3, "corrections": 2},
    "small signs": {"teaching": "small", "activation": "sign", "lr": 0.001, "error_rule": "transpose"},
    "best": {"preset": "best"},
    "corrections": {"corrections": 3, "lr": 0.005, "error_rule": "transpose"},
}
STEPS = 120
"""Enough for the queue of postponed updates to be applied several times."""
ACTIVATIONS = ["identity", "tanh", "sigmoid", "relu", "relu6", "leaky_relu", "gelu", "sign", "step"]


def run(options, rows, steps, masks=()):
    net = PTNCN(7, [9, 6, 5], dtype="float64", seed=2, **options)
    state = net.begin(rows)
    rng = torch.Generator().manual_seed(3)
    outputs = []
    for t in range(steps):
        x = torch.rand(rows, 7, generator=rng, dtype=torch.float64)
        mask = torch.arange(rows) != 0 if t in masks else None
        out = net.step(x, state, mask=mask)
        outputs.append(torch.cat([out.prediction, out.logits, *out.errors, *out.states, *out.corrected], dim=1))
    return net, state, torch.stack(outputs)


@pytest.mark.parametrize("rows", [1, 3, 11])
@pytest.mark.parametrize("rule", RULES)
def test_many_steps_give_the_same_numbers(rule, rows, request):
    fast, fast_state, outputs = run(RULES[rule], rows, STEPS)
    assert fast._backend()[1] is not None
    request.getfixturevalue("in_pytorch")
    plain, plain_state, expected = run(RULES[rule], rows, STEPS)
    assert plain._backend()[1] is None
    torch.testing.assert_close(outputs, expected, rtol=0, atol=1e-10)
    torch.testing.assert_close(fast_state.corrected, plain_state.corrected, rtol=0, atol=1e-10)
    for name, weight in plain.synapses().items():
        torch.testing.assert_close(fast.synapses()[name], weight, rtol=0, atol=1e-10)


@pytest.mark.parametrize("rows", [1, 3, 11])
@pytest.mark.parametrize("rule", ["sgd", "temporal", "authors", "adam", "adafactor", "small", "small temporal", "mean"])
def test_ragged_batches_give_the_same_numbers(rule, rows, request):
    """Masks that change at every step: rows start late, pause and end."""
    options = RULES.get(rule, {"reduction": "mean", "presynaptic": "z", "lr": 0.01})
    results = []
    for _ in ("kernel", "pytorch"):
        net = PTNCN(7, [9, 6, 5], dtype="float64", seed=2, **options)
        state, rng, outputs = net.begin(rows), torch.Generator().manual_seed(4), []
        for t in range(100):
            x = torch.rand(rows, 7, generator=rng, dtype=torch.float64)
            mask = torch.rand(rows, generator=rng) < 0.7 if t % 5 else None
            out = net.step(x, state, mask=mask, learn=t % 7 != 3)
            outputs.append(torch.cat([out.prediction, *out.errors, *out.states, *out.corrected], dim=1))
        results.append((torch.stack(outputs), state.corrected, net.synapses()))
        request.getfixturevalue("in_pytorch")
    torch.testing.assert_close(results[0][:2], results[1][:2], rtol=0, atol=1e-10)
    for name, weight in results[1][2].items():
        torch.testing.assert_close(results[0][2][name], weight, rtol=0, atol=1e-10)


MEMORY_RULES = {
    "best": {"preset": "best"},
    "unit": {"error_rule": "transpose", "lr": 0.01},
    "clip": {"rescale": "clip", "radius": 0.01, "reduction": "mean", "error_rule": "transpose", "weight_decay": 0.05},
    "nesterov": {"optimizer": "nesterov", "lr": 0.003, "reduction": "sum_then_mean", "max_norm": 0.3},
    "adafactor": {"optimizer": "adafactor", "lr": 0.001, "rescale": "clip", "reduction": "mean", "teaching": "small"},
}


def run_with_memories(options, rows, steps=60, compiled=True):
    """Run a ragged batch through a network with memories in layers 1 and 3; some steps do not learn."""
    net = PTNCN(7, [9, 6, 5], dtype="float64", seed=2, memory=[4, 0, 3], **options)
    net.compiled = compiled
    state, rng, outputs = net.begin(rows), torch.Generator().manual_seed(4), []
    for t in range(steps):
        x = torch.rand(rows, 7, generator=rng, dtype=torch.float64)
        mask = torch.rand(rows, generator=rng) < 0.7 if t % 5 else None
        out = net.step(x, state, mask=mask, learn=t % 7 != 3)
        outputs.append(torch.cat([out.prediction, *out.errors, *out.corrected, net.predict(state)], dim=1))
    assert (net._backend()[1] is not None) == compiled
    return {"outputs": torch.stack(outputs), **state.held, **net.synapses()}


@pytest.mark.parametrize("rows", [1, 3, 11])
@pytest.mark.parametrize("credit", ["trace", "immediate"])
@pytest.mark.parametrize("rule", MEMORY_RULES)
def test_networks_with_memories_give_the_same_numbers(rule, credit, rows):
    options = {**MEMORY_RULES[rule], "credit": credit}
    fast, plain = run_with_memories(options, rows), run_with_memories(options, rows, compiled=False)
    for name, value in plain.items():
        torch.testing.assert_close(fast[name], value, rtol=0, atol=1e-10, msg=name)


@pytest.mark.parametrize("credit", ["trace", "immediate"])
@pytest.mark.parametrize("rows", [1, 4])
def test_large_memories_queue_updates_and_use_threads(rows, credit, monkeypatch):
    """Everything counts as large, so that products include the queues."""
    options = {"error_rule": "transpose", "lr": 0.01, "credit": credit}
    plain = run_with_memories(options, rows, compiled=False)
    monkeypatch.setattr(factors, "LARGE", 0)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 3)
    fast = run_with_memories(options, rows)
    for name, value in plain.items():
        torch.testing.assert_close(fast[name], value, rtol=0, atol=1e-10, msg=name)


def test_a_memory_of_the_size_used_for_text_gives_the_same_numbers_in_float32():
    outputs = []
    for compiled in (True, False):
        net = PTNCN(49, [64], output="categorical", preset="best", memory=40, lr=1e-4)
        net.compiled = compiled
        state, rng = net.begin(13), torch.Generator().manual_seed(1)
        for _ in range(20):
            drawn = torch.randint(49, (13,), generator=rng)
            out = net.step(torch.nn.functional.one_hot(drawn, 49).float(), state)
        outputs.append((out.prediction, state.held["T_B1"], net.synapses()["B1"]))
    torch.testing.assert_close(outputs[0], outputs[1], rtol=1e-3, atol=1e-5)


def test_the_batch_size_may_change_between_sequences_with_a_memory():
    net, twin = (PTNCN(7, [9], dtype="float64", preset="best", memory=4) for _ in range(2))
    twin.compiled = False
    for rows in (3, 1, 5):
        rng = torch.Generator().manual_seed(rows)
        state, other = net.begin(rows), twin.begin(rows)
        for _ in range(8):
            x = torch.rand(rows, 7, generator=rng, dtype=torch.float64)
            torch.testing.assert_close(
                net.step(x, state).prediction, twin.step(x, other).prediction, rtol=0, atol=1e-12
            )


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_each_activation_gives_the_same_numbers(activation, request):
    options = {"activation": activation, "hidden_prediction": "tanh", "lr": 0.001, "error_rule": "transpose"}
    fast, _, outputs = run(options, 2, 40)
    assert fast._backend()[1] is not None
    request.getfixturevalue("in_pytorch")
    torch.testing.assert_close(outputs, run(options, 2, 40)[2], rtol=0, atol=1e-10)


def test_weights_stay_within_max_norm_despite_masked_steps():
    net, _, _ = run({"max_norm": 0.2}, 3, 60, masks=(20, 40))
    for name, weight in net.synapses().items():
        if weight.dim() == 2:
            assert weight.norm(dim=0).max() <= 0.2 + 1e-12, name


@pytest.mark.parametrize(
    "options", [{"xi": 0.1}, {"activation": "kwta"}, {"activation": "bernoulli"}, {"activation": torch.sin}]
)
def test_options_that_the_kernel_does_not_support_run_in_pytorch(options):
    assert PTNCN(7, [5], **options)._backend()[1] is None


@pytest.mark.parametrize(("rows", "threads"), [(1, 1), (1, 3), (2, 3), (4, 1)])
@pytest.mark.parametrize("rule", ["sgd", "clip", "temporal", "tight ball", "corrections", "adafactor"])
def test_large_networks_queue_updates_in_the_kernel(rule, rows, threads, monkeypatch, request):
    """Everything counts as large: all matrices have queues, and are read by several threads."""
    monkeypatch.setattr(backend, "SMALL", 0)
    monkeypatch.setattr(factors, "LARGE", 0)
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    fast, _, outputs = run(RULES[rule], rows, STEPS)
    assert fast._backend()[1] is not None
    assert rule == "tight ball" or fast.layers[0].W.queued > 0
    monkeypatch.setattr(factors, "LARGE", 1 << 19)
    request.getfixturevalue("in_pytorch")
    plain, _, expected = run(RULES[rule], rows, STEPS)
    torch.testing.assert_close(outputs, expected, rtol=0, atol=1e-10)
    for name, weight in plain.synapses().items():
        torch.testing.assert_close(fast.synapses()[name], weight, rtol=0, atol=1e-10)


LARGE_RULES = {
    "sgd": {"error_rule": "transpose", "lr": 0.01},
    "fixed": {"error_rule": "fixed", "biases": False, "lr": 0.01},
    "temporal": {"lr": 0.002},
    "authors": {"preset": "authors", "lr": 0.01},
    "decay": {"weight_decay": 0.05, "lr": 0.01},
    "rmsprop": {"optimizer": "rmsprop", "lr": 1e-4, "rescale": "none", "reduction": "mean"},
    "adam": {"optimizer": "adam", "lr": 1e-4, "error_rule": "transpose"},
    "adafactor": {"optimizer": "adafactor", "lr": 1e-4, "rescale": "none", "error_rule": "transpose"},
    "small": {"teaching": "small", "optimizer": "rmsprop", "lr": 1e-4, "rescale": "none", "error_rule": "transpose"},
}


@pytest.mark.parametrize(("rows", "threads"), [(1, 2), (2, 1), (3, 1), (20, 2), (300, 1)])
@pytest.mark.parametrize("rule", LARGE_RULES)
def test_a_very_large_network_gives_the_same_numbers(rule, rows, threads, monkeypatch, request):
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    outputs, weights = [], []
    for path in ("kernel", "pytorch"):
        net = PTNCN(500, [400, 150], dtype="float64", max_norm=0.6, **LARGE_RULES[rule])
        state, rng, steps = net.begin(rows), torch.Generator().manual_seed(0), 25 if rows <= 3 else 8
        xs = torch.rand(steps, rows, 500, generator=rng, dtype=torch.float64) * (
            torch.rand(steps, rows, 500, generator=rng, dtype=torch.float64) < 0.2
        )
        outputs.append(torch.stack([net.step(x, state).prediction for x in xs]))
        weights.append(net.synapses())
        assert (net._backend()[1] is None) == (path == "pytorch")
        request.getfixturevalue("in_pytorch")
    torch.testing.assert_close(*outputs, rtol=0, atol=1e-10)
    for name, weight in weights[0].items():
        torch.testing.assert_close(weight, weights[1][name], rtol=0, atol=1e-10)
        assert weight.dim() == 1 or weight.norm(dim=0).max() <= 0.6 + 1e-9, name


@pytest.mark.parametrize("activation", ["tanh", "sigmoid"])
def test_the_single_precision_activations_of_the_kernel_are_accurate(activation):
    """Within a few units in the last place over the whole range of drives, which the biases set."""
    sizes = torch.logspace(-6, 2, 1_000)
    drives = torch.cat([torch.linspace(-12, 12, 4_001), sizes, -sizes])
    net = PTNCN(1, [len(drives)], output="gaussian", activation=activation)
    net.synapses()["b1"][:] = drives
    z = net.step(torch.zeros(1, 1), net.begin(1), learn=False).states[0][0]
    exact = getattr(torch, activation)(drives.double())
    torch.testing.assert_close(z.double(), exact, rtol=5e-7, atol=1e-37)


def test_the_kernel_can_be_switched_off(monkeypatch):
    monkeypatch.setenv("PTNCN_KERNEL", "0")
    kernels.load.cache_clear()
    try:
        assert PTNCN(7, [5])._backend()[1] is None
    finally:
        kernels.load.cache_clear()


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_each_step_of_an_unstable_trajectory_agrees(optimizer):
    """At a large step size rounding is amplified from step to step, so each step starts from the kernel's weights."""
    fast, plain = (PTNCN(5, [9, 6], optimizer=optimizer, lr=0.05, dtype="float64", seed=1) for _ in range(2))
    plain.compiled = False
    state, rng = fast.begin(1), torch.Generator().manual_seed(3)
    for _ in range(60):
        plain.restore(fast.snapshot())
        twin, x = state.clone(), torch.rand(1, 5, generator=rng, dtype=torch.float64)
        fast.step(x, state)
        plain.step(x, twin)
        torch.testing.assert_close(state.corrected, twin.corrected, rtol=0, atol=1e-9)
        for name, weight in plain.synapses().items():
            torch.testing.assert_close(fast.synapses()[name], weight, rtol=0, atol=1e-7)
