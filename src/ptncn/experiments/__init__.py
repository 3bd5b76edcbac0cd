"""Every table and figure of the paper, one module each.

A module describes its `EXPERIMENT`: whom it compares on which data, how a run is made, and which cells of the
table its record fills. The runs of all of them go through one training loop (`runner`).
"""

from __future__ import annotations

import difflib
from importlib import import_module
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from ptncn.experiments.base import Experiment

NAMES = ("prediction", "continual", "zero-shot", "one-shot", "out-of-domain", "discrete", "complexity")


def find_experiment(name: str) -> Experiment:
    """
    >>> find_experiment("zero-shot").about
    'table III: trained on digits, tested on letters with frozen weights, and the other way round'
    """
    if name not in NAMES:
        close = difflib.get_close_matches(name, NAMES, n=1)
        hint = f"did you mean {close[0]!r}? " if close else ""
        raise ValueError(f"unknown experiment {name!r}; {hint}There are: {', '.join(NAMES)}; or all")
    module = import_module(f"ptncn.experiments.{name.replace('-', '_')}")
    return cast("Experiment", module.EXPERIMENT)
