"""SAB against BPTT, against an independent transcription, and the properties of its attention."""

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from ptncn.learners import make
from ptncn.learners.sab import EPSILON, SAB, SparseAttention

N, H, B, T = 4, 6, 3, 17
both_cells = pytest.mark.parametrize("cell", ["lstm", "rnn"])


def frames(seed: int = 0, length: int = T) -> Tensor:
    return torch.rand(length, B, N, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def masks() -> Tensor:
    return torch.rand(T, B, generator=torch.Generator().manual_seed(4)) < 0.7


def build(cell: str = "lstm", **options: Any) -> SAB:
    return make(f"{cell}-sab", input_size=N, hidden_size=H, dtype="float64", **options)


def feed(learner: Any, xs: Tensor, masks: Tensor | None = None, **options: Any) -> Any:
    state = learner.begin(B)
    for t, x in enumerate(xs):
        learner.step(x, state, mask=None if masks is None else masks[t], **options)
    return state


@both_cells
@pytest.mark.parametrize("masked", [False, True])
def test_without_attention_and_cuts_it_equals_bptt(cell: str, masked: bool) -> None:
    learner = build(cell, attention=False, k_trunc=T)
    twin = make(f"{cell}-bptt", input_size=N, hidden_size=H, dtype="float64")
    for seed in range(3):
        for each in (learner, twin):
            each.end(feed(each, frames(seed), masks() if masked else None))
    for a, b in zip(learner.parameters(), twin.parameters(), strict=True):
        assert torch.allclose(a, b, rtol=0, atol=1e-12)


def transcribed_loss(learner: SAB, xs: Tensor, k_top: int, k_trunc: int, k_attn: int, memory: int) -> Tensor:
    """The algorithm transcribed, one row and one microstate at a time."""
    attention, losses = learner.attention, []
    for row in range(B):
        h, c, s = (torch.zeros(1, H, dtype=torch.float64) for _ in range(3))
        microstates: list[Tensor] = []
        for t, x in enumerate(xs[:, [row]]):
            if t > 0:
                logits = learner.readout(torch.cat([h, s], dim=1))
                losses.append(F.binary_cross_entropy_with_logits(logits, x, reduction="sum"))
            if t % k_trunc == 0:
                h, c = h.detach(), c.detach()
            h, c = learner.cell(x, (h, c))
            s = torch.zeros_like(h)

            def score(m: Tensor, h: Tensor = h) -> Tensor:
                hidden = torch.tanh(m @ attention.key.T + h @ attention.query.T + attention.bias)
                return (hidden @ attention.value)[0]

            ranked = sorted(microstates[-memory:], key=lambda m: -score(m).item())
            best = ranked[:k_top]
            if best:
                beyond = score(ranked[k_top].detach()) if len(ranked) > k_top else score(best[-1]) - 1
                above = [score(m) - beyond for m in best]
                s = sum(a * m for a, m in zip(above, best, strict=True)) / (sum(above) + EPSILON)
            if (t + 1) % k_attn == 0:
                microstates.append(h)
            h = h + s
    return torch.stack(losses).sum() / B / (len(xs) - 1)


@pytest.mark.parametrize(
    ("k_top", "k_trunc", "k_attn", "memory"), [(2, 3, 2, 10), (3, 5, 1, 20), (1, 1, 3, 20), (10, 5, 2, 10)]
)
def test_loss_and_gradient_are_those_of_a_transcription_row_by_row(
    k_top: int, k_trunc: int, k_attn: int, memory: int
) -> None:
    sizes = {"k_top": k_top, "k_trunc": k_trunc, "k_attn": k_attn, "memory": memory}
    learner = build(**sizes)
    weights = list(learner.parameters())
    ours, theirs = learner.loss(feed(learner, frames())), transcribed_loss(learner, frames(), **sizes)
    assert ours.item() == pytest.approx(theirs.item(), abs=1e-12)
    for a, b in zip(torch.autograd.grad(ours, weights), torch.autograd.grad(theirs, weights), strict=True):
        assert torch.allclose(a, b, rtol=0, atol=1e-9)


def reach(learner: SAB, length: int) -> list[bool]:
    """The observations that the gradient of the last step reaches."""
    state = learner.begin(1)
    for x in frames(length=length)[:, [0]]:
        learner.step(x, state)
    state.xs = [x.requires_grad_() for x in state.xs]
    last = learner.readout(learner.visible(state)[-1]).sum()
    gradients = torch.autograd.grad(last, state.xs[:-1], allow_unused=True)
    return [gradient is not None and bool((gradient != 0).any()) for gradient in gradients]


def test_the_local_chain_is_cut_every_k_trunc_steps() -> None:
    assert reach(build(attention=False, k_trunc=5), length=14) == [False] * 10 + [True] * 3


def test_attention_reaches_beyond_the_cuts_through_what_it_attends() -> None:
    reached = reach(build(k_trunc=5, k_attn=2, k_top=10), length=14)
    unreached = [t for t, there in enumerate(reached) if not there]
    assert unreached == [4]  # the only one that neither is, nor leads without a cut to, a microstate
    alone = reach(build(k_trunc=1, k_attn=4, k_top=1), length=8)
    assert alone == [False, False, False, True, False, False, True]


def attend(k_top: int, stored: int, filled: list[int]) -> tuple[Tensor, list[Tensor], SparseAttention]:
    generator = torch.Generator().manual_seed(3)
    attention = SparseAttention(H, 5, k_top, torch.float64)
    with torch.no_grad():
        for parameter in attention.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator, dtype=torch.float64))
    slots = [
        torch.randn(len(filled), H, generator=generator, dtype=torch.float64).requires_grad_() for _ in range(stored)
    ]
    h = torch.randn(len(filled), H, generator=generator, dtype=torch.float64)
    return attention(h, slots, torch.tensor(filled)), slots, attention


