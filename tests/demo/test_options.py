"""Each learner of the demo has the best options of a recorded search."""

import json
from pathlib import Path

import pytest

from ptncn.demo.simulate import LSTM, LSTM_OPTIONS, PTNCN, PTNCN_OPTIONS
from ptncn.network.config import make_config

TRIED = json.loads((Path(__file__).resolve().parents[2] / "results/demo/options.json").read_text())
NOISE = 0.01
"""Differences of less than this share of the error are treated as noise."""
SLOWER = 1.5
"""How many times as long a frame may take; the demo should finish within minutes."""


def complete(name, options):
    """All options of a P-TNCN, including those of its preset."""
    options = dict(options)
    return make_config(options.pop("preset"), options, "bernoulli") if name == PTNCN else options


@pytest.mark.parametrize(("name", "options"), [(PTNCN, PTNCN_OPTIONS), (LSTM, LSTM_OPTIONS)])
def test_no_tried_option_is_clearly_better_in_the_same_time(name, options):
    tried = [each for each in TRIED["tried"] if each["learner"] == name]
    (chosen,) = (each for each in tried if complete(name, each["options"]) == complete(name, options))
    others = [each for each in tried if each["milliseconds"] <= SLOWER * chosen["milliseconds"]]
    assert len(others) >= 6
    assert chosen["error"] <= (1 + NOISE) * min(each["error"] for each in others)
