"""Immediate, SnAp-1, e-prop and RFLO against autograd through a network whose gradient is cut in the same places."""

import pytest
import torch
from forward_oracles import CELLS, DOUBLE, IDS, any_masks, bptt_gradient, frames, held_gradients
from torch.nn.functional import linear

from ptncn.learners import make, traces
from ptncn.metrics.cost import GradientMeter

T, B, N, H = 14, 3, 3, 5


def through(weight, bias, h, own):
    """A linear map of h whose weights get a gradient, while h passes one to its own unit only, or to none."""
    passed = own * weight.detach().reshape(-1, H, H).diagonal(dim1=1, dim2=2).flatten()  # (G·H,)
    gates = len(weight) // H
    return linear(h.detach(), weight, bias) + passed * (h - h.detach()).repeat(1, gates)


def cut_step(cell, name, x, hidden, own):
    """One step of a cell, transcribed, in which units pass gradients only to themselves."""
    weights = dict(cell.named_parameters())
    if name == "rhn":
        (s,) = hidden
        for k in range(cell.depth):
            a = through(weights[f"weight_hh_l{k}"], weights[f"bias_hh_l{k}"], s, own)
            a = a + x @ weights["weight_ih_l0"].T if k == 0 else a
            candidate, transform = torch.tanh(a[:, :H]), torch.sigmoid(a[:, H:])
            s = candidate * transform + s * (1 - transform)
        return (s,)
    from_x = linear(x, weights["weight_ih_l0"], weights["bias_ih_l0"])
    from_h = through(weights["weight_hh_l0"], weights["bias_hh_l0"], hidden[0], own)
    if name == "rnn":
        return ((1 - cell.leak_rate) * hidden[0] + cell.leak_rate * torch.tanh(from_x + from_h),)
    if name == "lstm":
        i, f, g, o = (from_x + from_h).split(H, dim=1)
        c = torch.sigmoid(f) * hidden[1] + torch.sigmoid(i) * torch.tanh(g)
        return torch.sigmoid(o) * torch.tanh(c), c
    (x_r, x_z, p), (h_r, h_z, q) = from_x.split(H, dim=1), from_h.split(H, dim=1)
    r, z = torch.sigmoid(x_r + h_r), torch.sigmoid(x_z + h_z)
    return ((1 - z) * torch.tanh(p + r * q) + z * hidden[0],)


def cut_gradient(learner, xs, masks, step, broadcast=None):
    """{name: gradient} of all steps' losses by autograd, with `step` in the place of the cell's own."""
    hidden, seen = learner.cell.begin(B), torch.zeros(B, dtype=torch.bool)
    loss = torch.zeros((), dtype=DOUBLE)
    for x, mask in zip(xs, masks, strict=True):
        rows = (mask & seen)[:, None]
        logits = learner.readout(hidden[0] if broadcast is None else hidden[0].detach())
        loss = loss + torch.where(rows[:, 0], learner.output.nll(logits, x), 0.0).sum() / B
        if broadcast is not None:
            error = torch.where(rows, learner.output.mean(logits) - x, 0.0).detach() / B
            loss = loss + (hidden[0] * (error @ broadcast)).sum()
        new_hidden = step(x, hidden)
        hidden = tuple(torch.where(mask[:, None], new, old) for new, old in zip(new_hidden, hidden, strict=True))
        seen = seen | mask
    weights = {name: weight for name, weight in learner.named_parameters() if weight.requires_grad}
    return dict(zip(weights, torch.autograd.grad(loss, list(weights.values())), strict=True))


def assert_same(learner, xs, masks, expected):
    gradients = [gradient for gradient, _ in held_gradients(learner, xs, masks)]
    for name, gradient in expected.items():
        assert gradient.abs().max() > 1e-5, f"{name} would not be tested"
        torch.testing.assert_close(sum(each[name] for each in gradients), gradient, rtol=0, atol=1e-10)


def build(name, depth=1, **options):
    options = {"depth": depth, **options} if name.startswith("rhn") else options
    return make(name, input_size=N, hidden_size=H, dtype="float64", **options)


def all_seen():
    return torch.ones(T, B, dtype=torch.bool)


EACH_MASK = pytest.mark.parametrize("masks", [all_seen(), any_masks(T, B)], ids=["whole", "masked"])


@EACH_MASK
@pytest.mark.parametrize(("cell", "depth"), CELLS, ids=IDS)
def test_snap1_is_back_propagation_within_each_unit(cell, depth, masks):
    learner, xs = build(f"{cell}-snap1", depth), frames(T, B, N)
    expected = cut_gradient(learner, xs, masks, lambda x, hidden: cut_step(learner.cell, cell, x, hidden, own=1.0))
    assert_same(learner, xs, masks, expected)


