"""A run of one's own: train a learner on data, test it, and write a record like any other."""

from __future__ import annotations

from collections.abc import Callable

from ptncn.experiments.base import Experiment, Findings, Job
from ptncn.experiments.prediction import cells, train_and_test
from ptncn.experiments.training import Training
from ptncn.experiments.workshop import Workshop


def own_experiment(wanted: Training, then: Callable[[Findings], None]) -> Experiment:
    """An experiment of one run; `then` is called before the record says that it is finished."""

    def run(job: Job, workshop: Workshop) -> Findings:
        found = train_and_test(wanted, f"train/{job.model}/{job.data}/{job.seed}", wanted.config, workshop)
        then(found)
        return found

    return Experiment(
        name="train",
        about="one's own combination of learner and data",
        models={wanted.data: (wanted.model,)},
        seeds={"own": 1},
        config=lambda job: wanted.config,
        run=run,
        cells=cells,
        paper={},
    )
