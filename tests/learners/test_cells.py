"""Cells against torch's own modules and against the equations written out."""

import pytest
import torch
from torch import Tensor, nn

from ptncn.learners.cells import CELLS, make_cell, make_readout

N, H, B, T = 3, 5, 2, 7
TORCH = {"lstm": nn.LSTM, "gru": nn.GRU, "rnn": nn.RNN}
F64 = torch.float64


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def frames() -> Tensor:
    return torch.randn(T, B, N, generator=generator(1), dtype=F64)


@pytest.mark.parametrize("name", TORCH)
def test_a_cell_with_the_weights_of_the_torch_module_gives_its_results(name: str) -> None:
    theirs = TORCH[name](N, H, dtype=F64)
    ours = make_cell(name, N, H, generator(), dtype=F64)
    ours.load_state_dict(theirs.state_dict())
    expected, last = theirs(frames())
    visible, hidden = ours.unroll(frames(), ours.begin(B))
    assert torch.equal(visible, expected)
    for part, expected_part in zip(hidden, last if name == "lstm" else (last,), strict=True):
        assert torch.equal(part, expected_part[0])


@pytest.mark.parametrize(("name", "depth"), [*((name, 1) for name in CELLS), ("rhn", 3)])
def test_unrolling_equals_stepping_in_values_and_gradients(name: str, depth: int) -> None:
    cell = make_cell(name, N, H, generator(), depth=depth, dtype=F64)
    fused, last = cell.unroll(frames(), cell.begin(B))
    hidden, visible = cell.begin(B), []
    for x in frames():
        hidden = cell(x, hidden)
        visible.append(hidden[0])
    assert torch.allclose(torch.stack(visible), fused, rtol=0, atol=1e-14)
    assert all(torch.allclose(a, b, rtol=0, atol=1e-14) for a, b in zip(hidden, last, strict=True))
    weights = list(cell.parameters())
    one = torch.autograd.grad(fused.square().sum(), weights)
    other = torch.autograd.grad(torch.stack(visible).square().sum(), weights)
    assert all(torch.allclose(a, b, rtol=0, atol=1e-12) for a, b in zip(one, other, strict=True))


def test_the_highway_network_computes_the_equations_of_its_paper() -> None:
    cell = make_cell("rhn", N, H, generator(), depth=2, dtype=F64)
    x, s = frames()[0], torch.randn(B, H, generator=generator(2), dtype=F64)
    (result,) = cell(x, (s,))
    w_h, w_t = cell.weight_ih_l0.split(H)
    for layer in range(2):
        r_h, r_t = cell.get_parameter(f"weight_hh_l{layer}").split(H)
        b_h, b_t = cell.get_parameter(f"bias_hh_l{layer}").split(H)
        candidate, transform = s @ r_h.T + b_h, s @ r_t.T + b_t
        if layer == 0:
            candidate, transform = candidate + x @ w_h.T, transform + x @ w_t.T
        t = torch.sigmoid(transform)
        s = torch.tanh(candidate) * t + s * (1 - t)
    assert torch.allclose(result, s, rtol=0, atol=1e-15)


@pytest.mark.parametrize("name", CELLS)
def test_weights_are_uniform_within_torchs_bound(name: str) -> None:
    cell = make_cell(name, 40, 100, generator())
    weights = torch.cat([w.flatten() for n, w in cell.named_parameters() if n.startswith("weight")])
    assert weights.abs().max() <= 0.1
    assert abs(weights.mean()) < 0.001
    assert abs(weights.std() - 0.1 / 3**0.5) < 0.001


@pytest.mark.parametrize(("name", "default"), [("lstm", 1.0), ("gru", 0.0), ("rhn", -2.0)])
@pytest.mark.parametrize("gate_bias", [None, 0.5])
def test_the_gate_that_keeps_the_past_starts_with_its_bias(name: str, default: float, gate_bias: float | None) -> None:
    cell = make_cell(name, N, H, generator(), gate_bias=gate_bias)
    biases = [b for n, b in cell.named_parameters() if n.startswith("bias")]
    assert torch.equal(sum(biases)[H : 2 * H], torch.full((H,), default if gate_bias is None else gate_bias))


def test_a_seed_gives_the_same_weights_in_either_precision() -> None:
    single, double = (make_cell("gru", N, H, generator(), dtype=dtype) for dtype in (torch.float32, F64))
    for a, b in zip(single.parameters(), double.parameters(), strict=True):
        assert torch.equal(a, b.float())


@pytest.mark.parametrize("name", CELLS)
def test_making_a_cell_and_a_readout_does_not_use_the_global_generator(name: str) -> None:
    before = torch.get_rng_state()
    make_cell(name, N, H, generator())
    make_readout(H, N, generator())
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": "lstn"}, "'lstn'.*lstm, gru, rnn, rhn"),
        ({"name": "lstm", "depth": 2}, "depth: expected 1"),
        ({"name": "rnn", "gate_bias": 1.0}, "gate_bias: expected None"),
    ],
)
def test_impossible_options_of_a_cell_are_reported(arguments: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make_cell(input_size=N, hidden_size=H, generator=generator(), **arguments)
