"""The contract of learners, checked on each one in the registry."""

from __future__ import annotations

import dataclasses
import json
import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import ptncn
from ptncn.distributions import DISTRIBUTIONS
from ptncn.learners import describe, make, names
from ptncn.metrics import bytes_of

N, H, B, T = 4, 6, 3, 12
SMALL = {
    "tbptt": {"window": 6, "stride": 4},
    "fp": {"context": 3, "horizon": 3},
    "cfp": {"context": 3, "horizon": 3},
    "sab": {"k_top": 2, "k_trunc": 3, "k_attn": 2, "memory": 4, "attention_size": 5},
}
"""Windows and memories that fill up within a short test."""

every_learner = pytest.mark.parametrize("name", names())


def has_units(name: str) -> bool:
    """Whether a learner has hidden units; one without may predict from its weights alone, and needs no seed."""
    return describe(name).size_class != "none"


def build(name: str, hidden_size: int = H, input_size: int = N, **options: Any) -> ptncn.Learner:
    small = SMALL.get(name.partition("-")[2], {})
    return make(name, input_size=input_size, hidden_size=hidden_size, **{**small, **options})


def frames(length: int = T, seed: int = 0, batch_size: int = B) -> Tensor:
    """(T, B, N) numbers between 0 and 1."""
    return torch.rand(length, batch_size, N, generator=torch.Generator().manual_seed(seed))


def ragged_masks(length: int = T, seed: int = 1, batch_size: int = B) -> Tensor:
    """(T, B) masks with gaps; every row is observed in the first two steps, so that scoring starts early."""
    masks = torch.rand(length, batch_size, generator=torch.Generator().manual_seed(seed)) < 0.7
    masks[:2] = True
    return masks


def feed(learner: ptncn.Learner, xs: Tensor, state: Any = None, masks: Tensor | None = None, **options: Any) -> Any:
    """Predictions (T, B, N) and the state after the last frame; the sequences are left open."""
    state = learner.begin(xs.shape[1]) if state is None else state
    masks = [None] * len(xs) if masks is None else masks
    steps = [learner.step(x, state, mask=mask, **options) for x, mask in zip(xs, masks, strict=True)]
    return torch.stack([step.prediction for step in steps]), state


def trained(name: str, **options: Any) -> ptncn.Learner:
    """A learner that has learnt from a sequence, so that no check passes on initial values alone."""
    learner = build(name, **options)
    _, state = feed(learner, frames(seed=9))
    learner.end(state)
    return learner


def leaves(tree: Any) -> Iterator[Any]:
    """Tensors and numbers of a state or a snapshot, in order."""
    if dataclasses.is_dataclass(tree):
        tree = [getattr(tree, field.name) for field in dataclasses.fields(tree)]
    if isinstance(tree, dict):
        tree = [item for pair in tree.items() for item in pair]
    if isinstance(tree, list | tuple):
        for item in tree:
            yield from leaves(item)
    else:
        yield tree


def same(one: Any, other: Any) -> bool:
    """Whether two trees are equal, bit for bit."""
    ours, theirs = list(leaves(one)), list(leaves(other))
    pairs = zip(ours, theirs, strict=False)
    return len(ours) == len(theirs) and all(torch.equal(a, b) if isinstance(a, Tensor) else a == b for a, b in pairs)


def copied(tree: Any) -> list[Any]:
    return [leaf.clone() if isinstance(leaf, Tensor) else leaf for leaf in leaves(tree)]


def learnt(learner: ptncn.Learner) -> list[Any]:
    """The snapshot without the random generator, which may advance without learning."""
    return copied({key: value for key, value in learner.snapshot().items() if key != "generator"})


@every_learner
def test_a_learner_follows_the_protocol_under_its_own_name(name: str) -> None:
    learner = build(name)
    assert isinstance(learner, ptncn.Learner)
    assert (learner.registry_name, learner.input_size) == (name, N)


