"""Table III: trained networks predict new kinds of objects, with frozen weights.

The row `ptncn-best-uncorrected` is the network of the row `ptncn-best`, tested without correcting its states. It shows
how much of the result is due to the correction.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ptncn.experiments.experiment import (
    BEST,
    FILMS_AND_SURPRISE,
    TRANSFER_ROWS,
    VARIANTS,
    Cells,
    Experiment,
    PageSpec,
    paper_cells,
)
from ptncn.experiments.phases import PhasedRun, final_phase
from ptncn.experiments.run import RunContext, RunSpec
from ptncn.experiments.runner import Result, execute_once, trained_learner
from ptncn.learner import Learner
from ptncn.learners import make
from ptncn.records import Record

ARROW = "-to-"
DIRECTIONS = (f"notmnist{ARROW}mnist", f"mnist{ARROW}notmnist")


UNCORRECTED = "-uncorrected"
"""Suffix of a row: its network is tested without correcting its states."""


def training(spec: RunSpec) -> RunSpec:
    """The training of table I on the first dataset."""
    return replace(spec, row=spec.row.removesuffix(UNCORRECTED), data=ends(spec.data)[0])


def without_correction(network: Learner) -> Learner:
    """A copy of a P-TNCN with the same weights that does not correct its states."""
    copy = make(network.registry_name, **{**network.options(), "beta": 0.0, "gamma": 0.0, "lam": 0.0})
    copy.restore(network.snapshot())
    return copy


def ends(data: str) -> tuple[str, str]:
    """
    >>> ends("mnist-to-notmnist")
    ('mnist', 'notmnist')
    """
    first, arrow, second = data.partition(ARROW)
    if not arrow:
        raise ValueError(f"data: expected two datasets, such as mnist{ARROW}notmnist, got {data!r}")
    return first, second


def values(spec: RunSpec) -> dict[str, Any]:
    tested: dict[str, Any] = {"training": training(spec).values(), "tested_on": ends(spec.data)[1]}
    return {**tested, "corrected": False} if spec.row.endswith(UNCORRECTED) else tested


def run(spec: RunSpec, context: RunContext) -> Result:
    trained, unseen = training(spec), replace(spec, data=ends(spec.data)[1])

    def start() -> Learner:
        learner = trained_learner(trained, context)
        return without_correction(learner) if spec.row.endswith(UNCORRECTED) else learner

    phased = PhasedRun(
        name=spec.name,
        config=values(spec),
        start=start,
        phases=(final_phase(unseen, film=2),),
        curve_metric="se",
    )
    result = execute_once(phased, context)
    result.metrics = result.phases["test"]["metrics"]
    result.observation_shape = unseen.splits.test.observation_shape
    result.describe(trained, unseen)
    return result


def cells(record: Record) -> Cells:
    return {metric: {record.data: value} for metric, value in record.metrics.items()}


PAGE = PageSpec(
    title="Table III: unseen objects, frozen weights",
    question="How well does a network trained on digits predict letters, and vice versa, with frozen weights? "
    "The P-TNCN still corrects its states.",
    errors=lambda metric, column: ("test", metric),
    figures=(FILMS_AND_SURPRISE,),
)

EXPERIMENT = Experiment(
    name="zero-shot",
    about="table III: unseen objects, with frozen weights",
    rows=dict.fromkeys(DIRECTIONS, (*TRANSFER_ROWS, f"ptncn-best{UNCORRECTED}")),
    variants={
        **VARIANTS,
        f"ptncn-best{UNCORRECTED}": replace(BEST, label="P-TNCN (best), states not corrected", compared_with=""),
    },
    values=values,
    run=run,
    cells=cells,
    trains=lambda spec: [training(spec)],
    compared_by=("test", "se"),
    page=PAGE,
    paper=paper_cells(
        DIRECTIONS,
        ("ce", "se"),
        ("lstm-bptt", 492.21, 104.76, 1297.26, 325.56),
        ("lstm-sab", 499.21, 105.87, 1299.28, 329.59),
        ("lstm-rtrl", 447.28, 99.89, 1211.01, 293.56),
        ("ptncn", 377.30, 89.39, 1131.7, 257.07),
    ),
)
