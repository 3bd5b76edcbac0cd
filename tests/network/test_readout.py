"""Recursive least squares gives the ridge solution, for the next step and for later ones."""

import pytest
import torch

import ptncn
from ptncn import PTNCN

OPTIONS = {
    "output": "gaussian", "readout": "rls", "horizons": (1, 3, 7), "error_clip": None, "forgetting": 0.995,
    "ridge": 0.5, "dtype": torch.float64,
}  # fmt: skip


def waves(steps: int, rows: int = 1, noise: float = 0.1) -> torch.Tensor:
    rng = torch.Generator().manual_seed(0)
    t = torch.arange(steps, dtype=torch.float64)[:, None, None]
    speeds = torch.tensor([0.31, 0.17])
    clean = torch.sin(speeds * t + torch.arange(rows)[:, None])
    return clean + noise * torch.randn(steps, rows, 2, generator=rng, dtype=torch.float64)


def closed_form(features, targets, horizon, forgetting, ridge):
    """Weighted ridge regression of the observations at s + horizon − 1 on the features of step s, with prior rows."""
    F = features.shape[-1]
    A, b = ridge * torch.eye(F, dtype=torch.float64), torch.zeros(F, targets.shape[-1], dtype=torch.float64)
    for s in range(1, len(features) - horizon + 1):
        prior = torch.zeros(F, dtype=torch.float64)
        prior[(s - 1) % F] = (ridge * (1 - forgetting) * F) ** 0.5
        A = forgetting * A + features[s].T @ features[s] + torch.outer(prior, prior)
        b = forgetting * b + features[s].T @ targets[s + horizon - 1]
    return torch.linalg.solve(A, b)


@pytest.mark.parametrize("rows", [2])
def test_the_weights_are_the_weighted_ridge_solution_after_two_thousand_steps(rows):
    net = PTNCN(2, [6, 4], **OPTIONS)
    net.synapses()["W1"].zero_()  # the mean of the prior
    state, xs, rows_of_features = net.begin(rows), waves(2000, rows), []
    for x in xs:
        out = net.step(x, state)
        rows_of_features.append(torch.cat([out.states[0], torch.ones(rows, 1)], 1))
    features, w = torch.stack(rows_of_features), net.synapses()
    maps = [torch.cat([w["W1"].T, w["c1"][None]]), *net.readout.ahead]
    for horizon, weights in zip((1, 3, 7), maps, strict=True):
        exact = closed_form(features, xs, horizon, 0.995, 0.5)
        assert exact.norm() > 0.1
        torch.testing.assert_close(weights, exact, rtol=0, atol=1e-8)


def test_forecasts_far_ahead_beat_the_last_value():
    """Seven steps ahead, directly from the memory, without predicted steps in between."""
    net = PTNCN(2, [40], memory=20, preset="best", **{**OPTIONS, "forgetting": 1.0})
    state, errors, copies, waiting = net.begin(1), [], [], []
    for x in waves(800, noise=0.02):
        if len(waiting) == 7 and state.steps > 400:
            errors.append((waiting[0][2] - x).abs().mean())
            copies.append((waiting[0][3] - x).abs().mean())
        net.step(x, state)
        waiting = [*waiting[-6:], (*net.forecast(state), x)]
    assert torch.stack(errors).mean() < 0.4 * torch.stack(copies).mean()


def test_a_forecast_learns_when_its_observation_arrives():
    """The map for three steps ahead stays 0 until a scored step is two steps old."""
    net = PTNCN(2, [6], **OPTIONS)
    state, learnt = net.begin(1), []
    for x in waves(6):
        net.step(x, state)
        learnt.append(bool(net.readout.ahead[0].any()))
    assert learnt == [False, False, False, True, True, True]


def test_clipped_errors_limit_the_damage_of_a_spike():
    worst = {}
    for clip in (None, 3.0):
        net = PTNCN(2, [20], weight_std=0.5, **{**OPTIONS, "error_clip": clip, "horizons": (1,)})
        state, xs = net.begin(1), waves(600)
        xs[500] += 1e4
        errors = torch.stack([(net.step(x, state).prediction - x).abs().mean() for x in xs])
        worst[clip] = errors[510:].mean() / errors[300:500].mean()
    assert worst[3.0] < 3 < worst[None]


def test_p_stays_bounded_for_silent_features():
    """Zero observations with fast forgetting: the prior bounds P."""
    net = PTNCN(2, [6], **{**OPTIONS, "forgetting": 0.99, "horizons": (1,)})
    state = net.begin(1)
    for _ in range(1500):
        net.step(torch.zeros(1, 2), state)
    assert torch.linalg.matrix_norm(net.readout.P, 2) < 3 / 0.5
    assert (net.readout.P - net.readout.P.T).abs().max() < 1e-9


def test_a_paused_row_learns_like_one_without_pauses():
    """Pending forecasts wait while their row is masked."""
    paused = PTNCN(2, [6], lr=0.0, **{**OPTIONS, "forgetting": 1.0})
    straight = PTNCN(2, [6], lr=0.0, **{**OPTIONS, "forgetting": 1.0})
    first, second = paused.begin(1), straight.begin(1)
    for t, x in enumerate(waves(30)):
        if t % 3 == 2:
            paused.step(torch.full((1, 2), 9.0), first, mask=torch.tensor([False]))
        paused.step(x, first, mask=torch.tensor([True]))
        straight.step(x, second)
    torch.testing.assert_close(paused.forecast(first), straight.forecast(second), rtol=0, atol=1e-9)


def test_a_checkpoint_keeps_pending_forecasts(tmp_path):
    net = PTNCN(2, [6], **{**OPTIONS, "dtype": torch.float32})
    state, xs = net.begin(2), waves(20, 2).float()
    for x in xs[:12]:
        net.step(x, state)
    ptncn.save(tmp_path / "net", net, state)
    twin, twin_state, _ = ptncn.load(tmp_path / "net")
    for x in xs[12:]:
        net.step(x, state)
        twin.step(x, twin_state)
        assert torch.equal(net.forecast(state), twin.forecast(twin_state))


def test_least_squares_needs_a_gaussian_output_and_horizons_need_least_squares():
    with pytest.raises(ValueError, match="readout='rls': expected output='gaussian', got 'bernoulli'"):
        PTNCN(2, [3], readout="rls")
    with pytest.raises(ValueError, match="expected readout='rls'"):
        PTNCN(2, [3], horizons=(1, 12))
    with pytest.raises(ValueError, match="horizons: expected a list of whole numbers of at least 1"):
        PTNCN(2, [3], readout="rls", output="gaussian", horizons=(0,))
