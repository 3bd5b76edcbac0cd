"""Messages between ranks arrive in order, whatever their size; a lost rank gives a one-line error."""

from __future__ import annotations

import json
from pathlib import Path

from launch import ranks


def test_messages_arrive_and_a_lost_rank_gives_a_one_line_error():
    (code, first, errors), (other_code, second, other_errors) = ranks(2, Path(__file__).with_name("mesh_ranks.py"))
    assert (code, other_code) == (0, 0), errors + other_errors
    *results, lost = map(json.loads, first.splitlines())
    assert results == list(map(json.loads, second.splitlines()))
    assert results == [[[1.0, 2.0], [1.0, 2.0]], [0.1 + 0.2], [True, False]]
    assert lost[1]
    assert lost[0].startswith("rank 0 lost another rank: ")
    assert "\n" not in lost[0]
