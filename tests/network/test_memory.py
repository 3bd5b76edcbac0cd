"""Trace memory: its credit is the exact gradient through the whole past, and it behaves like any other state."""

import copy

import pytest
import torch

import ptncn
from ptncn import PTNCN
from ptncn.network import equations
from ptncn.network import memory as traces

EXACT = {
    "teaching": "small", "hidden_prediction": "identity", "rescale": "none", "error_rule": "fixed", "weight_std": 0.3,
    "beta": 0.3, "dtype": torch.float64,
}  # fmt: skip


def symbols(steps: int, rows: int, size: int = 7) -> torch.Tensor:
    rng = torch.Generator().manual_seed(3)
    drawn = torch.randint(size, (steps, rows), generator=rng)
    return torch.nn.functional.one_hot(drawn, size).double()


def infinitesimal(guess, y, back, squares, layers, config):
    """e_z = φ′(a) ⊙ E e for tanh: the limit of an infinitesimal displacement."""
    return [(1 - z.square()) * -returned for z, returned in zip(guess.z, back, strict=True)]


class Recorder:
    """Keeps the weights of a network fixed, and sums the updates of all steps."""

    def __init__(self, net: PTNCN, monkeypatch: pytest.MonkeyPatch) -> None:
        self.net, self.total, self.guesses = net, {}, []
        net.compiled = False
        monkeypatch.setattr(equations, "displacements", infinitesimal)
        monkeypatch.setattr(net.learning, "apply_updates", self.collect)
        for number in range(1, len(net.sizes)):
            net.synapses()[f"E{number}"].copy_(net.synapses()[f"W{number}"].T)

    def collect(self, weights, updates, batch_size):
        for name, factors in updates.items():
            self.total[name] = self.total.get(name, 0) + factors.dense()


def unrolled(net: PTNCN, layer: int, inputs, rests, targets, masks) -> dict[str, torch.Tensor]:
    """The gradient of the prediction error of one layer through the whole sequence."""
    weights = {
        name: net.get_parameter(f"{name}{layer}").clone().requires_grad_() for name in ("B", "rate", "angle", "G")
    }
    pace = weights["rate"].exp()
    decay = torch.exp(torch.complex(-pace, weights["angle"]))
    gain = torch.sqrt(1 - decay.abs() ** 2)
    writes = torch.complex(*weights["B"].chunk(2, dim=1))
    h, loss = torch.zeros(inputs.shape[1], len(pace), dtype=torch.complex128), 0.0
    seen = torch.zeros(inputs.shape[1], dtype=torch.bool)
    W, c = net.synapses()[f"W{layer}"], net.synapses()[f"c{layer}"]
    for u, rest, target, mask in zip(inputs, rests, targets, masks, strict=True):
        logits = torch.tanh(rest + torch.cat([h.real, h.imag], 1) @ weights["G"]) @ W.T + c
        fit = net.output.nll(logits, target) if layer == 1 else 0.5 * (logits - target).square().sum(-1)
        loss = loss + fit[seen & mask].sum()
        h = torch.where(mask[:, None], decay * h + gain * (u.to(writes.dtype) @ writes), h)
        seen = seen | mask
    loss.backward()
    return {f"{name}{layer}": weight.grad for name, weight in weights.items()}


@pytest.mark.parametrize("ragged", [False, True])
@pytest.mark.parametrize("layer", [1, 2])
def test_traces_give_the_gradient_through_the_whole_past(layer, ragged, monkeypatch):
    """Fifty steps with fixed weights and E = Wᵀ: updates equal the gradient of autograd through the unrolled memory."""
    net = PTNCN(7, [6, 5], output="categorical", memory=[4, 3], credit="trace", **EXACT)
    recorder = Recorder(net, monkeypatch)
    xs, state = symbols(50, 3), net.begin(3)
    masks = torch.rand(50, 3, generator=torch.Generator().manual_seed(1)) < (0.7 if ragged else 2.0)
    inputs, rests, targets = [], [], []
    for x, mask in zip(xs, masks, strict=True):
        guess = equations.predict(state.corrected, state.held, net.layers, net.output)
        rests.append(guess.a[layer - 1] - traces.recall(state.held, net.layers[layer - 1].memory))
        targets.append(x if layer == 1 else guess.z[0])
        net.step(x, state, mask=mask if ragged else None)
        inputs.append(state.corrected.split(net.sizes, dim=1)[layer - 1].clone())
    exact = unrolled(net, layer, torch.stack(inputs), rests, targets, masks)
    for name, gradient in exact.items():
        assert gradient.abs().max() > 1e-3
        torch.testing.assert_close(recorder.total[name].squeeze(0), gradient, rtol=0, atol=1e-9, msg=name)


