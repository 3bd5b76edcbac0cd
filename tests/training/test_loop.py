"""`run`: its calls and their order, layouts, masks, meters, and rejected input."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from ptncn.learner import State, Step
from ptncn.metrics import SE
from ptncn.training import evaluate, run


class Diary:
    """Predicts the sum of the observations of a row, and records every call."""

    registry_name, input_size = "diary", 2

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []

    def begin(self, batch_size: int) -> State:
        self.calls.append(("begin", batch_size))
        state = State(batch_size=batch_size)
        state.total = torch.zeros(batch_size, 2)
        return state

    def step(self, x: Tensor, state: State, *, learn: bool = True, mask: Tensor | None = None) -> Step:
        self.calls.append(("step", learn))
        scored = state.scored(mask)[1]
        if scored is None:
            scored = torch.full((state.batch_size,), state.steps > 0)
        prediction = state.total
        state.total = state.total + (x if mask is None else torch.where(mask[:, None], x, 0.0))
        state.advance(mask)
        return Step(prediction, prediction, (prediction - x,), scored)

    def end(self, state: State) -> None:
        self.calls.append(("end",))


FRAMES = torch.arange(12.0).view(3, 2, 2)
"""(T, B, n)"""


def test_it_begins_steps_and_ends_once_each():
    learner = Diary()
    run(learner, FRAMES, learn=True)
    assert learner.calls == [("begin", 2), *[("step", True)] * 3, ("end",)]


def test_it_learns_only_with_learn_and_leaves_sequences_open_without_end():
    learner = Diary()
    run(learner, FRAMES, end=False)
    assert learner.calls == [("begin", 2), *[("step", False)] * 3]


def test_predictions_come_before_their_frames():
    expected = torch.stack([torch.zeros(2, 2), FRAMES[0], FRAMES[0] + FRAMES[1]])
    assert torch.equal(run(Diary(), FRAMES).predictions, expected)


def test_batch_first_is_the_same_with_the_axes_swapped():
    mask = torch.tensor([[True, True], [True, False], [True, True]])
    time_major = run(Diary(), FRAMES, mask=mask)
    batch_first = run(Diary(), FRAMES.transpose(0, 1), mask=mask.T, batch_first=True)
    assert torch.equal(batch_first.predictions, time_major.predictions.transpose(0, 1))
    assert torch.equal(batch_first.state.seen, time_major.state.seen)


def test_a_sequence_in_two_pieces_is_the_whole_sequence():
    whole = run(Diary(), FRAMES)
    learner = Diary()
    first = run(learner, FRAMES[:1], end=False)
    second = run(learner, FRAMES[1:], state=first.state)
    assert torch.equal(torch.cat([first.predictions, second.predictions]), whole.predictions)
    assert learner.calls.count(("begin", 2)) == 1
    assert second.state.steps == 3


def test_meters_see_scored_rows_only():
    error = SE()
    mask = torch.tensor([[True, False], [True, True], [False, True]])
    run(Diary(), FRAMES, mask=mask, meters=[error])
    # Row 0 has its second frame at t = 1: (0, 1) against (4, 5); row 1 at t = 2: (6, 7) against (10, 11).
    assert error.compute() == (16 + 16 + 16 + 16) / 2


def test_predictions_need_not_be_kept():
    assert run(Diary(), FRAMES, keep_predictions=False).predictions is None


def test_evaluate_pools_all_batches_and_reports_progress():
    counted: list[int] = []
    learner = Diary()
    wide = torch.ones(2, 3, 2)
    mask = torch.tensor([[True, True, True], [True, False, True]])
    result = evaluate(learner, iter([FRAMES, (FRAMES, None), (wide, mask)]), [SE()], progress=counted.append)
    # Each time FRAMES gives, at t = 1, rows of 16 + 16, and at t = 2 the frames 8 … 11 against 4, 6, 8, 10.
    frames = [32.0, 32.0, 16 + 9.0, 4 + 1.0]
    assert result == {"se": pytest.approx((2 * sum(frames) + 2 * 0.0) / (2 * 4 + 2))}
    assert counted == [2, 4, 7]
    assert learner.calls.count(("end",)) == 3


@pytest.mark.parametrize(
    ("sequence", "options", "message"),
    [
        (FRAMES[0], {}, r"expected \(T, B, n\) with n = 2 .*got shape \(2, 2\)"),
        (FRAMES[0], {"batch_first": True}, r"\(B, T, n\)"),
        (torch.zeros(3, 2, 5), {}, r" n = 2 .*got shape \(3, 2, 5\)"),
        (torch.zeros(0, 2, 2), {}, "at least one step"),
        (FRAMES, {"mask": torch.ones(2, 3)}, r"mask: expected one entry per frame, shape \(3, 2\), got \(2, 3\)"),
        (FRAMES, {"state": State(batch_size=5)}, "state: expected one of 2 sequences, got 5"),
    ],
)
def test_bad_shapes_are_named_with_what_was_expected(sequence, options, message):
    learner = Diary()
    with pytest.raises(ValueError, match=message):
        run(learner, sequence, **options)
    assert learner.calls == []