@every_learner
def test_a_prediction_does_not_peek_at_what_it_predicts(name: str) -> None:
    learner = trained(name)
    _, state = feed(learner, frames())
    expected = learner.predict(state)
    one, other = (learner.step(x, state.clone(), learn=False) for x in frames(2, seed=3))
    assert torch.equal(one.prediction, other.prediction)
    assert torch.equal(one.logits, other.logits)
    assert torch.equal(one.prediction, expected)
    assert torch.equal(learner.step(frames(1)[0], state).prediction, expected)


@every_learner
def test_predicting_changes_nothing(name: str) -> None:
    learner = trained(name)
    _, state = feed(learner, frames())
    before = copied([learner.snapshot(), state])
    learner.predict(state)
    assert same([learner.snapshot(), state], before)


@every_learner
def test_frozen_weights_do_not_change(name: str) -> None:
    learner = trained(name)
    before = copied(learner.snapshot())
    _, state = feed(learner, frames(), masks=ragged_masks(), learn=False)
    learner.end(state)
    assert same(learner.snapshot(), before)


@every_learner
def test_a_frozen_state_still_follows_what_is_seen(name: str) -> None:
    learner = trained(name)
    predictions, _ = feed(learner, frames(), learn=False)
    others, _ = feed(learner, frames(seed=5), learn=False)
    assert torch.equal(predictions[0], others[0])
    if has_units(name):
        assert not torch.equal(predictions[-1], others[-1])


@every_learner
def test_learning_changes_the_learner_online_or_when_its_window_ends(name: str) -> None:
    learner = build(name)
    before = copied(learner.snapshot())
    _, state = feed(learner, frames(3))
    learns = describe(name).learns
    assert same(learner.snapshot(), before) == (learns != "online")
    learner.end(state)
    assert same(learner.snapshot(), before) == (learns == "nothing")


@every_learner
def test_nothing_is_scored_or_learnt_from_the_first_observation_of_a_row(name: str) -> None:
    learner = build(name)
    before = learnt(learner)
    state = learner.begin(B)
    first = learner.step(frames()[0], state)
    assert first.scored.tolist() == [False] * B
    if has_units(name):
        learner.end(state)
        assert same(learnt(learner), before)
    assert learner.step(frames()[1], state).scored.tolist() == [True] * B


@every_learner
def test_errors_are_prediction_minus_observation_and_zero_where_masked(name: str) -> None:
    learner = trained(name)
    mask = torch.tensor([True, False, True])
    state = learner.begin(B)
    for x in frames(2):
        out = learner.step(x, state, mask=mask)
    assert torch.allclose(out.errors[0][mask], (out.prediction - x)[mask])
    assert (out.errors[0][~mask] == 0).all()
    assert torch.equal(out.scored, mask)


@every_learner
@pytest.mark.parametrize("output", DISTRIBUTIONS)
def test_logits_and_prediction_belong_to_the_output_distribution(name: str, output: str) -> None:
    learner = trained(name, output=output)
    state = learner.begin(B)
    for x in frames():
        out = learner.step(x, state)
        assert torch.isfinite(out.logits).all()
        assert torch.allclose(out.prediction, DISTRIBUTIONS.find(output).mean(out.logits))


@every_learner
def test_rows_of_a_batch_are_independent(name: str) -> None:
    learner = trained(name, dtype="float64")
    together, _ = feed(learner, frames().double(), masks=ragged_masks(), learn=False)
    for row in range(B):
        alone, _ = feed(learner, frames()[:, [row]].double(), masks=ragged_masks()[:, [row]], learn=False)
        assert torch.allclose(together[:, [row]], alone, rtol=0, atol=1e-12)


@every_learner
def test_the_same_seed_gives_the_same_numbers(name: str) -> None:
    one, other = trained(name, seed=7), trained(name, seed=7)
    assert same(one.snapshot(), other.snapshot())
    assert torch.equal(feed(one, frames())[0], feed(other, frames())[0])


@every_learner
def test_another_seed_gives_other_weights(name: str) -> None:
    if has_units(name):
        assert not same(build(name, seed=0).snapshot(), build(name, seed=1).snapshot())


