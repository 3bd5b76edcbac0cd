"""BPTT against plain PyTorch."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ptncn.learners import make
from ptncn.learners.bptt import BPTT
from ptncn.learners.cells import CELLS

N, H, B, T = 4, 6, 3, 15
every_cell = pytest.mark.parametrize("cell", CELLS)


def frames(seed: int = 0, length: int = T) -> Tensor:
    return torch.rand(length, B, N, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def build(cell: str = "lstm", **options: Any) -> BPTT:
    return make(f"{cell}-bptt", input_size=N, hidden_size=H, dtype="float64", **options)


def feed(learner: BPTT, xs: Tensor, masks: Tensor | None = None, state: Any = None, learn: bool = True) -> Any:
    state = learner.begin(xs.shape[1]) if state is None else state
    for t, x in enumerate(xs):
        learner.step(x, state, mask=None if masks is None else masks[t], learn=learn)
    return state


def gradient(learner: BPTT, state: Any) -> dict[str, Tensor]:
    names, weights = zip(*learner.named_parameters(), strict=True)
    return dict(zip(names, torch.autograd.grad(learner.loss(state), weights), strict=True))


def plain_gradient(learner: BPTT, xs: Tensor, masks: Tensor) -> dict[str, Tensor]:
    """The definition: step the cell, keep masked rows, and average the surprise at scored rows."""
    hidden, seen = learner.cell.begin(B), torch.zeros(B, dtype=torch.bool)
    total, steps = torch.zeros((), dtype=torch.float64), 0
    for x, mask in zip(xs, masks, strict=True):
        scored = seen & mask
        surprise = F.binary_cross_entropy_with_logits(learner.readout(hidden[0]), x, reduction="none").sum(1)
        total, steps = total + surprise[scored].sum() / B, steps + int(scored.any())
        after = learner.cell(x, hidden)
        hidden = tuple(torch.where(mask[:, None], a, b) for a, b in zip(after, hidden, strict=True))
        seen = seen | mask
    names, weights = zip(*learner.named_parameters(), strict=True)
    return dict(zip(names, torch.autograd.grad(total / steps, weights), strict=True))


def gaps() -> Tensor:
    masks = torch.rand(T, B, generator=torch.Generator().manual_seed(4)) < 0.6
    assert (masks[1:] & ~masks[:-1]).any()
    return masks


def padding() -> Tensor:
    return torch.arange(T)[:, None] < torch.tensor([15, 4, 9])


class TwentyLines(nn.Module):
    """The same LSTM in plain PyTorch."""

    def __init__(self, learner: BPTT, lr: float) -> None:
        super().__init__()
        self.lstm = nn.LSTM(N, H, dtype=torch.float64)
        self.out = nn.Linear(H, N, dtype=torch.float64)
        self.lstm.load_state_dict(learner.cell.state_dict())
        self.out.load_state_dict(learner.readout.state_dict())
        self.optimizer = torch.optim.RMSprop(self.parameters(), lr=lr)

    def learn(self, xs: Tensor) -> float:
        hs, _ = self.lstm(xs[:-1])
        loss = F.binary_cross_entropy_with_logits(self.out(hs), xs[1:], reduction="none").sum(-1).mean()
        self.optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.parameters(), 1.0)
        self.optimizer.step()
        return loss.item()


def test_an_lstm_matches_twenty_lines_of_plain_pytorch_update_for_update() -> None:
    learner = build(lr=0.01)
    twin = TwentyLines(learner, lr=0.01)
    for sequence in range(30):
        xs = frames(seed=sequence)
        state = feed(learner, xs)
        loss = learner.loss(state).item()
        learner.end(state)
        assert loss == pytest.approx(twin.learn(xs), abs=1e-12)
        for ours, theirs in zip(learner.parameters(), twin.parameters(), strict=True):
            assert torch.allclose(ours, theirs, rtol=0, atol=1e-10)


@every_cell
@pytest.mark.parametrize(
    "masks", [torch.ones(T, B, dtype=torch.bool), gaps(), padding()], ids=["all", "gaps", "padding"]
)
def test_the_gradient_is_that_of_the_definition(cell: str, masks: Tensor) -> None:
    learner = build(cell)
    ours = gradient(learner, feed(learner, frames(), masks))
    for name, expected in plain_gradient(learner, frames(), masks).items():
        assert torch.allclose(ours[name], expected, rtol=0, atol=1e-12), name


def test_padded_batches_run_on_the_fused_kernel_and_batches_with_gaps_do_not(monkeypatch: Any) -> None:
    learner = build()
    states = [feed(learner, frames(), masks) for masks in (None, padding(), gaps())]
    unrolled = []
    monkeypatch.setattr(
        learner.cell, "unroll", lambda xs, h: unrolled.append(len(xs)) or CELLS["lstm"].unroll(learner.cell, xs, h)
    )
    for state in states:
        learner.loss(state)
    assert unrolled == [T - 1, T - 1]


def test_a_step_with_all_rows_masked_leaves_no_trace() -> None:
    learner, plain = build(), build()
    no_rows = torch.zeros(B, dtype=torch.bool)
    state = plain.begin(B)
    other = learner.begin(B)
    for x in frames():
        plain.step(x, state)
        learner.step(x, other)
        learner.step(x, other, mask=no_rows)
    plain.end(state)
    learner.end(other)
    for a, b in zip(plain.parameters(), learner.parameters(), strict=True):
        assert torch.allclose(a, b, rtol=0, atol=1e-14)


def test_frozen_steps_store_nothing() -> None:
    learner = build()
    state = feed(learner, frames(), learn=False)
    assert not state.xs
    assert not state.before


def test_learning_resumes_after_frozen_steps_as_if_a_new_sequence_began_in_the_same_state() -> None:
    learner, pieces = build(), build()
    xs = frames(length=12)
    state = feed(learner, xs[:4])
    feed(learner, xs[4:8], state=state, learn=False)
    feed(learner, xs[8:], state=state)
    learner.end(state)
    state = feed(pieces, xs[:4])
    feed(pieces, xs[4:8], state=state, learn=False)
    pieces.end(state)
    feed(pieces, xs[8:], state=state)
    pieces.end(state)
    for a, b in zip(learner.parameters(), pieces.parameters(), strict=True):
        assert torch.allclose(a, b, rtol=0, atol=1e-14)


def test_the_error_on_an_endless_stream_suggests_a_window() -> None:
    learner = build("gru", max_length=5)
    state = feed(learner, frames(length=5))
    with pytest.raises(ValueError, match=r"5 steps.*endless stream needs a window.*'gru-tbptt'"):
        learner.step(frames()[0], state)
    assert state.steps == 5
    feed(learner, frames(length=20), state=state, learn=False)


def test_a_diverged_gradient_is_an_error_and_does_not_change_the_weights() -> None:
    learner = build(output="gaussian")
    with torch.no_grad():
        for weight in learner.parameters():
            weight.mul_(1e200)
    before = {name: weight.clone() for name, weight in learner.named_parameters()}
    state = feed(learner, frames(length=3))
    with pytest.raises(FloatingPointError, match="diverged"):
        learner.end(state)
    assert all(torch.equal(weight, before[name]) for name, weight in learner.named_parameters())


@pytest.mark.parametrize("clip", [1e-3, None])
def test_the_gradient_is_clipped_at_its_norm(clip: float | None) -> None:
    learner = build(optimizer="sgd", lr=1.0, clip=clip)
    before = torch.cat([weight.detach().flatten().clone() for weight in learner.parameters()])
    state = feed(learner, frames())
    norm = torch.cat([g.flatten() for g in gradient(learner, state).values()]).norm()
    learner.end(state)
    change = torch.cat([weight.detach().flatten() for weight in learner.parameters()]) - before
    assert change.norm().item() == pytest.approx(norm.item() if clip is None else clip, rel=1e-3)


def test_a_schedule_sets_the_step_size_and_a_checkpoint_keeps_it(tmp_path: Any) -> None:
    import ptncn

    learner = build(lr=0.1)
    learner.lr = 0.05
    ptncn.save(tmp_path / "c", learner)
    assert ptncn.load(tmp_path / "c").learner.lr == 0.05


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"optimizer": "rmsprob"}, "'rmsprob'.*rmsprop"),
        ({"lr": -1.0}, "lr: expected a positive number, got -1.0"),
        ({"clip": 0}, "clip: expected a positive number, got 0"),
        ({"output": "poisson"}, "'poisson'"),
        ({"max_length": 0}, "max_length.*0"),
    ],
)
def test_a_bad_option_is_reported_with_what_was_expected(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        build(**options)
    with pytest.raises(ValueError, match="dtype 'float16'"):
        make("lstm-bptt", input_size=N, hidden_size=H, dtype="float16")
