"""The figure of the appendix: networks trained on two objects predict videos of one and of three."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ptncn.experiments.experiment import FILMS, NETWORK, VARIANTS, Cells, Experiment, PageSpec
from ptncn.experiments.phases import PhasedRun, final_phase
from ptncn.experiments.run import RunContext, RunSpec
from ptncn.experiments.runner import Result, execute_once, trained_learner
from ptncn.records import Record

ROWS = ("lstm-bptt", "ptncn", "ptncn-best", "copy")
OBJECTS = (1, 2, 3)
"""The networks were trained on two."""


def values(spec: RunSpec) -> dict[str, Any]:
    return {"training": spec.values(), "objects": list(OBJECTS)}


def run(spec: RunSpec, context: RunContext) -> Result:
    tests = {count: replace(spec.splits, objects=count).test for count in OBJECTS}
    phased = PhasedRun(
        name=spec.name,
        config=values(spec),
        start=lambda: trained_learner(spec, context),
        phases=tuple(
            replace(final_phase(spec, f"objects/{count}", film=2), data=videos) for count, videos in tests.items()
        ),
        curve_metric="se",
    )
    result = execute_once(phased, context)
    result.metrics = {name: phase["metrics"] for name, phase in result.phases.items()}
    result.observation_shape = spec.splits.test.observation_shape
    result.describe(spec)
    return result


def cells(record: Record) -> Cells:
    return {
        metric: {f"{record.data} {count}": record.metrics[f"objects/{count}"][metric] for count in OBJECTS}
        for metric in ("ce", "se")
    }


PAGE = PageSpec(
    title="Appendix: one and three objects after training on two",
    question="Networks trained on two objects predict one and three, with frozen weights. The paper shows frames and "
    "gives no numbers; two objects are included for comparison.",
    errors=lambda metric, column: (f"objects/{column.rpartition(' ')[2]}", metric),
    choices=(*NETWORK, 12),
    figures=(replace(FILMS, options={**FILMS.options, "skip": ("objects/2",)}),),  # two objects are in table I
)

EXPERIMENT = Experiment(
    name="out-of-domain",
    about="appendix: one and three objects for networks trained on two",
    rows={"mnist": ROWS, "notmnist": ROWS},
    variants=VARIANTS,
    values=values,
    run=run,
    cells=cells,
    trains=lambda spec: [spec],
    compared_by=("objects/1", "se"),
    page=PAGE,
)
