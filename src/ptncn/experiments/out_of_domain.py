"""The appendix's figure: networks that have only ever seen two objects meet one, and three."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ptncn.experiments.base import Cells, Experiment, Findings, Job, collect, evaluate
from ptncn.experiments.plan import Plan
from ptncn.experiments.prediction import final_pass, notes
from ptncn.experiments.setting import VIDEO
from ptncn.experiments.tasks import Task, open_task
from ptncn.experiments.training import Training
from ptncn.experiments.workshop import Workshop
from ptncn.records import Record

MODELS = ("lstm-bptt", "ptncn", "copy")
OBJECTS = (1, 2, 3)
"""Two are what was learnt, for comparison."""


def training(job: Job) -> Training:
    return Training(job.model, job.data, job.seed, VIDEO[job.scale], job.configs)


def config(job: Job) -> dict[str, Any]:
    return {"training": training(job).config, "objects": list(OBJECTS)}


def run(job: Job, workshop: Workshop) -> Findings:
    wanted = training(job)

    def videos(objects: int) -> Task:
        size = wanted.setting
        return open_task(job.data, embedded=size.embedded, canvas=size.canvas, test=size.test, objects=objects)

    plan = Plan(
        name=f"out-of-domain/{job.model}/{job.data}/{job.seed}",
        config=config(job),
        start=lambda: wanted.make(workshop).learner,
        passes=tuple(
            replace(final_pass(wanted, f"objects/{count}", film=2), data=videos(count).test) for count in OBJECTS
        ),
        curve_metric="se",
    )
    outcome = evaluate(plan, workshop)
    metrics = {name: result["metrics"] for name, result in outcome.results.items()}
    found = collect(outcome, plan, metrics=metrics, shape=wanted.task.test.observation_shape)
    found.notes = notes(wanted)
    return found


def cells(record: Record) -> Cells:
    return {
        metric: {f"{record.data} {count}": record.metrics[f"objects/{count}"][metric] for count in OBJECTS}
        for metric in ("ce", "se")
    }


EXPERIMENT = Experiment(
    name="out-of-domain",
    about="appendix: one and three objects for networks trained on two",
    models={"mnist": MODELS, "notmnist": MODELS},
    seeds={scale: VIDEO[scale].seeds for scale in VIDEO},
    config=config,
    run=run,
    cells=cells,
    trainings=lambda job: [training(job)],
    test=("objects/1", "se"),
    paper={},
)
