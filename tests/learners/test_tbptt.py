"""TBPTT against BPTT and against the definition of truncation."""

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from ptncn.learners import make
from ptncn.learners.cells import CELLS

N, H, B, T = 4, 6, 3, 23


def frames(seed: int = 0) -> Tensor:
    return torch.rand(T, B, N, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def masks() -> Tensor:
    return torch.rand(T, B, generator=torch.Generator().manual_seed(4)) < 0.7


def train(name: str, masked: bool = False, sequences: int = 3, **options: Any) -> list[Tensor]:
    learner = make(name, input_size=N, hidden_size=H, dtype="float64", **options)
    for seed in range(sequences):
        state = learner.begin(B)
        for x, mask in zip(frames(seed), masks(), strict=True):
            learner.step(x, state, mask=mask if masked else None)
        learner.end(state)
    return list(learner.parameters())


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("length", [T, T + 10])
def test_a_window_of_the_whole_length_equals_bptt(cell: str, masked: bool, length: int) -> None:
    truncated = train(f"{cell}-tbptt", masked, window=length, stride=length)
    whole = train(f"{cell}-bptt", masked)
    for a, b in zip(truncated, whole, strict=True):
        assert torch.allclose(a, b, rtol=0, atol=1e-12)


@pytest.mark.parametrize(("window", "stride"), [(6, 6), (9, 4), (7, 1)])
def test_an_update_is_the_gradient_of_the_new_steps_through_the_window(window: int, stride: int) -> None:
    """By definition, stepping the cell from the hidden state as it was a window ago, with plain SGD."""
    options = {"input_size": N, "hidden_size": H, "dtype": "float64", "optimizer": "sgd", "lr": 0.1, "clip": None}
    learner = make("lstm-tbptt", window=window, stride=stride, **options)
    twin = make("lstm-bptt", **options)
    xs, state = frames(), learner.begin(B)
    before = [twin.cell.begin(B)]  # the hidden state before each step, under the weights of its time
    for t, x in enumerate(xs):
        learner.step(x, state)
        with torch.no_grad():
            before.append(twin.cell(x, before[-1]))
        if (t + 1) % stride == 0 or t + 1 == T:
            if t + 1 == T:
                learner.end(state)
            first_new = t - t % stride
            start = max(0, (t // stride + 1) * stride - window)
            hidden, losses = before[start], []
            for s in range(start, t + 1):
                if s >= max(first_new, 1):
                    logits = twin.readout(hidden[0])
                    losses.append(F.binary_cross_entropy_with_logits(logits, xs[s], reduction="none").sum() / B)
                hidden = twin.cell(xs[s], hidden)
            if losses:
                torch.stack(losses).mean().backward()
                twin.optimizer.step()
                twin.optimizer.zero_grad()
            for a, b in zip(learner.parameters(), twin.parameters(), strict=True):
                assert torch.allclose(a, b, rtol=0, atol=1e-12), t


def test_updates_come_every_stride_and_end_takes_the_remainder() -> None:
    learner = make("gru-tbptt", input_size=N, hidden_size=H, dtype="float64", window=5, stride=5)
    state, updates = learner.begin(B), []
    learner.apply_gradient = lambda: updates.append(state.steps)
    for x in frames():
        learner.step(x, state)
    learner.end(state)
    assert updates == [5, 10, 15, 20, 23]
    learner.end(state)
    assert len(updates) == 5


def test_the_paper_window_of_25_is_the_default() -> None:
    options = make("lstm-tbptt", input_size=N, hidden_size=H).options()
    assert (options["window"], options["stride"]) == (25, 25)


def test_a_window_shorter_than_the_stride_is_refused() -> None:
    with pytest.raises(ValueError, match="window: expected at least the stride, 4, got 3"):
        make("lstm-tbptt", input_size=N, hidden_size=H, window=3, stride=4)
