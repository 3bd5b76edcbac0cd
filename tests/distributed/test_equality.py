"""Ranks learn what one process learns; benchmarks/scale/equality.py compares every rule and optimiser."""

from __future__ import annotations

import json

import pytest
from equality import cases
from launch import ROOT, ranks

PROGRAM = ROOT / "benchmarks" / "scale" / "equality.py"
SOME = ["preset=paper", "preset=authors", "preset=best", "readout=rls", "credit=trace", "max_norm=0.2"]
SOME += ["large enough to postpone", "adam+transpose+small", "adafactor+temporal+coupled", "corrections=3"]


@pytest.mark.parametrize(("count", "some"), [(2, SOME), (3, SOME[2:4])])
def test_ranks_learn_what_one_process_learns(count, some):
    for code, printed, errors in ranks(count, PROGRAM, "--steps", "12", "--seeds", "2", "--cases", *some):
        assert code == 0, errors
        found = {(name, kind): far for name, kind, far, _ in map(json.loads, printed.splitlines())}
        assert found.keys() == {
            (name, kind)
            for name in some
            for kind in ("rows", "units", "layers")
            if (name, kind) != ("readout=rls", "layers")
        }
        by_kernel = {place: far for place, far in found.items() if place[0] != "readout=rls"}
        assert {place: far for place, far in by_kernel.items() if far != 0} == {}  # bit for bit
        assert {place: far for place, far in found.items() if not far < 1e-9} == {}


def test_every_choice_of_an_option_is_among_the_cases():
    names = cases().keys()
    assert {"optimizer=adafactor", "error_rule=fixed", "sparsity_sign=printed", "output=categorical"} <= names
    assert set(SOME) <= names