def test_gradients_reach_the_attended_microstates_and_no_others() -> None:
    summary, slots, _ = attend(k_top=3, stored=8, filled=[8, 5, 2, 0])
    gradients = torch.stack(torch.autograd.grad(summary.sum(), slots))  # (slots, rows, H)
    reached = (gradients != 0).any(dim=-1).sum(dim=0)
    assert reached.tolist() == [3, 3, 2, 0]


def test_the_summary_is_a_weighted_mean_of_the_filled_slots() -> None:
    generator = torch.Generator().manual_seed(0)
    attention = SparseAttention(H, 5, 3, torch.float64)
    with torch.no_grad():
        for parameter in attention.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator, dtype=torch.float64))
    slots = [torch.full((3, H), value, dtype=torch.float64) for value in (1.0, 2.0, 3.0, 1e9)]
    summary = attention(torch.zeros(3, H, dtype=torch.float64), slots, torch.tensor([3, 1, 0]))
    assert 1 < summary[0, 0] < 3
    assert summary[1].tolist() == pytest.approx([1.0] * H)
    assert summary[2].tolist() == [0.0] * H


def test_the_memory_keeps_the_latest_microstates_and_no_more() -> None:
    learner = build(k_attn=2, memory=3)
    state, stored = learner.begin(B), []
    for x in frames():
        learner.step(x, state, learn=False)
        if state.steps % 2 == 0:
            stored.append(state.hidden[0] - state.hidden[-1])
    assert len(state.slots) == 3
    for kept in stored[-3:]:
        assert any(torch.allclose(kept, slot, rtol=0, atol=1e-12) for slot in state.slots)


def test_each_row_keeps_its_own_count_under_masks() -> None:
    learner = build(k_attn=2, memory=3)
    seen = masks()
    state = feed(learner, frames(), seen, learn=False)
    assert state.counts.tolist() == seen.sum(0).tolist()


def test_on_a_stream_it_learns_each_time_the_memory_is_full_and_its_state_stays_bounded() -> None:
    learner = build("rnn", memory=4, k_attn=2)
    state, updates = learner.begin(B), []
    learner.apply_gradient = lambda: updates.append(state.steps)
    for _ in range(10):
        for x in frames():
            learner.step(x, state)
            assert state.hidden[0].abs().max() < 2  # a tanh, and a mean of such
    assert updates == list(range(8, 10 * T + 1, 8))


def test_the_paper_gives_the_defaults() -> None:
    options = build().options()
    assert [options[name] for name in ("k_top", "k_trunc", "k_attn")] == [10, 5, 2]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"k_top": 0}, "k_top.*0"),
        ({"memory": 1.5}, r"memory.*1\.5"),
        ({"microstate": "h"}, "microstate 'h'; choose one of: cell, sum"),
    ],
)
def test_a_bad_option_is_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        build(**options)
    with pytest.raises(ValueError, match="cell for sab 'gru'"):
        SAB(N, H, cell="gru")
