"""Exact RTRL of diagonal recurrences, eLSTM and LRU, against plain back-propagation through time."""

import pytest
import torch
from forward_oracles import any_masks, bptt_gradient, frames, held_gradients
from torch.nn.functional import gelu, layer_norm

from ptncn.learners import lru, make, traces
from ptncn.metrics import bytes_of
from ptncn.metrics.cost import GradientMeter

T, B, N, H = 50, 3, 4, 6
EACH_MASK = pytest.mark.parametrize("masked", [False, True], ids=["whole", "masked"])


def build(name, **options):
    return make(name, input_size=N, hidden_size=H, dtype="float64", **options)


def total(learner, xs, masks=None):
    gradients = [gradient for gradient, _ in held_gradients(learner, xs, masks)]
    return {name: sum(each[name] for each in gradients) for name in gradients[0]}


def assert_same(ours, exact):
    assert ours.keys() == exact.keys()
    for name, gradient in exact.items():
        assert gradient.abs().max() > 1e-5, f"{name} would not be tested"
        torch.testing.assert_close(ours[name], gradient, rtol=0, atol=1e-9)


@EACH_MASK
@pytest.mark.parametrize("name", ["elstm-rtrl", "lru-rtrl"])
@pytest.mark.parametrize("output", ["bernoulli", "categorical"])
def test_the_sum_of_its_gradients_is_that_of_back_propagation_through_time(name, masked, output):
    learner, xs = build(name, output=output), frames(T, B, N, output=output)
    masks = any_masks(T, B) if masked else None
    assert_same(total(learner, xs, masks), bptt_gradient(learner, xs, masks))


def test_the_elstm_follows_its_equations():
    cell = build("elstm-rtrl").cell
    x, c = torch.rand(B, N, dtype=torch.float64), torch.randn(B, H, dtype=torch.float64)
    (W_f, W_z, W_x), (w_f, w_z) = cell.weight_ih_l0.split(H), cell.weight_cc_l0
    b_f, b_z, b_o = cell.bias_l0.split(H)
    f, z = torch.sigmoid(x @ W_f.T + w_f * c + b_f), torch.tanh(x @ W_z.T + w_z * c + b_z)
    new = f * c + (1 - f) * z
    h = torch.sigmoid(x @ W_x.T + new @ cell.weight_hh_l0.T + b_o) * new
    torch.testing.assert_close(cell(x, (torch.zeros_like(c), c)), (h, new))


def written_out(cell, xs):
    """The visible state after all of xs, with complex numbers, one row at a time."""
    row_states = []
    for row in range(xs.shape[1]):
        states = [torch.zeros(H, dtype=torch.complex128) for _ in cell.stack]
        for x in xs[:, row]:
            r = cell.embedding @ x
            for number, layer in enumerate(cell.stack):
                u = layer_norm(r, (H,)) if number else x
                rate = torch.exp(torch.complex(-torch.exp(layer.decay), layer.angle))
                B_re, B_im = layer.input_weight.split(H)
                states[number] = rate * states[number] + torch.exp(layer.scale) * torch.complex(B_re @ u, B_im @ u)
                C_re, C_im = layer.output_weight.split(H, dim=1)
                skipped = u if number else r
                m = gelu(C_re @ states[number].real + C_im @ states[number].imag + layer.skip * skipped)
                r = r + m * torch.sigmoid(layer.gate_weight @ m + layer.gate_bias)
        row_states.append(layer_norm(r, (H,)))
    return torch.stack(row_states)


@pytest.mark.parametrize("layers", [1, 3])
def test_the_lru_follows_its_equations(layers):
    learner, xs = build("lru-rtrl", layers=layers), frames(5, B, N)
    state = learner.begin(B)
    for x in xs:
        learner.step(x, state, learn=False)
    torch.testing.assert_close(state.hidden[0], written_out(learner.cell, xs).detach())