@every_learner
def test_no_global_random_generator_is_used(name: str) -> None:
    before = torch.get_rng_state(), np.random.get_state()[1].copy(), random.getstate()  # noqa: NPY002
    trained(name)
    assert torch.equal(torch.get_rng_state(), before[0])
    assert (np.random.get_state()[1] == before[1]).all()  # noqa: NPY002
    assert random.getstate() == before[2]


@every_learner
@pytest.mark.parametrize(("dtype", "at"), [("float64", 1), ("float32", 7)])
def test_a_run_saved_mid_sequence_continues_bit_for_bit(name: str, dtype: str, at: int, tmp_path: Any) -> None:
    learner = trained(name, dtype=dtype)
    xs, masks = frames().to(getattr(torch, dtype)), ragged_masks()
    _, state = feed(learner, xs[:at], masks=masks[:at])
    ptncn.save(tmp_path / "run", learner, state)
    loaded, loaded_state, _ = ptncn.load(tmp_path / "run")
    assert same(state, loaded_state)
    expected, _ = feed(learner, xs[at:], state, masks[at:])
    predictions, _ = feed(loaded, xs[at:], loaded_state, masks[at:])
    learner.end(state)
    loaded.end(loaded_state)
    assert torch.equal(predictions, expected)
    assert same(learner.snapshot(), loaded.snapshot())


@every_learner
def test_a_clone_of_a_state_is_independent_of_it(name: str) -> None:
    learner = trained(name)
    _, state = feed(learner, frames(5))
    before, branch = copied(state), state.clone()
    feed(learner, frames(), branch)
    learner.end(branch)
    assert same(state, before)


@every_learner
def test_a_step_in_which_all_rows_are_masked_changes_no_weight_and_no_prediction(name: str) -> None:
    learner = trained(name)
    _, state = feed(learner, frames(5))
    before, expected = learnt(learner), learner.predict(state)
    out = learner.step(torch.full((B, N), torch.nan), state, mask=torch.zeros(B, dtype=torch.bool))
    assert not out.scored.any()
    assert same(learnt(learner), before)
    assert torch.equal(learner.predict(state), expected)


@every_learner
def test_values_of_masked_rows_have_no_effect(name: str) -> None:
    masks = ragged_masks()
    results = []
    for garbage in (0.0, 1e30, torch.nan, -torch.inf):
        learner = build(name)
        xs = torch.where(masks[..., None], frames(), garbage)
        predictions, state = feed(learner, xs, masks=masks)
        learner.end(state)
        results.append((predictions, copied(learner.snapshot())))
    for predictions, snapshot in results[1:]:
        assert torch.equal(predictions, results[0][0])
        assert same(snapshot, results[0][1])


@every_learner
def test_a_masked_row_keeps_its_state(name: str) -> None:
    learner = trained(name, dtype="float64")
    masks = ragged_masks()
    with_gaps, _ = feed(learner, frames().double(), masks=masks, learn=False)
    for row in range(B):
        seen = masks[:, row]
        without, _ = feed(learner, frames()[seen][:, [row]].double(), learn=False)
        assert torch.allclose(with_gaps[seen][:, [row]], without, rtol=0, atol=1e-12)


BAD = [
    (torch.zeros(B, N + 1), None, r"\(3, 5\)"),
    (torch.zeros(B + 1, N), None, r"\(4, 4\)"),
    (torch.full((B, N), torch.nan), None, "nan"),
    (torch.full((B, N), torch.inf), None, "inf"),
    (torch.zeros(B, N), torch.ones(B + 1, dtype=torch.bool), r"\(4,\)"),
]
"""Observations, masks, and the error message of each."""


@every_learner
def test_a_bad_observation_is_named_before_anything_changes(name: str) -> None:
    learner = trained(name)
    _, state = feed(learner, frames(5))
    before = copied([learner.snapshot(), state])
    for x, mask, message in BAD:
        with pytest.raises(ValueError, match=message):
            learner.step(x, state, mask=mask)
        assert same([learner.snapshot(), state], before)


