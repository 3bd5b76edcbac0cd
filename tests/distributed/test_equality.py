"""Ranks learn what one process learns; benchmarks/scale/equality.py compares every rule and optimiser."""

from __future__ import annotations

import json

import pytest
from equality import cases
from launch import ROOT, ranks

PROGRAM = ROOT / "benchmarks" / "scale" / "equality.py"
CASES = ["preset=paper", "preset=authors", "preset=best", "readout=rls", "credit=trace", "max_norm=0.2"]
CASES += ["large enough to postpone", "adam+transpose+small", "adafactor+temporal+coupled", "corrections=3"]


@pytest.mark.parametrize(("count", "chosen"), [(2, CASES), (3, CASES[2:4])])
def test_ranks_learn_what_one_process_learns(count, chosen):
    for code, printed, errors in ranks(count, PROGRAM, "--steps", "12", "--seeds", "2", "--cases", *chosen):
        assert code == 0, errors
        differences = {(name, kind): difference for name, kind, difference, _ in map(json.loads, printed.splitlines())}
        assert differences.keys() == {
            (name, kind)
            for name in chosen
            for kind in ("rows", "units", "layers")
            if (name, kind) != ("readout=rls", "layers")
        }
        bitwise = {case: difference for case, difference in differences.items() if case[0] != "readout=rls"}
        assert {case: difference for case, difference in bitwise.items() if difference != 0} == {}  # bit for bit
        assert {case: difference for case, difference in differences.items() if not difference < 1e-9} == {}


def test_every_choice_of_an_option_is_among_the_cases():
    names = cases().keys()
    assert {"optimizer=adafactor", "error_rule=fixed", "sparsity_sign=printed", "output=categorical"} <= names
    assert set(CASES) <= names
