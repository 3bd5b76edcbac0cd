"""Table II: learn digits, then letters, then clothes, one video at a time, each only once."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ptncn.experiments.config import VIDEO, RunConfig
from ptncn.experiments.experiment import (
    PREQUENTIAL_CURVES,
    SE,
    TASKS,
    TRANSFER_ROWS,
    VARIANTS,
    Cells,
    ErrorKey,
    Experiment,
    FigureSpec,
    PageSpec,
)
from ptncn.experiments.phases import Phase, PhasedRun, epoch_phases, final_phase
from ptncn.experiments.run import RunContext, RunSpec
from ptncn.experiments.runner import Result, execute_once
from ptncn.metrics import TaskMatrix
from ptncn.records import Record

SCALES: dict[str, RunConfig] = {
    "smoke": replace(VIDEO["smoke"], batch_size=1, epochs=1, sequences=10, test=20, decay=1.0, seeds=2),
    "laptop": replace(
        VIDEO["laptop"],
        batch_size=1,
        sequences=200,  # 4,000 steps a task; an LSTM by BPTT makes one update a video
        test=100,  # three tasks are tested four times each
        exact_units=16,  # a row of 32 units × 262 thousand weights: 34 MB
        decay=1.0,  # a learner that does not know when a task ends cannot decay towards it
        seeds=3,
    ),
    "paper": replace(VIDEO["paper"], batch_size=1, epochs=1, exact_units=64, decay=1.0, seeds=3),
}
"""One epoch, batches of one and a constant step size define the experiment."""


def tasks(spec: RunSpec) -> list[RunSpec]:
    """One spec per task; only the first makes a learner."""
    return [replace(spec, data=name) for name in spec.data.split("+")]


def values(spec: RunSpec) -> dict[str, Any]:
    each = tasks(spec)
    return {**each[0].values(), "data": spec.data, "source": [task.splits.source for task in each]}


def phased_run(spec: RunSpec) -> PhasedRun:
    """Test on all tasks before learning (row 0 of the task matrix) and again after each task."""
    each = tasks(spec)
    phases: list[Phase] = list(_test_all(each, 0))
    for learnt, task in enumerate(each, 1):
        phases.append(replace(epoch_phases(task, 0)[0], name=f"train/{task.data}"))
        phases += _test_all(each, learnt)
    return PhasedRun(
        name=spec.name,
        config=values(spec),
        start=each[0].make_learner,
        phases=tuple(phases),
        curve_metric="se",
    )


def _test_all(each: list[RunSpec], learnt: int) -> list[Phase]:
    return [replace(final_phase(task, f"{learnt}/{task.data}"), metrics=("se", "ce")) for task in each]


def run(spec: RunSpec, context: RunContext) -> Result:
    result = execute_once(phased_run(spec), context)
    names = spec.data.split("+")
    matrix = TaskMatrix(names)
    for learnt in range(len(names) + 1):
        for name in names:
            matrix.record(learnt, name, result.metric(f"{learnt}/{name}", "se"))
    result.metrics = {**matrix.compute(), "matrix": matrix.tree(), "prequential_se": result.curve["prequential"]}
    result.describe(*tasks(spec))
    return result


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


def _errors(metric: str, column: str) -> ErrorKey:
    task, after, last = column.partition(" after ")
    order = TASKS.split("+")
    return (f"{order.index(last) + 1}/{task}", metric) if after and last in order else None


PAGE = PageSpec(
    title="Table II: three tasks, one video at a time",
    question="How much of the first task remains after the second and third have been learnt? Digits, then letters, "
    "then clothes. Each video is seen once, one at a time, and the learner does not know when the task changes.",
    metrics=(
        SE + " Measured on the test set of each task after each task.",
        "**average**: mean final SE over all tasks. **forgetting**: how much the SE on a task has risen since it was "
        "learnt. **backward transfer**: the same with the opposite sign. **forward transfer**: how much earlier tasks "
        "lowered the SE on a task that had not been learnt yet. **prequential SE**: mean over all frames, each tested "
        "before it is learnt.",
    ),
    metric_labels={
        "se": "SE",
        "backward_transfer": "backward transfer",
        "forward_transfer": "forward transfer",
        "prequential_se": "prequential SE",
    },
    unstated=(
        "The step size is constant, because a learner that does not know when a task ends cannot decay its step size "
        "towards that end.",
    ),
    errors=_errors,
    paper_config=lambda record: SCALES["paper"].values(),
    figures=(PREQUENTIAL_CURVES, FigureSpec("matrices")),
)

EXPERIMENT = Experiment(
    name="continual",
    about="table II: MNIST → NotMNIST → Fashion MNIST, one video at a time",
    rows={TASKS: TRANSFER_ROWS},
    variants=VARIANTS,
    config=lambda data, scale: SCALES[scale],
    seeds={scale: config.seeds for scale, config in SCALES.items()},
    values=values,
    run=run,
    cells=cells,
    compared_by=("3/mnist", "se"),
    page=PAGE,
    paper={
        "se": {
            "ptncn": _row(102.67, 102.79, 215.65, 100.31, 223.28, 93.36),
            "lstm-bptt": _row(139.89, 146.97, 246.59, 147.85, 260.62, 129.91),
            "lstm-sab": _row(139.27, 143.59, 247.81, 143.99, 256.27, 129.88),
            "lstm-rtrl": _row(128.89, 130.12, 233.60, 131.01, 249.63, 112.99),
        }
    },
)