@pytest.mark.parametrize("compiled", [True, False])
def test_what_is_recalled_is_added_to_the_drive(compiled):
    """The recurrence in complex numbers, one row at a time, next to a network with fixed weights."""
    net = PTNCN(7, [6], output="categorical", memory=4, dtype=torch.float64, weight_std=0.3)
    net.compiled = compiled
    w, B, G = net.synapses(), torch.complex(*net.get_parameter("B1").chunk(2, dim=1)), net.get_parameter("G1")
    decay = torch.exp(torch.complex(-net.get_parameter("rate1").exp(), net.get_parameter("angle1")))
    state, h, before = net.begin(1), torch.zeros(4, dtype=torch.complex128), torch.zeros(13, dtype=torch.float64)
    for x in symbols(20, 1)[:, 0]:
        drive = w["M1"] @ before[:7] + w["V1"] @ before[7:] + w["b1"]
        z = torch.tanh(drive + torch.cat([h.real, h.imag]) @ G)
        out = net.step(x[None], state, learn=False)
        torch.testing.assert_close(out.states[0][0], z, rtol=0, atol=1e-12)
        h, before = decay * h + torch.sqrt(1 - decay.abs() ** 2) * (x.to(B.dtype) @ B), state.corrected[0].clone()
    assert h.abs().max() > 0.1


def test_immediate_credit_is_the_gradient_of_the_last_input_alone(monkeypatch):
    net = PTNCN(7, [6], output="categorical", memory=4, credit="immediate", **EXACT)
    recorder = Recorder(net, monkeypatch)
    state = net.begin(3)
    xs = symbols(5, 3)
    for x in xs[:-1]:
        net.step(x, state, learn=False)
    B = net.get_parameter("B1").clone().requires_grad_()
    _, _, gain, _ = traces.decays(net.layers[0].memory)
    guess = equations.predict(state.corrected, state.held, net.layers, net.output)
    written = (xs[-2] @ (B - B.detach())).view(3, 2, 4) * gain  # zero, with a gradient
    a = guess.a[0] + written.flatten(1) @ net.get_parameter("G1")
    w = net.synapses()
    net.output.nll(torch.tanh(a) @ w["W1"].T + w["c1"], xs[-1]).sum().backward()
    net.step(xs[-1], state)
    torch.testing.assert_close(recorder.total["B1"], B.grad, rtol=0, atol=1e-12)
    assert "T_B1" not in state.held


def test_a_memory_of_size_zero_equals_no_memory_bit_for_bit():
    plain, none = (PTNCN(7, [6, 5], output="categorical", **extra) for extra in ({}, {"memory": [0, 0]}))
    first, second = plain.begin(2), none.begin(2)
    for x in symbols(8, 2).float():
        assert torch.equal(plain.step(x, first).prediction, none.step(x, second).prediction)
    assert second.held == {}
    for name, weight in plain.synapses().items():
        assert torch.equal(weight, none.synapses()[name])


def test_other_weights_do_not_depend_on_whether_there_is_a_memory():
    plain, other = PTNCN(7, [6, 5]), PTNCN(7, [6, 5], memory=[0, 3])
    for name, weight in plain.synapses().items():
        assert torch.equal(weight, other.synapses()[name])
    assert {"B2", "G2", "rate2", "angle2"} == other.synapses().keys() - plain.synapses().keys()


