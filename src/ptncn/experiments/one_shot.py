"""The one-shot table of the appendix: after digits, learn letters in one pass, then predict clothes, frozen."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from torch import nn

from ptncn.experiments.experiment import (
    FILMS,
    PREQUENTIAL_CURVES,
    TASKS,
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
from ptncn.learners.registry import option_names
from ptncn.records import Record

STEP_SIZE = 0.01
"""The paper's step size of plain SGD for the letters."""


def training(spec: RunSpec) -> RunSpec:
    """The training of table I on the first dataset."""
    return replace(spec, data=tasks(spec.data)[0])


def tasks(data: str) -> list[str]:
    names = data.split("+")
    if len(names) != 3:
        raise ValueError(f"data: expected three datasets, such as {TASKS}, got {data!r}")
    return names


def sgd_options(learner: str) -> dict[str, Any]:
    """Plain SGD. As in the paper's training, updates are rescaled to norm 1, or gradients are clipped at 1."""
    options = {"optimizer": "sgd", "lr": STEP_SIZE}
    if "clip" in option_names(learner):
        return {**options, "clip": 1.0}
    return {**options, "rescale": "unit", "reduction": "sum", "schedule": None}


def with_sgd(learner: Learner) -> Learner:
    """The same weights under SGD, without moments and schedules."""
    fresh = make(learner.registry_name, **{**learner.options(), **sgd_options(learner.registry_name)})
    if not (isinstance(fresh, nn.Module) and isinstance(learner, nn.Module)):
        raise TypeError(f"{learner.registry_name}: expected a PyTorch module, got {type(learner).__name__}")
    fresh.load_state_dict(learner.state_dict())
    return fresh


def values(spec: RunSpec) -> dict[str, Any]:
    return {
        "training": training(spec).values(),
        "tasks": tasks(spec.data),
        "one_shot": sgd_options(spec.learner),
    }


def run(spec: RunSpec, context: RunContext) -> Result:
    trained = training(spec)
    _, second, third = tasks(spec.data)
    one, zero = replace(spec, data=second), replace(spec, data=third)
    phased = PhasedRun(
        name=spec.name,
        config=values(spec),
        start=lambda: with_sgd(trained_learner(trained, context)),
        phases=(
            replace(final_phase(one, "one-shot", film=2), learn=True),
            final_phase(zero, "zero-shot", film=2),
        ),
        curve_metric="se",
    )
    result = execute_once(phased, context)
    result.metrics = {name: result.phases[name]["metrics"] for name in ("one-shot", "zero-shot")}
    result.observation_shape = one.splits.test.observation_shape
    result.describe(trained, one, zero)
    return result


def cells(record: Record) -> Cells:
    _, second, third = tasks(record.data)
    columns = {"one-shot": second, "zero-shot": third}
    return {
        metric: {f"{shot} {column}": record.metrics[shot][metric] for shot, column in columns.items()}
        for metric in ("ce", "se")
    }


PAGE = PageSpec(
    title="Appendix: letters seen once, then clothes with frozen weights",
    question="A network trained on digits sees each letter video once, and is tested on it before it learns from it by "
    "plain SGD at 0.01. Then it sees clothes with frozen weights. How well does it predict both?",
    unstated=(
        "The paper does not say whether updates are rescaled during the pass over letters. Here those of the P-TNCN "
        "are rescaled to norm 1, and the gradients of the other learners are clipped at 1, as in training.",
    ),
    errors=lambda metric, column: (column.split(" ")[0], metric),
    figures=(PREQUENTIAL_CURVES, FILMS),
)

EXPERIMENT = Experiment(
    name="one-shot",
    about="appendix: letters seen once, then clothes with frozen weights",
    rows={TASKS: TRANSFER_ROWS},
    variants=VARIANTS,
    values=values,
    run=run,
    cells=cells,
    trains=lambda spec: [training(spec)],
    compared_by=("zero-shot", "se"),
    page=PAGE,
    paper=paper_cells(
        ("one-shot notmnist", "zero-shot fashion-mnist"),
        ("ce", "se"),
        ("lstm-bptt", 882.71, 269.65, 689.96, 101.892),
        ("lstm-sab", 883.61, 272.58, 691.28, 103.778),
        ("lstm-rtrl", 863.12, 239.62, 640.09, 97.018),
        ("ptncn", 842.13, 215.01, 603.34, 82.841),
    ),
)
