"""Table III: networks meet objects they have never seen, and may not change a weight."""

from __future__ import annotations

from typing import Any

from ptncn.experiments.base import Cells, Experiment, Findings, Job, collect, evaluate, paper_cells
from ptncn.experiments.plan import Plan
from ptncn.experiments.prediction import final_pass, notes
from ptncn.experiments.setting import VIDEO
from ptncn.experiments.training import Training
from ptncn.experiments.workshop import Workshop
from ptncn.records import Record

MODELS = ("lstm-bptt", "lstm-sab", "lstm-rtrl", "ptncn")
ARROW = "-to-"
WAYS = (f"notmnist{ARROW}mnist", f"mnist{ARROW}notmnist")


def training(job: Job) -> Training:
    """The network of table I that was trained on the first dataset."""
    return Training(job.model, ends(job.data)[0], job.seed, VIDEO[job.scale], job.configs)


def ends(data: str) -> tuple[str, str]:
    """
    >>> ends("mnist-to-notmnist")
    ('mnist', 'notmnist')
    """
    first, arrow, second = data.partition(ARROW)
    if not arrow:
        raise ValueError(f"{data!r} names one dataset; two, such as mnist{ARROW}notmnist, would be right")
    return first, second


def config(job: Job) -> dict[str, Any]:
    return {"training": training(job).config, "tested_on": ends(job.data)[1]}


def run(job: Job, workshop: Workshop) -> Findings:
    wanted = training(job)
    unseen = Training(job.model, ends(job.data)[1], job.seed, wanted.setting)
    plan = Plan(
        name=f"zero-shot/{job.model}/{job.data}/{job.seed}",
        config=config(job),
        start=lambda: wanted.make(workshop).learner,
        passes=(final_pass(unseen, film=2),),
        curve_metric="se",
    )
    outcome = evaluate(plan, workshop)
    shape = unseen.task.test.observation_shape
    found = collect(outcome, plan, metrics=outcome.results["test"]["metrics"], shape=shape)
    found.notes = [*notes(wanted), *unseen.task.notes]
    return found


def cells(record: Record) -> Cells:
    return {metric: {record.data: value} for metric, value in record.metrics.items()}


EXPERIMENT = Experiment(
    name="zero-shot",
    about="table III: trained on digits, tested on letters with frozen weights, and the other way round",
    models=dict.fromkeys(WAYS, MODELS),
    seeds={scale: VIDEO[scale].seeds for scale in VIDEO},
    config=config,
    run=run,
    cells=cells,
    trainings=lambda job: [training(job)],
    test=("test", "se"),
    paper=paper_cells(
        WAYS,
        ("ce", "se"),
        ("lstm-bptt", 492.21, 104.76, 1297.26, 325.56),
        ("lstm-sab", 499.21, 105.87, 1299.28, 329.59),
        ("lstm-rtrl", 447.28, 99.89, 1211.01, 293.56),
        ("ptncn", 377.30, 89.39, 1131.7, 257.07),
    ),
)
