"""Table II: digits, then letters, then clothes, one video at a time and each only once."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ptncn.experiments.base import Cells, Experiment, Findings, Job, collect, evaluate
from ptncn.experiments.plan import Pass, Plan
from ptncn.experiments.prediction import final_pass, notes
from ptncn.experiments.setting import VIDEO, Setting
from ptncn.experiments.training import Training
from ptncn.experiments.workshop import Workshop
from ptncn.experiments.zero_shot import MODELS
from ptncn.learners import make
from ptncn.metrics import TaskMatrix
from ptncn.records import Record

TASKS = "mnist+notmnist+fashion-mnist"

SCALES: dict[str, Setting] = {
    "smoke": replace(VIDEO["smoke"], batch_size=1, epochs=1, sequences=10, test=20, decay=1.0, seeds=2),
    "laptop": replace(
        VIDEO["laptop"],
        batch_size=1,
        sequences=200,  # 4,000 steps a task; an LSTM by BPTT makes one update a video
        test=100,  # looked at for three tasks, four times
        exact_units=16,  # a row of 32 units × 262 thousand weights: 34 MB
        decay=1.0,  # who does not know when a task ends cannot let the step size fall towards it
        seeds=3,
    ),
    "paper": replace(VIDEO["paper"], batch_size=1, epochs=1, exact_units=64, decay=1.0, seeds=5),
}
"""Batches of one, one epoch and no falling step size are what the experiment is about."""


def tasks(job: Job) -> list[Training]:
    """One a task; only the first one's learner is made."""
    names = job.data.split("+")
    return [Training(job.model, name, job.seed, SCALES[job.scale], job.configs) for name in names]


def config(job: Job) -> dict[str, Any]:
    first = tasks(job)[0]
    return {**first.config, "data": job.data, "source": [each.task.source for each in tasks(job)]}


def plan(job: Job) -> Plan:
    """Row 0 of the task matrix, then for each task: learn it, and look at all of them."""
    each = tasks(job)
    passes: list[Pass] = list(_look(each, 0))
    for learnt, task in enumerate(each, 1):
        passes.append(replace(task.epoch(0)[0], name=f"train/{task.data}"))
        passes += _look(each, learnt)
    first = each[0]
    return Plan(
        name=f"continual/{job.model}/{job.data}/{job.seed}",
        config=config(job),
        start=lambda: make(job.model, input_size=first.task.train.input_size, **first.learner_options),
        passes=tuple(passes),
        curve_metric="se",
    )


def _look(each: list[Training], learnt: int) -> list[Pass]:
    return [replace(final_pass(task, f"{learnt}/{task.data}"), metrics=("se", "ce")) for task in each]


def run(job: Job, workshop: Workshop) -> Findings:
    course = plan(job)
    outcome = evaluate(course, workshop)
    names = job.data.split("+")
    matrix = TaskMatrix(names)
    for learnt in range(len(names) + 1):
        for name in names:
            matrix.record(learnt, name, outcome.metric(f"{learnt}/{name}", "se"))
    metrics = {**matrix.compute(), "matrix": matrix.tree(), "prequential_se": outcome.curve["prequential"]}
    found = collect(outcome, course, metrics=metrics)
    found.notes = list(dict.fromkeys(line for each in tasks(job) for line in notes(each)))
    return found


def cells(record: Record) -> Cells:
    matrix = record.metrics["matrix"]
    names = matrix["tasks"]
    table = {
        f"{name} after {names[learnt - 1]}": matrix["losses"][learnt][column]
        for learnt in range(1, len(names) + 1)
        for column, name in enumerate(names[:learnt])
    }
    summary = ("average", "forgetting", "backward_transfer", "forward_transfer", "prequential_se")
    return {"se": table, **{name: {"": record.metrics[name]} for name in summary}}


def _row(t11: float, t12: float, t22: float, t13: float, t23: float, t33: float) -> dict[str, float]:
    names = TASKS.split("+")
    values = {(0, 0): t11, (0, 1): t12, (1, 1): t22, (0, 2): t13, (1, 2): t23, (2, 2): t33}
    return {f"{names[task]} after {names[after]}": value for (task, after), value in values.items()}


EXPERIMENT = Experiment(
    name="continual",
    about="table II: one pass, one video at a time, MNIST → NotMNIST → Fashion MNIST",
    models={TASKS: MODELS},
    seeds={scale: setting.seeds for scale, setting in SCALES.items()},
    config=config,
    run=run,
    cells=cells,
    test=("3/mnist", "se"),
    paper={
        "se": {
            "ptncn": _row(102.67, 102.79, 215.65, 100.31, 223.28, 93.36),
            "lstm-bptt": _row(139.89, 146.97, 246.59, 147.85, 260.62, 129.91),
            "lstm-sab": _row(139.27, 143.59, 247.81, 143.99, 256.27, 129.88),
            "lstm-rtrl": _row(128.89, 130.12, 233.60, 131.01, 249.63, 112.99),
        }
    },
)
