"""The appendix's one-shot table: digits were learnt, letters are met once with learning, then clothes without."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

from torch import nn

from ptncn.experiments.base import Cells, Experiment, Findings, Job, collect, evaluate, paper_cells
from ptncn.experiments.plan import Plan
from ptncn.experiments.prediction import final_pass, notes
from ptncn.experiments.setting import VIDEO
from ptncn.experiments.training import Training
from ptncn.experiments.workshop import Workshop
from ptncn.experiments.zero_shot import MODELS
from ptncn.learner import Learner
from ptncn.learners import make
from ptncn.records import Record

STEP_SIZE = 0.01
"""Of plain SGD during the one pass with learning: the paper's."""
TASKS = "mnist+notmnist+fashion-mnist"


def training(job: Job) -> Training:
    return Training(job.model, tasks(job.data)[0], job.seed, VIDEO[job.scale], job.configs)


def tasks(data: str) -> list[str]:
    names = data.split("+")
    if len(names) != 3:
        raise ValueError(f"{data!r}: three datasets, such as {TASKS}, would be right")
    return names


def sgd_options(model: str) -> dict[str, Any]:
    """Plain SGD; updates are brought to norm 1, or not above it, as the paper has it in training."""
    if model == "ptncn":
        return {"optimizer": "sgd", "lr": STEP_SIZE, "rescale": "unit", "reduction": "sum", "schedule": None}
    return {"optimizer": "sgd", "lr": STEP_SIZE, "clip": 1.0}


def with_sgd(learner: Learner) -> Learner:
    """The same weights under SGD, every moment and schedule forgotten."""
    fresh = make(learner.kind, **{**learner.options(), **sgd_options(learner.kind)})
    cast(nn.Module, fresh).load_state_dict(cast(nn.Module, learner).state_dict())
    return fresh


def config(job: Job) -> dict[str, Any]:
    return {"training": training(job).config, "tasks": tasks(job.data), "one_shot": sgd_options(job.model)}


def run(job: Job, workshop: Workshop) -> Findings:
    wanted = training(job)
    _, second, third = tasks(job.data)
    one, zero = (Training(job.model, name, job.seed, wanted.setting) for name in (second, third))
    plan = Plan(
        name=f"one-shot/{job.model}/{job.data}/{job.seed}",
        config=config(job),
        start=lambda: with_sgd(wanted.make(workshop).learner),
        passes=(
            replace(final_pass(one, "one-shot", film=2), learn=True),
            final_pass(zero, "zero-shot", film=2),
        ),
        curve_metric="se",
    )
    outcome = evaluate(plan, workshop)
    found = collect(
        outcome,
        plan,
        metrics={name: outcome.results[name]["metrics"] for name in ("one-shot", "zero-shot")},
        shape=one.task.test.observation_shape,
    )
    found.notes = [*notes(wanted), *one.task.notes, *zero.task.notes]
    return found


def cells(record: Record) -> Cells:
    _, second, third = tasks(record.data)
    columns = {"one-shot": second, "zero-shot": third}
    return {
        metric: {f"{shot} {column}": record.metrics[shot][metric] for shot, column in columns.items()}
        for metric in ("ce", "se")
    }


EXPERIMENT = Experiment(
    name="one-shot",
    about="appendix: test-then-train on letters with SGD at 0.01, then clothes with frozen weights",
    models={TASKS: MODELS},
    seeds={scale: VIDEO[scale].seeds for scale in VIDEO},
    config=config,
    run=run,
    cells=cells,
    trainings=lambda job: [training(job)],
    test=("zero-shot", "se"),
    paper=paper_cells(
        ("one-shot notmnist", "zero-shot fashion-mnist"),
        ("ce", "se"),
        ("lstm-bptt", 882.71, 269.65, 689.96, 101.892),
        ("lstm-sab", 883.61, 272.58, 691.28, 103.778),
        ("lstm-rtrl", 863.12, 239.62, 640.09, 97.018),
        ("ptncn", 842.13, 215.01, 603.34, 82.841),
    ),
)
