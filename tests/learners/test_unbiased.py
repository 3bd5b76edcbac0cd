"""UORO and KF-RTRL: their mean is RTRL's gradient, and mutants of the rules have another mean."""

import pytest
import torch
from forward_oracles import (
    CELLS,
    IDS,
    bptt_gradient,
    check_resumed,
    draw_gradients,
    exact_gradient,
    frames,
    mutate,
    rejects,
    row_estimates,
)

from ptncn.learners.rtrl import KFRTRL, UORO

DRAWS = 6_000
RULES = pytest.mark.parametrize("rule", [UORO, KFRTRL], ids=["uoro", "kf-rtrl"])

UORO_MUTANTS = {
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

KF_RTRL_MUTANTS = {
    "the new vector is subtracted": ("+ (c_2 * p_2)[:, None] * v", "- (c_2 * p_2)[:, None] * v"),
    "p₁ is missing from u": ("(c_1 * p_1)[:, None] * u", "c_1[:, None] * u"),
    "p₂ is missing from u": ("(c_2 * p_2)[:, None] * v", "c_2[:, None] * v"),
    "p₁ is missing from A": ("(c_1 / p_1)[:, None, None, None] * JA", "c_1[:, None, None, None] * JA"),
    "p₂ is missing from A": ("(c_2 / p_2)[:, None, None, None] * D", "c_2[:, None, None, None] * D"),
    "the transition is left out": ("JA = _times_transition(dense, diagonal, A)", "JA = A"),
    "the past is forgotten": ("JA = _times_transition(dense, diagonal, A)", "JA = 0.0 * A"),
    "the past has one sign in u and another in A": ("(c_1 / p_1)[:", "(c_2 / p_1)[:"),
    "the signs are not random": ("c_1, c_2 = self.signs(2, len(v))", "c_1, c_2 = torch.ones(2, len(v)).double()"),
}

MUTANTS = [(UORO, name) for name in UORO_MUTANTS] + [(KFRTRL, name) for name in KF_RTRL_MUTANTS]


def factors(state):
    """The tensors that stand for the influence."""
    return [state.tangent, *state.weights] if hasattr(state, "tangent") else [*state.vectors, *state.matrices]


@RULES
@pytest.mark.parametrize("masked", [False, True], ids=["whole", "masked"])
@pytest.mark.parametrize(("cell", "depth"), CELLS, ids=IDS)
def test_the_mean_of_many_draws_is_the_exact_gradient(rule, cell, depth, masked):
    masks = torch.tensor([[1], [1], [0], [1], [0], [1], [1], [1]]).bool() if masked else None
    exact = exact_gradient(cell, depth, masks=masks)
    assert not rejects(draw_gradients(rule, cell, depth, DRAWS, masks=masks), exact)


@pytest.mark.parametrize(("rule", "mutant"), MUTANTS)
@pytest.mark.parametrize("cell", ["rnn", "lstm"])
def test_a_mutated_rule_is_rejected(cell, rule, mutant, monkeypatch):
    wrong = mutate(monkeypatch, rule, *(UORO_MUTANTS if rule is UORO else KF_RTRL_MUTANTS)[mutant])
    assert rejects(draw_gradients(wrong, cell, 1, DRAWS), exact_gradient(cell, 1))


@RULES
@pytest.mark.parametrize(("cell", "depth"), CELLS, ids=IDS)
def test_its_gradient_is_the_mean_over_rows_of_their_estimates(rule, cell, depth):
    learner = rule(3, 5, cell=cell, depth=depth, dtype="float64")
    state, xs = learner.begin(4), frames(6, 4, 3)
    for x in xs[:5]:
        learner.step(x, state)
    error = (learner.predict(state) - xs[5]).detach()
    rows = row_estimates(error @ learner.readout.weight.detach(), state)
    expected = rows.mean(0)[: 5 * (3 + 5 + 1)].view(5, -1)  # the first gate of the first group
    gradient = learner.gradient(xs[5], state)
    torch.testing.assert_close(gradient["cell.weight_ih_l0"][:5], expected[:, :3], rtol=0, atol=1e-13)
    torch.testing.assert_close(gradient["cell.weight_hh_l0"][:5], expected[:, 3:8], rtol=0, atol=1e-13)


@RULES
def test_the_first_estimate_comes_from_zero_factors_and_is_finite(rule):
    learner = rule(3, 5)
    state = learner.begin(2)
    assert not learner.carries(state)
    learner.step(torch.zeros(2, 3), state)
    assert all(torch.isfinite(factor).all() and factor.any() for factor in factors(state))


@RULES
@pytest.mark.parametrize(("cell", "depth"), CELLS, ids=IDS)
def test_a_masked_row_keeps_its_factors_bit_for_bit(rule, cell, depth):
    learner, xs = rule(3, 5, cell=cell, depth=depth), frames(5, 4, 3)
    state = learner.begin(4)
    for x in xs[:4]:
        learner.step(x, state)
    before = [factor.clone() for factor in factors(state)]
    mask = torch.tensor([True, False, True, False])
    learner.step(xs[4], state, mask=mask)
    for old, new in zip(before, factors(state), strict=True):
        assert torch.equal(old[~mask], new[~mask])
        assert not torch.equal(old[mask], new[mask])


@RULES
def test_the_global_generator_is_not_used(rule):
    learner, xs = rule(3, 5), frames(4, 2, 3)
    before = torch.get_rng_state()
    state = learner.begin(2)
    for x in xs:
        learner.step(x, state)
    assert torch.equal(torch.get_rng_state(), before)


@RULES
@pytest.mark.parametrize(("cell", "depth"), CELLS, ids=IDS)
def test_a_checkpoint_mid_sequence_continues_bit_for_bit_including_random_signs(rule, cell, depth, tmp_path):
    _, state, its_state = check_resumed(rule(3, 5, cell=cell, depth=depth), tmp_path)
    for ours, theirs in zip(factors(state), factors(its_state), strict=True):
        assert torch.equal(ours, theirs)


def test_uoro_stores_nothing_of_the_size_of_the_influence():
    learner = UORO(7, 11, cell="lstm")
    state = learner.begin(2)
    learner.step(torch.zeros(2, 7), state)
    assert state.tangent.shape == (2, 2, 11)
    assert [tuple(trace.shape) for trace in state.weights] == [(2, 4 * 11, 7 + 11 + 1)]


def test_the_second_frames_gradient_is_exact_since_the_first_influence_is_one_kronecker_product():
    learner, xs = KFRTRL(3, 5, cell="gru", dtype="float64"), frames(2, 4, 3)
    state = learner.begin(4)
    learner.step(xs[0], state)
    for name, exact in bptt_gradient(learner, xs).items():
        torch.testing.assert_close(learner.gradient(xs[1], state)[name], exact, rtol=0, atol=1e-12)


def test_it_keeps_a_pair_of_factors_for_each_vector_that_weights_multiply():
    def shapes(cell, depth=1):
        learner = KFRTRL(7, 11, cell=cell, depth=depth)
        state = learner.begin(2)
        learner.step(torch.zeros(2, 7), state)
        return [(tuple(u.shape[1:]), tuple(A.shape[1:])) for u, A in zip(state.vectors, state.matrices, strict=True)]

    assert shapes("lstm") == [((19,), (2, 11, 44))]
    assert shapes("gru") == [((19,), (1, 11, 22)), ((12,), (1, 11, 11)), ((8,), (1, 11, 11))]
    assert shapes("rhn", depth=2) == [((19,), (1, 11, 22)), ((12,), (1, 11, 22))]
