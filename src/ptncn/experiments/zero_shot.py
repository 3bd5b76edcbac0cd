"""Table III: trained networks predict new kinds of objects, with frozen weights."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ptncn.experiments.experiment import (
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
from ptncn.records import Record

ARROW = "-to-"
DIRECTIONS = (f"notmnist{ARROW}mnist", f"mnist{ARROW}notmnist")


def training(spec: RunSpec) -> RunSpec:
    """The training of table I on the first dataset."""
    return replace(spec, data=ends(spec.data)[0])


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
    return {"training": training(spec).values(), "tested_on": ends(spec.data)[1]}


def run(spec: RunSpec, context: RunContext) -> Result:
    trained, unseen = training(spec), replace(spec, data=ends(spec.data)[1])
    phased = PhasedRun(
        name=spec.name,
        config=values(spec),
        start=lambda: trained_learner(trained, context),
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
    title="Table III: objects never seen, weights frozen",
    question="How well does a network trained on digits predict letters, and the other way round, with frozen weights? "
    "The P-TNCN still corrects its states.",
    errors=lambda metric, column: ("test", metric),
    figures=(FILMS_AND_SURPRISE,),
)

EXPERIMENT = Experiment(
    name="zero-shot",
    about="table III: objects never seen before, with frozen weights",
    rows=dict.fromkeys(DIRECTIONS, TRANSFER_ROWS),
    variants=VARIANTS,
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
