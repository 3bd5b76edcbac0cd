"""UORO: its mean is RTRL's gradient, and a rule with one thing wrong has another mean."""

import pytest
import torch
from forward_oracles import (
    CELLS,
    IDS,
    any_masks,
    draw_gradients,
    exact_gradient,
    frames,
    mutate,
    rejects,
    row_estimates,
)

from ptncn import checkpoint
from ptncn.learners.uoro import UORO

DRAWS = 6_000

MUTANTS = {
    "the new signs are subtracted": ("+ rho_1[:, None, None] * nu", "- rho_1[:, None, None] * nu"),
    "ρ₁ is missing from the state's factor": ("rho_1[:, None, None] * nu", "nu"),
    "ρ₁ is missing from the weights' factor": ("p / rho_1[:, None]", "p"),
    "ρ₀ is missing from the state's factor": ("rho_0[:, None, None] * pushed", "pushed"),
    "ρ₀ is missing from the weights' factor": ("rows(mask, 1 / rho_0, 1.0)", "torch.ones_like(rho_0)"),
    "the transition is left out": ("pushed = linear.push(state.tangent)", "pushed = 1.0 * state.tangent"),
    "the past is forgotten": ("pushed = linear.push(state.tangent)", "pushed = 0.0 * state.tangent"),
    "all units share a sign": (
        "nu = self.signs(B, self.cell.parts, H)",
        "nu = self.signs(B, 1, 1).repeat(1, self.cell.parts, H)",
    ),
    "the signs are not random": (
        "nu = self.signs(B, self.cell.parts, H)",
        "nu = torch.ones(B, self.cell.parts, H, dtype=torch.float64)",
    ),
}


@pytest.mark.parametrize("masked", [False, True], ids=["whole", "masked"])
@pytest.mark.parametrize(("cell", "depth"), CELLS, ids=IDS)
def test_the_mean_of_many_draws_is_the_exact_gradient(cell, depth, masked):
    masks = torch.tensor([[1], [1], [0], [1], [0], [1], [1], [1]]).bool() if masked else None
    exact = exact_gradient(cell, depth, masks=masks)
    assert not rejects(draw_gradients(UORO, cell, depth, DRAWS, masks=masks), exact)


@pytest.mark.parametrize("mutant", MUTANTS)
@pytest.mark.parametrize("cell", ["rnn", "lstm"])
def test_a_mutated_rule_is_rejected(cell, mutant, monkeypatch):
    wrong = mutate(monkeypatch, UORO, *MUTANTS[mutant])
    assert rejects(draw_gradients(wrong, cell, 1, DRAWS), exact_gradient(cell, 1))


@pytest.mark.parametrize(("cell", "depth"), CELLS, ids=IDS)
def test_its_gradient_is_the_mean_over_rows_of_what_their_factors_say(cell, depth):
    learner = UORO(3, 5, cell=cell, depth=depth, dtype="float64")
    state, xs = learner.begin(4), frames(6, 4, 3)
    for x in xs[:5]:
        learner.step(x, state)
    error = (learner.predict(state) - xs[5]).detach()
    rows = row_estimates(error @ learner.readout.weight.detach(), state)
    expected = rows.mean(0)[: 5 * (3 + 5 + 1)].view(5, -1)  # the first gate of the first group
    gradient = learner.gradient(xs[5], state)
    torch.testing.assert_close(gradient["cell.weight_ih_l0"][:5], expected[:, :3], rtol=0, atol=1e-13)
    torch.testing.assert_close(gradient["cell.weight_hh_l0"][:5], expected[:, 3:8], rtol=0, atol=1e-13)


def test_the_first_estimate_comes_from_zero_traces_and_is_finite():
    learner = UORO(3, 5)
    state = learner.begin(2)
    assert state.tangent is None
    learner.step(torch.zeros(2, 3), state)
    assert all(torch.isfinite(trace).all() for trace in (state.tangent, *state.weights))
    assert all(trace.any() for trace in (state.tangent, *state.weights))


def test_it_keeps_nothing_of_the_size_of_the_influence():
    learner = UORO(7, 11, cell="lstm")
    state = learner.begin(2)
    learner.step(torch.zeros(2, 7), state)
    assert state.tangent.shape == (2, 2, 11)
    assert [tuple(trace.shape) for trace in state.weights] == [(2, 4 * 11, 7 + 11 + 1)]


@pytest.mark.parametrize(("cell", "depth"), CELLS, ids=IDS)
def test_a_masked_row_keeps_its_traces_to_the_bit(cell, depth):
    learner, xs = UORO(3, 5, cell=cell, depth=depth), frames(5, 4, 3)
    state = learner.begin(4)
    for x in xs[:4]:
        learner.step(x, state)
    before = [state.tangent.clone(), *(trace.clone() for trace in state.weights)]
    mask = torch.tensor([True, False, True, False])
    learner.step(xs[4], state, mask=mask)
    for old, new in zip(before, [state.tangent, *state.weights], strict=True):
        assert torch.equal(old[~mask], new[~mask])
        assert not torch.equal(old[mask], new[mask])


def test_the_global_generator_is_left_alone():
    learner, xs = UORO(3, 5), frames(4, 2, 3)
    before = torch.get_rng_state()
    state = learner.begin(2)
    for x in xs:
        learner.step(x, state)
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize(("cell", "depth"), CELLS, ids=IDS)
def test_a_checkpoint_in_mid_sequence_goes_on_bit_for_bit_signs_included(cell, depth, tmp_path):
    learner, xs, masks = UORO(3, 5, cell=cell, depth=depth), frames(12, 4, 3), any_masks(12, 4)
    state = learner.begin(4)
    for x, mask in zip(xs[:6], masks[:6], strict=True):
        learner.step(x, state, mask=mask)
    checkpoint.save(tmp_path / "run", learner, state)
    resumed, its_state, _ = checkpoint.load(tmp_path / "run")
    for x, mask in zip(xs[6:], masks[6:], strict=True):
        expected = learner.step(x, state, mask=mask).logits
        assert torch.equal(resumed.step(x, its_state, mask=mask).logits, expected)
    assert torch.equal(its_state.tangent, state.tangent)
