"""The echo state network against ReservoirPy, closed forms, autograd, and the protocol."""

from __future__ import annotations

import numpy as np
import pytest
import reservoirpy
import torch

from ptncn.checkpoint import load, save
from ptncn.distributions import DISTRIBUTIONS
from ptncn.learners.esn import ESN, spectral_radius
from ptncn.learners.readouts import RLS, Readout, Ridge
from ptncn.metrics import SE
from ptncn.training import run

READOUTS = ("ridge", "rls", "sgd")


def normal(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def small(readout: str = "ridge", **options) -> ESN:
    options = {"output": "gaussian", "dtype": "float64", "input_scaling": 0.5, "leak_rate": 0.6} | options
    return ESN(options.pop("input_size", 3), options.pop("hidden_size", 12), readout=readout, **options)


def states(learner: ESN, sequence: np.ndarray) -> np.ndarray:
    """(T, H) the reservoir after each frame of one sequence (T, n): the paper's equations, transcribed."""
    W_x = np.vstack([learner.reservoir.bias.numpy(), learner.reservoir.input_weights.numpy()]).T
    W_r = learner.reservoir.recurrent_weights.numpy().T
    alpha = learner.reservoir.leak_rate
    z, out = np.zeros(learner.hidden_size), []
    for x in sequence:
        z = (1 - alpha) * z + alpha * np.tanh(W_x @ np.concatenate([[1.0], x]) + W_r @ z)
        out.append(z)
    return np.array(out)


def pairs(learner: ESN, sequence: np.ndarray, washout: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Features (T − 1 − washout, F) with their targets: each frame with the state after the previous one."""
    z, last = states(learner, sequence)[washout:-1], sequence[washout:-1]
    parts = [z, last] if learner.input_to_readout else [z]
    return np.hstack([*parts, np.ones((len(z), 1))]), sequence[1 + washout :]


def ridge_solution(features: np.ndarray, targets: np.ndarray, ridge: float) -> np.ndarray:
    """The minimiser of the penalised squares, by the SVD of the augmented system rather than normal equations."""
    width = features.shape[1]
    system = np.vstack([features, np.sqrt(ridge) * np.eye(width)])
    return np.linalg.lstsq(system, np.vstack([targets, np.zeros((width, targets.shape[1]))]), rcond=None)[0]


# The reservoir


@pytest.mark.parametrize("leak_rate", [1.0, 0.3])
def test_states_are_those_of_reservoirpy_with_the_same_weights(leak_rate):
    learner = small(hidden_size=40, leak_rate=leak_rate, bias_scaling=0.2)
    weights = learner.reservoir
    oracle = reservoirpy.nodes.Reservoir(
        lr=leak_rate,
        W=weights.recurrent_weights.numpy().T,
        Win=weights.input_weights.numpy().T,
        bias=weights.bias.numpy(),
    )
    sequence = normal(60, 1, 3)
    expected = oracle.run(sequence[:, 0].numpy())
    state = learner.begin(1)
    for x, z in zip(sequence, expected, strict=True):
        learner.step(x, state)
        np.testing.assert_allclose(state.z[0].numpy(), z, rtol=0, atol=1e-13)


@pytest.mark.parametrize(("units", "sr"), [(1, 0.5), (5, 0.9), (100, 1.2), (250, 0.95)])
def test_the_spectral_radius_is_the_requested_one(units, sr):
    weights = small(hidden_size=units, sr=sr).reservoir.recurrent_weights.numpy()
    assert abs(np.linalg.eigvals(weights)).max() == pytest.approx(sr, rel=1e-9)


def test_the_spectral_radius_of_a_large_matrix_is_not_that_of_its_second_eigenvalue():
    rng = np.random.default_rng(1)
    matrix = np.diag(np.concatenate([rng.uniform(-0.99, 0.99, 998), [-1.0, 0.999]]))  # too large for all of them
    assert spectral_radius(matrix) == pytest.approx(1.0, rel=1e-9)


def test_every_unit_is_connected_to_the_same_share_of_units_and_of_inputs():
    weights = small(hidden_size=60, input_size=10, rc_connectivity=0.25, input_connectivity=0.3).reservoir
    assert ((weights.recurrent_weights != 0).sum(0) == 15).all()
    assert ((weights.input_weights != 0).sum(0) == 3).all()
    assert (weights.input_weights[weights.input_weights != 0].abs() == 0.5).all()


def test_no_global_generator_is_used_and_seeds_determine_the_weights():
    before = torch.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002 (the global one is meant)
    first, again, other = (small(hidden_size=250, seed=seed).reservoir for seed in (0, 0, 1))
    assert torch.equal(torch.get_rng_state(), before[0])
    assert (np.random.get_state()[1] == before[1]).all()  # noqa: NPY002
    for name, weights in first.state_dict().items():
        assert torch.equal(weights, again.state_dict()[name])
        assert not torch.equal(weights, other.state_dict()[name])


# Ridge regression


GUESS = {"gaussian": 0.0, "bernoulli": 1 / 2, "categorical": 1 / 3}


@pytest.mark.parametrize("output", GUESS)
@pytest.mark.parametrize("readout", ["ridge", "rls"])
def test_the_weights_are_the_closed_form_over_several_sequences(readout, output):
    learner = small(readout, ridge=0.3, output=output)
    parts = []
    for seed in range(3):
        sequences = torch.softmax(normal(9, 2, 3, seed=seed), -1)
        run(learner, sequences, learn=True)
        parts += [pairs(learner, sequences[:, row].numpy()) for row in range(2)]
    features, targets = (np.concatenate(part) for part in zip(*parts, strict=True))
    expected = ridge_solution(features, targets - GUESS[output], 0.3)
    np.testing.assert_allclose(learner.readout.weight.numpy(), expected, atol=1e-11)


@pytest.mark.parametrize("washout", [0, 2])
@pytest.mark.parametrize("input_to_readout", [False, True])
@pytest.mark.parametrize("readout", ["ridge", "rls"])
def test_masks_and_washout_only_remove_frames_from_the_solution(readout, input_to_readout, washout):
    learner = small(readout, ridge=0.3, washout=washout, input_to_readout=input_to_readout)
    parts = []
    for seed in range(3):
        sequences = normal(12, 4, 3, seed=seed)
        mask = torch.rand(12, 4, generator=torch.Generator().manual_seed(seed)) < 0.7
        run(learner, sequences, learn=True, mask=mask)
        for row in range(4):
            seen = sequences[mask[:, row], row].numpy()
            parts.append(pairs(learner, seen, washout))
    features, targets = (np.concatenate(part) for part in zip(*parts, strict=True))
    expected = ridge_solution(features, targets, 0.3)
    np.testing.assert_allclose(learner.readout.weight.numpy(), expected, atol=1e-10)


def test_ridge_solves_at_the_end_and_every_so_many_steps_of_a_stream():
    learner = small("ridge", solve_every=3)
    state = learner.begin(1)
    solved = []
    for x in normal(8, 1, 3):
        before = learner.readout.weight.clone()
        learner.step(x, state)
        solved.append(not torch.equal(before, learner.readout.weight))
    assert solved == [False, False, False, True, False, False, True, False]  # the first frame teaches nothing
    before = learner.readout.weight.clone()
    learner.end(state)
    assert not torch.equal(before, learner.readout.weight)


def test_the_end_of_a_frozen_sequence_does_not_affect_pending_frames_of_another():
    learner = small("ridge")
    teaching = run(learner, normal(5, 1, 3), learn=True, end=False).state
    run(learner, normal(5, 2, 3, seed=1), learn=False)
    assert not learner.readout.weight.any()
    learner.end(teaching)
    assert learner.readout.weight.any()


# Recursive least squares


def test_rls_without_forgetting_is_ridge_regression_at_every_step():
    rls, ridge = small("rls", ridge=0.2), small("ridge", ridge=0.2, solve_every=1)
    states = rls.begin(3), ridge.begin(3)
    for time, x in enumerate(normal(40, 3, 3)):
        mask = None if time % 3 else torch.tensor([True, time % 2 == 0, True])
        outs = [learner.step(x, state, mask=mask) for learner, state in zip((rls, ridge), states, strict=True)]
        assert torch.allclose(outs[0].prediction, outs[1].prediction, rtol=0, atol=1e-9)
        assert torch.allclose(rls.readout.weight, ridge.readout.weight, rtol=0, atol=1e-9)
    assert rls.readout.weight.abs().max() > 0.1


def readout(kind: type[Readout], width: int = 6, outputs: int = 2, **options) -> Readout:
    return kind(width, outputs, DISTRIBUTIONS.find("gaussian"), torch.float64, **options)


def teach(readout: Readout, features: torch.Tensor, targets: torch.Tensor) -> None:
    with torch.no_grad():
        everyone = torch.ones(len(features), dtype=torch.bool)
        readout.learn(features, readout(features), targets, everyone)


def test_rls_learns_the_same_from_a_block_of_rows_as_from_single_rows():
    block, single = readout(RLS), readout(RLS)
    for seed in range(5):
        features, targets = normal(4, 6, seed=seed), normal(4, 2, seed=seed + 100)
        teach(block, features, targets)
        for row in range(4):
            teach(single, features[row : row + 1], targets[row : row + 1])
    assert torch.allclose(block.weight, single.weight, rtol=0, atol=1e-9)
    assert torch.allclose(block.covariance, single.covariance, rtol=0, atol=1e-9)


def test_rls_with_forgetting_solves_the_weighted_problem_with_a_restored_prior():
    forgetting, ridge, width = 0.9, 0.4, 6
    rls = readout(RLS, forgetting=forgetting, ridge=ridge)
    A, b = ridge * np.eye(width), np.zeros((width, 2))
    for time in range(50):
        features, targets = normal(3, width, seed=time), normal(3, 2, seed=time + 100)
        teach(rls, features, targets)
        A = forgetting * A + features.numpy().T @ features.numpy()
        A[time % width, time % width] += ridge * (1 - forgetting) * width
        b = forgetting * b + features.numpy().T @ targets.numpy()
        np.testing.assert_allclose(rls.weight.numpy(), np.linalg.solve(A, b), atol=1e-9)
        np.testing.assert_allclose(rls.covariance.numpy(), np.linalg.inv(A), atol=1e-9)


def test_rls_stays_bounded_and_symmetric_where_the_features_are_silent():
    rls = readout(RLS, width=30, forgetting=0.9, ridge=0.1)
    rls.covariance[20, 25] += 1e-9  # as large matrix products are not quite symmetric
    features = torch.zeros(3, 30, dtype=torch.float64)
    for time in range(1500):  # 0.9^-1500 is 10^68
        features[:, :10] = normal(3, 10, seed=time)
        teach(rls, features, features[:, :2])
    P = rls.covariance
    assert torch.linalg.eigvalsh(P).min() > 0
    assert (P - P.T).abs().max() < 1e-12
    assert P.abs().max() < 0.9**-30 / (0.1 * 30 * (1 - 0.9))  # a feature's share of the prior, before its next turn
    assert torch.allclose(rls.weight[:10], torch.eye(10, 2, dtype=torch.float64), atol=0.05)


def test_rls_with_forgetting_follows_a_change_that_ridge_regression_averages_away():
    rls, ridge = readout(RLS, forgetting=0.9), readout(Ridge)
    true = normal(6, 2, seed=9)
    for time in range(200):
        features = normal(2, 6, seed=time)
        for learner in (rls, ridge):
            teach(learner, features, features @ (true if time < 100 else -true))
    ridge.settle()
    assert torch.allclose(rls.weight, -true, atol=0.01)
    assert (ridge.weight + true).abs().max() > 0.5


# Gradient descent


@pytest.mark.parametrize("output", ["gaussian", "bernoulli", "categorical"])
def test_sgd_follows_the_gradient_of_the_likelihood_that_autograd_finds(output):
    learner = small("sgd", output=output, optimizer="sgd", lr=0.1)
    sequence = torch.softmax(normal(6, 4, 3), -1)
    state = run(learner, sequence[:-1], learn=True, end=False).state
    weight = learner.readout.weight.detach().clone().requires_grad_()
    mask = torch.tensor([True, False, True, True])
    features = torch.cat([state.z, torch.ones(4, 1)], 1)
    loss = (DISTRIBUTIONS.find(output).nll(features @ weight, sequence[-1]) * mask).sum() / 4
    (gradient,) = torch.autograd.grad(loss, weight)
    learner.step(sequence[-1], state, mask=mask)
    assert torch.allclose(learner.readout.weight, weight.detach() - 0.1 * gradient, rtol=0, atol=1e-12)
    assert gradient.abs().max() > 1e-3


def test_sgd_clips_and_its_step_size_can_be_scheduled():
    learner = small("sgd", optimizer="sgd", lr=0.5, clip=0.01)
    learner.lr = 0.25
    run(learner, normal(2, 1, 3), learn=True)
    assert learner.readout.weight.norm().item() == pytest.approx(0.25 * 0.01, rel=1e-4)
    assert learner.lr == 0.25
    assert not hasattr(small("ridge"), "lr")


# Means and logits


@pytest.mark.parametrize("readout", ["ridge", "rls"])
@pytest.mark.parametrize("output", GUESS)
def test_an_untrained_readout_predicts_the_mean_at_zero_logits(readout, output):
    learner = small(readout, output=output)
    assert learner.predict(learner.begin(2)).flatten().tolist() == pytest.approx([GUESS[output]] * 6)


def test_least_squares_means_are_clipped_and_logits_agree_with_them():
    learner = small("ridge", output="bernoulli", floor=0.1)
    logits = learner.readout.link(torch.tensor([-3.0, 0.2, 9.0], dtype=torch.float64))
    assert torch.sigmoid(logits).tolist() == pytest.approx([0.05, 0.7, 0.95])
    learner = small("ridge", output="categorical", floor=0.3)
    logits = learner.readout.link(torch.tensor([-3.0, 0.0, 1 / 3], dtype=torch.float64))
    share = 0.1 + 1 / 3 + 2 / 3
    expected = [0.1 / share, 1 / 3 / share, 2 / 3 / share]
    assert torch.softmax(logits, -1).tolist() == pytest.approx(expected)


@pytest.mark.parametrize("output", ["bernoulli", "categorical"])
@pytest.mark.parametrize("readout", READOUTS)
def test_predictions_are_the_mean_of_their_logits(readout, output):
    learner = small(readout, output=output)
    sequence = torch.eye(3, dtype=torch.float64)[torch.arange(30) % 3][:, None]
    state = run(learner, sequence, learn=True).state
    expected = learner.predict(state)
    step = learner.step(sequence[0], state)
    assert torch.equal(step.prediction, expected)
    assert torch.equal(step.prediction, DISTRIBUTIONS.find(output).mean(step.logits))
    assert ((step.prediction > 0) & (step.prediction < 1)).all()


# The protocol


@pytest.mark.parametrize("readout", READOUTS)
def test_saved_mid_sequence_it_continues_bit_for_bit(readout, tmp_path):
    special = {"ridge": {"solve_every": 4}, "rls": {"forgetting": 0.97}, "sgd": {"lr": 0.01}}[readout]
    learner = small(readout, input_to_readout=True, washout=2, dtype="float32", **special)
    frames = normal(20, 3, 3).float()
    mask = torch.rand(20, 3, generator=torch.Generator().manual_seed(0)) < 0.8
    state = run(learner, frames[:9], mask=mask[:9], learn=True, end=False).state
    save(tmp_path / "esn", learner, state)
    loaded = load(tmp_path / "esn")
    rest = {"mask": mask[9:], "learn": True}
    straight = run(learner, frames[9:], state=state, **rest)
    resumed = run(loaded.learner, frames[9:], state=loaded.state, **rest)
    assert torch.equal(straight.predictions, resumed.predictions)
    for name, weight in learner.state_dict().items():
        assert torch.equal(weight, loaded.learner.state_dict()[name]), name


@pytest.mark.parametrize("readout", READOUTS)
def test_a_snapshot_is_a_copy(readout):
    learner = small(readout)
    snapshot = learner.snapshot()
    run(learner, normal(5, 1, 3), learn=True)
    assert not snapshot["weights"]["readout.weight"].any()
    learner.restore(snapshot)
    assert not learner.readout.weight.any()
    with pytest.raises(ValueError, match="expected"):
        small(readout, hidden_size=5).restore(snapshot)


@pytest.mark.parametrize("readout", READOUTS)
def test_a_masked_row_has_no_error_no_score_and_keeps_its_state(readout):
    learner = small(readout, input_to_readout=True)
    state = run(learner, normal(5, 2, 3), learn=True, end=False).state
    before = state.clone()
    x = torch.tensor([[1.0, 2.0, 3.0], [torch.nan] * 3], dtype=torch.float64)
    out = learner.step(x, state, mask=torch.tensor([True, False]))
    assert torch.equal(out.errors[0], torch.stack([out.prediction[0] - x[0], torch.zeros_like(x[1])]))
    assert out.scored.tolist() == [True, False]
    for name in ("z", "last", "observed"):
        assert torch.equal(getattr(state, name)[1], getattr(before, name)[1])
        assert not torch.equal(getattr(state, name)[0], getattr(before, name)[0])


def test_the_last_observation_is_copied_from_the_buffer_of_the_caller():
    learner = small(input_to_readout=True)
    state, buffer = learner.begin(1), torch.ones(1, 3, dtype=torch.float64)
    learner.step(buffer, state)
    buffer.zero_()
    assert state.last.tolist() == [[1.0, 1.0, 1.0]]


def test_the_constant_feature_of_the_readout_can_be_left_out():
    assert small(readout_bias=False).readout.weight.shape == (12, 3)
    assert small(input_to_readout=True).readout.weight.shape == (12 + 3 + 1, 3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sr": 0.0}, "sr: expected a positive number, got 0.0"),
        ({"leak_rate": 1.5}, "leak_rate: expected a number above 0 and at most 1, got 1.5"),
        ({"rc_connectivity": 0.0}, "rc_connectivity: expected a number above 0"),
        ({"bias_scaling": -1.0}, "bias_scaling: expected at least 0, got -1.0"),
        ({"washout": -1}, "washout: expected a number of frames, got -1"),
        ({"ridge": 0.0}, "ridge: expected a positive number, got 0.0"),
        ({"floor": 1.0}, "floor: expected a number between 0 and 1, got 1.0"),
        ({"solve_every": 0}, "solve_every: expected a positive integer, got 0"),
        ({"readout": "rls", "forgetting": 0.0}, "forgetting: expected a number above 0 and at most 1, got 0.0"),
        ({"readout": "svm"}, "unknown readout 'svm'; choose one of: ridge, rls, sgd"),
        ({"lr": 0.1}, "'esn-ridge' has no option 'lr'; its readout has: ridge, floor, solve_every"),
    ],
)
def test_bad_options_are_reported_with_what_was_expected(options, message):
    with pytest.raises(ValueError, match=message):
        ESN(3, 5, **options)


def test_a_state_of_another_network_is_rejected():
    with pytest.raises(ValueError, match="got one of 'esn-rls'"):
        small("ridge").predict(small("rls").begin(1))
    with pytest.raises(ValueError, match=r"got \(1, 4\)"):
        small("ridge").end(small("ridge", hidden_size=4).begin(1))


# A task


def sine_mixture(steps: int, rows: int, seed: int) -> torch.Tensor:
    """(T, B, 1) two sines of incommensurable periods with random phases."""
    phase = 2 * torch.pi * torch.rand(2, 1, rows, generator=torch.Generator().manual_seed(seed))
    time = torch.arange(steps)[:, None]
    return (torch.sin(0.2 * time + phase[0]) + 0.5 * torch.sin(0.311 * time + phase[1]))[..., None]


@pytest.mark.parametrize(("readout", "share"), [("ridge", 0.001), ("rls", 0.001), ("sgd", 0.2)])
def test_it_predicts_a_sine_mixture_far_better_than_copy_and_mean(readout, share):
    options = {"input_scaling": 0.5, "washout": 20} | ({"lr": 3e-3} if readout == "sgd" else {"ridge": 1e-4})
    learner = ESN(1, 100, readout=readout, output="gaussian", **options)
    for seed in range(4):
        run(learner, sine_mixture(300, 4, seed), learn=True, keep_predictions=False)
    test = sine_mixture(150, 8, seed=99)
    error = SE()
    state = run(learner, test[:50], end=False).state
    run(learner, test[50:], state=state, meters=[error])
    copy = (test[50:] - test[49:-1]).square().mean().item()
    mean = test[50:].square().mean().item()
    assert error.compute() < share * min(copy, mean)