@EACH_MASK
@pytest.mark.parametrize("feedback", ["symmetric", "random"])
@pytest.mark.parametrize("name", ["lstm-e-prop", "gru-e-prop", "rhn-e-prop", "rnn-rflo"])
def test_eligibility_traces_leave_out_paths_through_recurrent_weights(name, feedback, masks):
    learner, xs, cell = build(name, feedback=feedback), frames(T, B, N), name.partition("-")[0]
    broadcast = learner.broadcast.weight if feedback == "random" else None
    step = lambda x, hidden: cut_step(learner.cell, cell, x, hidden, own=0.0)  # noqa: E731
    assert_same(learner, xs, masks, cut_gradient(learner, xs, masks, step, broadcast))


@EACH_MASK
@pytest.mark.parametrize(("cell", "depth"), CELLS, ids=IDS)
def test_immediate_is_back_propagation_through_the_last_step(cell, depth, masks):
    learner, xs = build(f"{cell}-immediate", depth), frames(T, B, N)
    step = lambda x, hidden: learner.cell(x, tuple(part.detach() for part in hidden))  # noqa: E731
    assert_same(learner, xs, masks, cut_gradient(learner, xs, masks, step))


def test_snap1_is_exact_for_units_connected_only_to_themselves():
    learner, xs = build("rnn-snap1"), frames(T, B, N)
    with torch.no_grad():
        learner.cell.weight_hh_l0.copy_(torch.diag(torch.linspace(-0.9, 0.9, H)))
    assert_same(learner, xs, all_seen(), bptt_gradient(learner, xs))


def test_rflo_without_past_is_the_immediate_derivative():
    learner = build("rnn-rflo", leak_rate=1.0, feedback="symmetric")
    immediate = build("rnn-immediate")
    immediate.load_state_dict(learner.state_dict())
    assert_same(learner, frames(T, B, N), all_seen(), cut_gradient(
        immediate, frames(T, B, N), all_seen(),
        lambda x, hidden: immediate.cell(x, tuple(part.detach() for part in hidden)),
    ))  # fmt: skip


def test_working_on_a_few_units_at_a_time_changes_nothing(monkeypatch):
    xs, masks = frames(T, B, N), any_masks(T, B)
    learner = build("lstm-snap1")
    at_once = [gradient["cell.weight_ih_l0"] for gradient, _ in held_gradients(learner, xs, masks)]
    monkeypatch.setattr(traces, "WORKSPACE", 2 * (2 * 4 * (N + H + 1) * 8))  # two units
    in_pieces = [gradient["cell.weight_ih_l0"] for gradient, _ in held_gradients(learner, xs, masks)]
    torch.testing.assert_close(in_pieces, at_once, rtol=0, atol=1e-15)


def test_immediate_keeps_no_trace():
    learner = make("lstm-immediate", input_size=50, hidden_size=40)
    state = learner.begin(2)
    for x in torch.rand(3, 2, 50):
        learner.step(x, state)
    largest = max(part.numel() for parts in (state.slopes, state.carries, state.vectors) for part in parts)
    assert largest == 2 * 2 * 4 * 40


def test_random_feedback_never_changes():
    learner = build("lstm-e-prop", feedback="random")
    before = learner.broadcast.weight.clone()
    state = learner.begin(B)
    for x in frames(T, B, N):
        learner.step(x, state)
    assert torch.equal(learner.broadcast.weight, before)
    assert not torch.equal(before, learner.readout.weight)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("lstm-e-prop", {"feedback": "none"}, "unknown feedback 'none'"),
        ("rnn-rflo", {"leak_rate": 0.0}, "leak_rate: expected a number above 0 and at most 1, got 0.0"),
    ],
)
def test_bad_options_are_named(name, options, message):
    with pytest.raises(ValueError, match=message):
        build(name, **options)


def cosine(name, **options):
    """The cosine with the exact gradient, for a network with fixed weights whose past matters."""
    learner = build(name, optimizer="sgd", lr=1e-15, **options)
    with torch.no_grad():
        for weight in learner.cell.parameters():
            weight.mul_(2.0)
    meter = GradientMeter(learner)
    state = meter.begin(B)
    for x in frames(T, B, N):
        meter.step(x, state)
    return meter.compute()["cosine"]


def test_the_gradient_meter_ranks_them_by_how_much_they_keep():
    assert cosine("lstm-rtrl") == pytest.approx(1, abs=1e-9)
    assert 1 > cosine("lstm-snap1") > cosine("lstm-immediate") > 0.3
    assert 1 > cosine("lstm-e-prop") > cosine("lstm-immediate")
    assert cosine("lstm-e-prop", feedback="random") < cosine("lstm-e-prop")
