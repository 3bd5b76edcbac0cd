"""A run of the user's own: train a learner on data, test it, and write a record like any other."""

from __future__ import annotations

from collections.abc import Callable

from ptncn.experiments.config import find_config
from ptncn.experiments.context import RunContext
from ptncn.experiments.experiment import Experiment
from ptncn.experiments.page import Page
from ptncn.experiments.prediction import cells
from ptncn.experiments.runner import Result, train_and_test
from ptncn.experiments.spec import RunSpec


def single_run(spec: RunSpec, then: Callable[[Result], None]) -> Experiment:
    """An experiment of one run; `then` is called before the record says that it has finished."""

    def run(_: RunSpec, context: RunContext) -> Result:
        result = train_and_test(spec, f"train/{spec.row}/{spec.data}/{spec.seed}", spec.values(), context)
        then(result)
        return result

    return Experiment(
        name="train",
        about="any learner on any data",
        rows={spec.data: (spec.row,)},
        config=find_config,
        seeds={"own": 1},
        values=lambda _: spec.values(),
        run=run,
        cells=cells,
        page=Page(title="", question="", metrics=(), metric_labels={}),
    )
