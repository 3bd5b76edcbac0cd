"""RTRL against plain back-propagation through time, and its refusal of sizes that do not fit."""

from types import SimpleNamespace

import psutil
import pytest
import torch
from forward_oracles import CELLS, IDS, any_masks, bptt_gradient, check_resumed, frames, held_gradients

from ptncn import system
from ptncn.learners import base, make, rtrl
from ptncn.learners.rtrl import RTRL
from ptncn.metrics import bytes_of

T, B, N, H = 30, 4, 3, 5


def build(cell, depth=1, **options):
    return RTRL(N, H, cell=cell, depth=depth, dtype="float64", **options)


def total(gradients):
    gradients = list(gradients)
    return {name: sum(gradient[name] for gradient, _ in gradients) for name in gradients[0][0]}


@pytest.mark.parametrize("masked", [False, True], ids=["whole", "masked"])
@pytest.mark.parametrize(("cell", "depth"), CELLS, ids=IDS)
def test_the_sum_of_its_gradients_is_the_gradient_of_back_propagation_through_time(cell, depth, masked):
    learner, xs = build(cell, depth), frames(T, B, N)
    masks = any_masks(T, B) if masked else None
    ours = total(held_gradients(learner, xs, masks))
    exact = bptt_gradient(learner, xs, masks)
    assert ours.keys() == exact.keys()
    for name, gradient in exact.items():
        assert gradient.abs().max() > 1e-4, f"{name} would not be tested"
        torch.testing.assert_close(ours[name], gradient, rtol=0, atol=1e-9)


@pytest.mark.parametrize("output", ["gaussian", "bernoulli", "categorical"])
def test_each_output_distribution_has_the_gradient_of_its_likelihood(output):
    learner, xs = build("lstm", output=output), frames(T, B, N, output=output)
    ours, exact = total(held_gradients(learner, xs)), bptt_gradient(learner, xs)
    for name, gradient in exact.items():
        torch.testing.assert_close(ours[name], gradient, rtol=0, atol=1e-9)


def test_the_gradient_of_each_single_step_is_exact():
    learner, xs = build("gru"), frames(6, B, N)
    before = {name: torch.zeros_like(weight) for name, weight in learner.named_parameters()}
    for t, (gradient, _) in enumerate(held_gradients(learner, xs)):
        if t == 0:
            assert all(not g.any() for g in gradient.values()), "nothing is scored on the first frame"
            continue
        after = bptt_gradient(learner, xs[: t + 1])
        for name in after:
            torch.testing.assert_close(gradient[name], after[name] - before[name], rtol=0, atol=1e-12)
        before = after


def test_working_on_a_few_columns_at_a_time_changes_nothing(monkeypatch):
    learner, xs, masks = build("lstm"), frames(T, B, N), any_masks(T, B)
    at_once = total(held_gradients(learner, xs, masks))
    monkeypatch.setattr(rtrl, "WORKSPACE", 70 * B * 2 * H * 8)
    in_pieces = total(held_gradients(learner, xs, masks))
    for name, gradient in at_once.items():
        torch.testing.assert_close(in_pieces[name], gradient, rtol=0, atol=1e-14)


def test_a_learning_step_takes_the_gradient_it_reports():
    learner = build("lstm", optimizer="sgd", lr=0.1, clip=None)
    state, xs = learner.begin(B), frames(5, B, N)
    for t, x in enumerate(xs):
        before = {name: weight.detach().clone() for name, weight in learner.named_parameters()}
        gradient = learner.gradient(x, state)
        learner.step(x, state)
        for name, weight in learner.named_parameters():
            torch.testing.assert_close(weight.detach(), before[name] - 0.1 * gradient[name], rtol=0, atol=1e-15)
        assert torch.equal(learner.cell.weight_ih_l0, before["cell.weight_ih_l0"]) == (t == 0)


@pytest.mark.parametrize(("cell", "depth"), CELLS, ids=IDS)
def test_a_masked_row_keeps_its_influence_bit_for_bit(cell, depth):
    learner, xs = build(cell, depth), frames(8, B, N)
    state = learner.begin(B)
    for x in xs[:4]:
        learner.step(x, state)
    before = [influence.clone() for influence in state.influence]
    mask = torch.tensor([True, False, True, False])
    learner.step(xs[4], state, mask=mask)
    for old, new in zip(before, state.influence, strict=True):
        assert torch.equal(old[~mask], new[~mask])
        assert not torch.equal(old[mask], new[mask])


def test_a_sequence_that_starts_frozen_carries_no_influence_until_it_learns():
    learner, xs = build("lstm"), frames(6, B, N)
    state = learner.begin(B)
    for x in xs[:3]:
        learner.step(x, state, learn=False)
    assert state.influence == ()
    assert not learner.gradient(xs[3], state)["cell.weight_ih_l0"].any()
    assert learner.gradient(xs[3], state)["readout.weight"].any()
    learner.step(xs[3], state)
    assert state.influence[0].any()