@pytest.mark.parametrize("credit", ["trace", "immediate"])
def test_rows_of_a_ragged_batch_equal_separate_sequences(credit):
    net = PTNCN(7, [6, 5], output="categorical", preset="best", memory=4, credit=credit, dtype=torch.float64)
    xs, state = symbols(12, 2), net.begin(2)
    masks = torch.rand(12, 2, generator=torch.Generator().manual_seed(2)) < 0.6
    for x, mask in zip(xs, masks, strict=True):
        net.step(x, state, learn=False, mask=mask)
    for row in range(2):
        alone = net.begin(1)
        for x in xs[masks[:, row], row]:
            net.step(x[None], alone, learn=False)
        for name, value in alone.held.items():
            torch.testing.assert_close(state.held[name][row], value[0], rtol=0, atol=1e-12)


def test_clones_are_independent_and_dreams_have_no_side_effects():
    net = PTNCN(7, [6], output="categorical", preset="best", memory=4)
    state = net.begin(2)
    for x in symbols(5, 2).float():
        net.step(x, state)
    before = copy.deepcopy(state.held)
    net.dream(state, 6, sample=True)
    other = state.clone()
    net.step(symbols(1, 2)[0].float(), other, learn=False)
    for name, value in before.items():
        assert torch.equal(state.held[name], value)
        assert not torch.equal(other.held[name], value)


def test_old_traces_do_not_become_denormal():
    net = PTNCN(3, [4], output="categorical", memory=8)
    state = net.begin(1)
    for _ in range(400):
        net.step(torch.tensor([[1.0, 0.0, 0.0]]), state, learn=False)
    smallest = state.held["T_B1"].abs()
    assert smallest[smallest > 0].min() > torch.finfo(torch.float32).tiny


def test_credit_is_immediate_if_traces_would_be_large():
    assert "T_B1" in PTNCN(49, [8], memory=128).begin(1).held
    assert "T_B1" not in PTNCN(4096, [8], memory=128).begin(1).held
    assert "T_B1" in PTNCN(4096, [8], memory=4, credit="trace").begin(1).held


def test_a_memory_learns_a_long_dependency():
    """The last of eight symbols repeats the first; those in between are noise."""
    rng = torch.Generator().manual_seed(0)

    def surprise(net: PTNCN) -> float:
        total = []
        for _ in range(250):
            drawn = torch.randint(2, (8, 20), generator=rng)
            drawn[0] += 2
            drawn[-1] = drawn[0]
            state = net.begin(20)
            for x in torch.nn.functional.one_hot(drawn, 4).float():
                out = net.step(x, state)
            total.append(net.output.nll(out.logits, x).mean().item())
        return sum(total[-20:]) / 20

    options = {"output": "categorical", "preset": "best", "lr": 0.005}
    assert surprise(PTNCN(4, [30], memory=16, **options)) < 0.1


@pytest.mark.parametrize(
    ("memory", "message"),
    [
        (-1, "memory: expected whole numbers of at least 0, got -1"),
        ([4], "memory: expected a whole number, or one for each of 2 layers, got \\[4\\]"),
        ("many", "memory: expected a whole number"),
        (True, "memory: expected whole numbers"),
    ],
)
def test_a_bad_memory_size_is_rejected(memory, message):
    with pytest.raises(ValueError, match=message):
        PTNCN(7, [6, 5], memory=memory)


def test_a_memory_follows_the_default_precision():
    torch.set_default_dtype(torch.float64)
    try:
        net = PTNCN(7, [6], memory=4)
        assert net.step(torch.zeros(1, 7), net.begin(1)).prediction.dtype is torch.float64
    finally:
        torch.set_default_dtype(torch.float32)


def test_a_state_without_memory_is_rejected():
    with pytest.raises(ValueError, match="state: expected memories"):
        PTNCN(7, [6], memory=4).step(torch.zeros(1, 7), PTNCN(7, [6]).begin(1))


def test_a_traced_matrix_keeps_no_queue_so_that_its_checkpoint_loads_into_the_kernel(monkeypatch, tmp_path):
    monkeypatch.setattr("ptncn.updates.factors.LARGE", 0)  # small matrices take the code path of large ones
    net = PTNCN(2, [3], memory=3, optimizer="sgd", credit="trace")
    net.compiled = False
    state = net.begin(1)
    for x in torch.rand(4, 1, 2):
        net.step(x, state)
    ptncn.save(tmp_path / "net.ckpt", net, state)
    loaded = ptncn.load(tmp_path / "net.ckpt")
    torch.testing.assert_close(loaded.learner.predict(loaded.state), net.predict(state))
