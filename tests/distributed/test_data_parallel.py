"""Networks that ranks share learn what one process learns from the whole batch."""

from __future__ import annotations

import json

import pytest
from data_parallel_ranks import CASES
from launch import ranks


@pytest.mark.parametrize(("count", "steps", "names"), [(2, 200, ["paper", "best"]), (3, 20, list(CASES))])
def test_ranks_learn_what_one_process_learns_by_every_rule_and_optimiser(count, steps, names):
    for code, printed, errors in ranks(count, "data_parallel_ranks.py", str(steps), "1", *names):
        assert code == 0, errors
        found = [json.loads(line) for line in printed.splitlines()]
        assert [row[:2] for row in found] == [[name, split] for name in names for split in ("rows", "units")]
        assert [row for row in found if not row[2] < 1e-9] == []