@pytest.mark.parametrize(("cell", "depth"), CELLS, ids=IDS)
def test_it_allocates_the_bytes_it_announced(cell, depth):
    learner = build(cell, depth)
    state = learner.begin(B)
    learner.step(frames(1, B, N)[0], state)
    assert bytes_of(state.influence) == RTRL.required_bytes(cell, N, H, B, "float64", depth)


@pytest.mark.parametrize(
    ("cell", "depth", "numbers"),
    [
        # state numbers × Σ over groups of pre-activations × (what they see)
        ("rnn", 1, 7 * (7 * (3 + 7 + 1))),
        ("lstm", 1, 14 * (28 * (3 + 7 + 1))),
        ("gru", 1, 7 * (14 * (3 + 7 + 1) + 7 * (3 + 1) + 7 * (7 + 1))),
        ("rhn", 1, 7 * (14 * (3 + 7 + 1))),
        ("rhn", 3, 7 * (14 * (3 + 7 + 1) + 2 * 14 * (7 + 1))),
    ],
)
def test_required_bytes_match_a_manual_count(cell, depth, numbers):
    assert RTRL.required_bytes(cell, 3, 7, depth=depth) == 4 * numbers
    assert RTRL.required_bytes(cell, 3, 7, 20, "float64", depth) == 20 * 8 * numbers


def test_the_papers_lstm_is_rejected_before_anything_is_allocated(monkeypatch):
    def no_cell(*args, **kwargs):
        raise AssertionError("a cell was made")

    monkeypatch.setattr(base, "make_cell", no_cell)
    with pytest.raises(MemoryError) as caught:
        make("lstm-rtrl", input_size=4096, hidden_size=1000, memory_limit=20e9)
    # 2·1,000 numbers of state × 4·1,000 pre-activations × 5,097 inputs × 4 bytes = 163.1 GB; and
    # 32 H² (4,097 + H) is 19.90 GB for H = 373 and 20.01 GB for H = 374
    assert str(caught.value) == (
        "LSTM with 1,000 units on 4,096 inputs needs 163 GB for exact RTRL (batch of 1, float32), and 20.0 GB may "
        "be used. The largest hidden size that fits is 373; lstm-uoro and lstm-kf-rtrl need far less"
    )


def test_a_batch_that_does_not_fit_is_rejected_in_begin():
    one_row = RTRL.required_bytes("gru", 10, 20)
    learner = RTRL(10, 20, cell="gru", memory_limit=3 * one_row)
    assert learner.begin(3).influence == ()
    # 4 rows × 20 × (40·31 + 20·21 + 20·11) numbers × 4 bytes
    with pytest.raises(MemoryError, match=r"GRU with 20 units on 10 inputs needs 602 kB .*\(batch of 4, float32\)"):
        learner.begin(4)


def test_without_a_limit_most_of_the_available_memory_counts(monkeypatch):
    needed = RTRL.required_bytes("rnn", 10, 20)
    monkeypatch.setattr(rtrl, "available_memory", lambda: needed)
    with pytest.raises(MemoryError, match="The largest hidden size that fits is 19"):
        RTRL(10, 20, cell="rnn")
    monkeypatch.setattr(rtrl, "available_memory", lambda: 1.2 * needed)
    RTRL(10, 20, cell="rnn")


def test_an_error_says_that_not_even_one_unit_fits():
    with pytest.raises(MemoryError, match="Not even one unit fits"):
        RTRL(1000, 5, memory_limit=1000)


def test_a_container_limit_counts_below_what_the_system_has(monkeypatch, tmp_path):
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(available=5_000 * 1024))
    monkeypatch.setattr(system, "CGROUP", tmp_path)
    assert system.available_memory() == 5_000 * 1024
    (tmp_path / "memory.max").write_text("max\n")
    (tmp_path / "memory.current").write_text("1000\n")
    assert system.available_memory() == 5_000 * 1024
    (tmp_path / "memory.max").write_text("4000\n")
    assert system.available_memory() == 3_000


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"memory_limit": -1}, "memory_limit: expected a positive number, got -1"),
        ({"hidden_size": 0}, "hidden_size: expected a positive integer, got 0"),
        ({"cell": "lsmt"}, "unknown cell 'lsmt'; did you mean 'lstm'"),
    ],
)
def test_bad_options_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        RTRL(**{"input_size": 3, "hidden_size": 4} | options)


@pytest.mark.parametrize(("cell", "depth"), CELLS, ids=IDS)
def test_a_checkpoint_mid_sequence_continues_bit_for_bit(cell, depth, tmp_path):
    resumed, _, _ = check_resumed(build(cell, depth, memory_limit=1e9), tmp_path)
    assert resumed.options()["memory_limit"] == 1e9
