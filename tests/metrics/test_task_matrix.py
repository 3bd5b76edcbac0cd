"""The task matrix against a worked example that determines every sign and index."""

from __future__ import annotations

import json
import math

import pytest

from ptncn.metrics import TaskMatrix

TASKS = ["a", "b", "c"]
LOSSES = [
    [100.0, 90.0, 80.0],  # untrained
    [10.0, 70.0, 77.0],  # after a
    [13.0, 20.0, 66.0],  # after a, b
    [18.0, 19.0, 30.0],  # after a, b, c
]


def filled() -> TaskMatrix:
    matrix = TaskMatrix(TASKS)
    for learnt, row in enumerate(LOSSES):
        for task, loss in zip(TASKS, row, strict=True):
            matrix.record(learnt, task, loss)
    return matrix


def test_the_average_is_that_of_the_last_row():
    assert filled().average() == pytest.approx((18 + 19 + 30) / 3)


def test_forgetting_is_the_rise_of_the_loss_since_a_task_was_learnt():
    # a rose from 10 to 18, b fell from 20 to 19: forgotten 8 and −1; c had no time to be forgotten.
    assert filled().forgetting() == pytest.approx((8 - 1) / 2)


def test_backward_transfer_is_good_when_later_tasks_help():
    assert filled().backward_transfer() == pytest.approx(-3.5)
    helped = filled()
    helped.record(3, "a", 4.0)  # a fell from 10 to 4: later tasks helped
    assert helped.backward_transfer() == pytest.approx((6 + 1) / 2)


def test_forward_transfer_is_the_reduction_of_loss_by_earlier_tasks():
    # b fell from 90 to 70 before it was learnt, c from 80 to 66; a had nothing before it.
    assert filled().forward_transfer() == pytest.approx((20 + 14) / 2)


def test_the_paper_s_matrix_of_the_p_tncn_shows_hardly_any_forgetting():
    matrix = TaskMatrix(["mnist", "notmnist", "fashion"])
    for learnt, row in [(1, [102.67]), (2, [102.79, 215.65]), (3, [100.31, 223.28, 93.36])]:
        for task, loss in zip(matrix.tasks, row, strict=False):
            matrix.record(learnt, task, loss)
    assert matrix.average() == pytest.approx((100.31 + 223.28 + 93.36) / 3)
    assert matrix.forgetting() == pytest.approx((-2.36 + 7.63) / 2)
    with pytest.raises(ValueError, match="no loss was recorded on task 'notmnist' before any training"):
        matrix.forward_transfer()


def test_compute_returns_all_four_measures():
    matrix = filled()
    assert matrix.compute() == {
        "average": matrix.average(),
        "forgetting": 3.5,
        "backward_transfer": -3.5,
        "forward_transfer": 17.0,
    }


def test_a_single_task_has_an_average_only():
    matrix = TaskMatrix(["only"])
    matrix.record(1, "only", 5.0)
    assert matrix.average() == 5.0
    assert math.isnan(matrix.forgetting())
    assert math.isnan(matrix.forward_transfer())


def test_a_saved_matrix_continues_and_belongs_to_its_tasks():
    matrix, resumed = filled(), TaskMatrix(TASKS)
    resumed.load_tree(json.loads(json.dumps(matrix.tree())))
    assert resumed.losses == matrix.losses
    with pytest.raises(ValueError, match=r"got \['a', 'b', 'c'\]"):
        TaskMatrix(["x"]).load_tree(matrix.tree())
    matrix.reset()
    assert resumed.losses == LOSSES
    with pytest.raises(ValueError, match="no loss was recorded on task 'a' after 'c'"):
        matrix.average()


def test_bad_entries_are_named():
    with pytest.raises(ValueError, match="expected different names"):
        TaskMatrix(["a", "a"])
    with pytest.raises(ValueError, match="unknown task 'z'; choose one of: a, b, c"):
        filled().record(0, "z", 1.0)
    with pytest.raises(ValueError, match="learnt: expected 0 to 3 tasks, got 4"):
        filled().record(4, "a", 1.0)
