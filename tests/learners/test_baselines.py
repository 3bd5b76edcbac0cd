"""The trivial learners against their definitions."""

import pytest
import torch
from torch import Tensor

from ptncn.learners import make

N, B, T = 3, 2, 6


def frames(seed: int = 0) -> Tensor:
    return torch.rand(T, B, N, generator=torch.Generator().manual_seed(seed))


def test_copy_predicts_the_last_observation_of_each_row() -> None:
    learner = make("copy", input_size=N, output="gaussian")
    state = learner.begin(B)
    assert torch.equal(learner.predict(state), torch.zeros(B, N))
    for x in frames():
        learner.step(x, state)
        assert torch.equal(learner.predict(state), x)


def test_copy_keeps_the_last_observation_of_a_masked_row() -> None:
    learner = make("copy", input_size=N, output="gaussian")
    state = learner.begin(B)
    first, second = frames()[:2]
    learner.step(first, state)
    learner.step(second, state, mask=torch.tensor([True, False]))
    assert torch.equal(learner.predict(state), torch.stack([second[0], first[1]]))


def test_mean_predicts_the_mean_of_all_rows_and_sequences() -> None:
    learner = make("mean", input_size=N, output="gaussian")
    for seed in range(3):
        state = learner.begin(B)
        for x in frames(seed):
            learner.step(x, state)
    everything = torch.cat([frames(seed).reshape(-1, N) for seed in range(3)])
    assert torch.allclose(learner.predict(state), everything.mean(0).expand(B, N))


def test_mean_counts_observed_rows_only_and_nothing_when_frozen() -> None:
    learner = make("mean", input_size=N, output="gaussian")
    state = learner.begin(B)
    learner.step(frames()[0], state, mask=torch.tensor([False, True]))
    learner.step(frames()[1], state, learn=False)
    assert torch.allclose(learner.predict(state), frames()[0, [1]].expand(B, N))


@pytest.mark.parametrize("name", ["copy", "mean"])
def test_certain_pixels_get_finite_logits_close_to_the_observation(name: str) -> None:
    learner = make(name, input_size=N, output="bernoulli")
    state = learner.begin(1)
    x = torch.tensor([[0.0, 1.0, 0.0]])
    learner.step(x, state)
    out = learner.step(x, state)
    assert torch.isfinite(out.logits).all()
    assert torch.allclose(out.prediction, x, atol=1.1e-3)


def test_copied_symbols_become_a_distribution() -> None:
    learner = make("copy", input_size=N, output="categorical")
    state = learner.begin(1)
    learner.step(torch.eye(N)[[1]], state)
    prediction = learner.predict(state)
    assert prediction.sum().item() == pytest.approx(1)
    assert prediction[0, 1] > 0.99


@pytest.mark.parametrize("floor", [0.0, 0.5, -1.0])
def test_a_floor_that_is_not_a_small_probability_is_reported(floor: float) -> None:
    with pytest.raises(ValueError, match=f"floor.*{floor}"):
        make("copy", input_size=N, floor=floor)