def cut_between_layers(learner, xs):
    """The gradient of the summed loss with each layer's past treated as constant by the layers below.

    Layer k's recurrence is run over the inputs as they were; only its present input passes a gradient down.
    """
    cell, loss = learner.cell, torch.zeros((), dtype=torch.float64)
    pasts = [[] for _ in cell.stack]  # inputs of each layer, without a graph
    visible = torch.zeros(B, H, dtype=torch.float64)
    for t, x in enumerate(xs):
        if t:
            loss = loss + learner.output.nll(learner.readout(visible), x).sum() / B
        r = x @ cell.embedding.T
        for number, layer in enumerate(cell.stack):
            u = layer_norm(r, (H,)) if number else x
            rate = torch.exp(torch.complex(-torch.exp(layer.decay), layer.angle))
            B_re, B_im = layer.input_weight.split(H)
            h = torch.zeros(B, H, dtype=torch.complex128)
            for then in [*pasts[number], u]:
                h = rate * h + torch.exp(layer.scale) * torch.complex(then @ B_re.T, then @ B_im.T)
            pasts[number].append(u.detach())
            C_re, C_im = layer.output_weight.split(H, dim=1)
            m = gelu(h.real @ C_re.T + h.imag @ C_im.T + layer.skip * (u if number else r))
            r = r + m * torch.sigmoid(m @ layer.gate_weight.T + layer.gate_bias)
        visible = layer_norm(r, (H,))
    weights = dict(learner.named_parameters())
    return dict(zip(weights, torch.autograd.grad(loss, list(weights.values())), strict=True))


def test_credit_between_layers_covers_the_same_step_only():
    learner, xs = build("lru-rtrl", layers=3), frames(8, B, N)
    assert_same(total(learner, xs), cut_between_layers(learner, xs))


def test_immediate_credit_for_b_covers_the_last_input_only():
    learner, exact, xs = build("lru-rtrl", credit="immediate"), build("lru-rtrl"), frames(8, B, N)
    ours, whole = total(learner, xs), total(exact, xs)
    assert ours.keys() == whole.keys()
    for name in ours:
        close = torch.allclose(ours[name], whole[name], rtol=0, atol=1e-10)
        assert close == (name != "cell.layers.0.input_weight")
    two = total(learner, xs[:2])["cell.layers.0.input_weight"]  # one scored step, whose past is one input
    torch.testing.assert_close(two, total(exact, xs[:2])["cell.layers.0.input_weight"])


@pytest.mark.parametrize("name", ["elstm-rtrl", "lru-rtrl"])
def test_working_on_a_few_units_at_a_time_changes_nothing(name, monkeypatch):
    learner, xs, masks = build(name), frames(9, B, N), any_masks(9, B)
    at_once = total(learner, xs, masks)
    for module in (traces, lru):
        monkeypatch.setattr(module, "WORKSPACE", 200)
    torch.testing.assert_close(total(learner, xs, masks), at_once, rtol=0, atol=1e-15)


@pytest.mark.parametrize("name", ["elstm-rtrl", "lru-rtrl"])
def test_a_masked_row_keeps_its_traces_bit_for_bit(name):
    learner, xs, mask = build(name), frames(6, B, N), torch.tensor([True, False, True])
    state = learner.begin(B)
    for x in xs[:5]:
        learner.step(x, state)
    before = state.clone()
    learner.step(xs[5], state, mask=mask)
    kept = ["traces", "own_traces", "vector", "output_gate"] if name == "elstm-rtrl" else ["x", "input_traces"]
    for field in kept:
        old, new = getattr(before, field), getattr(state, field)
        for was, now in zip(old, new, strict=True) if isinstance(old, tuple) else [(old, new)]:
            assert torch.equal(was[~mask], now[~mask])
            assert not torch.equal(was[mask], now[mask])


def test_a_thousand_units_on_text_take_only_megabytes():
    learner = make("elstm-rtrl", input_size=49, hidden_size=1000)
    state = learner.begin(50)
    learner.step(torch.eye(49)[torch.arange(50) % 49], state)
    assert bytes_of(state.traces) == 50 * 2 * 1000 * 50 * 4  # 20 MB


@pytest.mark.parametrize("name", ["elstm-rtrl", "lru-rtrl"])
def test_the_gradient_meter_confirms_that_they_are_exact(name):
    meter = GradientMeter(build(name, optimizer="sgd", lr=1e-15))
    state = meter.begin(B)
    for x in frames(12, B, N):
        meter.step(x, state)
    assert meter.compute() == pytest.approx({"cosine": 1, "norm_ratio": 1, "updates": 11}, abs=1e-9)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("lru-rtrl", {"layers": 0}, "layers: expected a positive integer, got 0"),
        ("lru-rtrl", {"credit": "some"}, "unknown credit 'some'"),
        ("lru-rtrl", {"depth": 2}, "neither depth nor gate_bias, got 2 and None"),
        ("elstm-rtrl", {"depth": 2}, "depth: expected 1 for the cell 'elstm', got 2"),
    ],
)
def test_bad_options_are_named(name, options, message):
    with pytest.raises(ValueError, match=message):
        build(name, **options)
