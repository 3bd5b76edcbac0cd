"""Layers on several ranks learn what they learn in one process, to the bit."""

from __future__ import annotations

import json

import pytest
from launch import ranks


@pytest.mark.parametrize("count", [2, 3])
def test_layers_on_ranks_learn_the_same_bits(count):
    for code, printed, errors in ranks(count, "layer_parallel_ranks.py", "20", "2"):
        assert code == 0, errors
        found = dict(json.loads(line) for line in printed.splitlines())
        assert len(found) == 9
        assert [name for name, same in found.items() if not same] == []
