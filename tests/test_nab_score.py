"""The benchmark's score of detectors against manual calculations."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))
from nab_score import File, evaluate, points, sigmoid

FILE = File("made up", np.zeros(1000), [(500, 599)])


def alarms(*rows: int) -> np.ndarray:
    scores = np.zeros(1000)
    scores[list(rows)] = 1.0
    return scores


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ((), -1.0),
        ((500,), 1.0),
        ((500, 520, 540), 1.0),
        ((550,), float(sigmoid(-0.5) / sigmoid(-1.0))),
        ((200, 500), 1.0 - 0.11),
        ((100, 500), 1.0),  # in the probation
        ((500, 650), 1.0 + 0.11 * float(sigmoid(51 / 99))),
    ],
    ids=["silent", "first row", "again in the window", "in the middle", "before", "probation", "soon after"],
)
def test_the_score_of_a_file_matches_a_manual_calculation(rows, expected):
    assert points(FILE, alarms(*rows), np.array([0.5]))[0] == pytest.approx(expected)


def test_a_perfect_detector_has_100_points_and_a_silent_one_none():
    assert evaluate([FILE], [alarms(500)])[0] == pytest.approx(100.0)
    assert evaluate([FILE], [np.zeros(1000)])[0] == pytest.approx(0.0)