@every_learner
def test_the_state_of_another_learner_is_refused(name: str) -> None:
    learner = trained(name)
    before = copied(learner.snapshot())
    sizes = {"hidden": build(name, hidden_size=H + 1).begin(B)} if has_units(name) else {}
    others = {
        "kind": build("copy" if name != "copy" else "mean").begin(B),
        "input": build(name, input_size=N + 1).begin(B) if name == "ptncn" or not has_units(name) else None,
        **sizes,
    }
    for other in filter(None, others.values()):
        for call in (lambda s: learner.step(frames()[0], s), learner.predict, learner.end):
            with pytest.raises(ValueError, match="state"):
                call(other)
    assert same(learner.snapshot(), before)


@every_learner
def test_an_impossible_batch_size_is_named(name: str) -> None:
    learner = build(name)
    for batch_size in (0, -1, 1.5):
        with pytest.raises(ValueError, match=str(batch_size)):
            learner.begin(batch_size)


@pytest.mark.parametrize("name", [name for name in names() if describe(name).learns != "nothing"])
def test_the_snapshot_of_another_size_is_refused_before_anything_changes(name: str) -> None:
    learner = trained(name)
    before = copied(learner.snapshot())
    with pytest.raises(ValueError, match="snapshot"):
        learner.restore(build(name, hidden_size=H + 1, input_size=N + (not has_units(name))).snapshot())
    assert same(learner.snapshot(), before)


@every_learner
def test_a_snapshot_is_a_copy_and_restoring_copies_it_again(name: str) -> None:
    learner, other = trained(name), build(name)
    snapshot = learner.snapshot()
    before = copied(snapshot)
    other.restore(snapshot)
    assert same(other.snapshot(), before)
    for each in (learner, other):
        _, state = feed(each, frames())
        each.end(state)
        assert same(snapshot, before)
    assert same(learner.snapshot(), other.snapshot())


@every_learner
def test_neither_output_nor_state_has_an_autograd_graph(name: str) -> None:
    learner = trained(name)
    state = learner.begin(B)
    for x in frames():
        out = learner.step(x, state)
    tensors = [leaf for leaf in leaves([state, out.prediction, out.logits, out.errors]) if isinstance(leaf, Tensor)]
    assert not any(tensor.requires_grad for tensor in tensors)
    assert not learner.predict(state).requires_grad


@every_learner
def test_learning_works_where_the_caller_switched_gradients_off(name: str) -> None:
    learner, plain = build(name), build(name)
    with torch.no_grad():
        _, state = feed(learner, frames())
        learner.end(state)
    _, state = feed(plain, frames())
    plain.end(state)
    assert same(learner.snapshot(), plain.snapshot())


@every_learner
def test_a_caller_may_reuse_one_buffer_for_all_observations(name: str) -> None:
    reusing, plain = build(name), build(name)
    buffer, state = torch.empty(B, N), reusing.begin(B)
    for x in frames():
        reusing.step(buffer.copy_(x), state)
        assert torch.equal(buffer, x)
    reusing.end(state)
    _, state = feed(plain, frames())
    plain.end(state)
    assert same(reusing.snapshot(), plain.snapshot())


@pytest.mark.parametrize("name", [name for name in names() if not describe(name).memory.endswith("T")])
def test_memory_does_not_grow_on_a_stream(name: str) -> None:
    learner = build(name)
    state = learner.begin(1)
    sizes = []
    for x in frames(120, batch_size=1):
        learner.step(x, state)
        sizes.append(bytes_of(state))
    assert max(sizes[72:]) <= max(sizes[24:72])


@every_learner
def test_options_survive_json_and_build_an_equal_learner(name: str) -> None:
    learner = build(name, seed=3, output="gaussian")
    options = json.loads(json.dumps(learner.options()))
    twin = make(name, **options)
    assert twin.options() == learner.options()
    assert same(twin.snapshot(), learner.snapshot())
    assert torch.equal(feed(twin, frames())[0], feed(learner, frames())[0])
