"""Table I: predict the next frame of bouncing videos, and the next character of Penn Treebank."""

from __future__ import annotations

from typing import Any

from ptncn.experiments.base import Cells, Experiment, Findings, Job, collect, evaluate, paper_cells
from ptncn.experiments.plan import Pass, Plan
from ptncn.experiments.setting import VIDEO, find_setting
from ptncn.experiments.training import Training
from ptncn.experiments.workshop import Workshop
from ptncn.learners.rtrl import RTRL
from ptncn.records import Record
from ptncn.system import in_words

VIDEO_MODELS = (
    "lstm-bptt",
    "lstm-sab",
    "gru-bptt",
    "rnn-bptt",
    "rnn-sab",
    "esn-ridge",
    "lstm-uoro",
    "lstm-rtrl",
    "ptncn",
    "copy",  # not in the paper: what a learner must beat to have learnt anything
)
TEXT_MODELS = (
    "lstm-tbptt",
    "lstm-bptt",
    "lstm-sab",
    "gru-bptt",
    "rnn-bptt",
    "rnn-sab",
    "rhn-kf-rtrl",
    "esn-ridge",
    "rhn-uoro",
    "lstm-rtrl",
    "ptncn",
)


def training(job: Job) -> Training:
    return Training(job.model, job.data, job.seed, find_setting(job.data, job.scale), job.configs)


def final_pass(of: Training, name: str = "test", *, film: int = 0) -> Pass:
    """The test set of what a network was trained on; for text, errors come in the order of its batches."""
    return Pass(
        name=name,
        data=of.task.test,
        metrics=of.task.metrics,
        batch_size=max(of.setting.batch_size, 20),
        limit=of.setting.test,
        keep_errors=True,
        film=film,
    )


def run(job: Job, workshop: Workshop) -> Findings:
    return train_and_test(training(job), f"prediction/{job.model}/{job.data}/{job.seed}", config(job), workshop)


def train_and_test(wanted: Training, name: str, config: dict[str, Any], workshop: Workshop) -> Findings:
    """The findings of a network from its first weights to its test."""
    learnt = wanted.make(workshop)
    plan = Plan(
        name=name,
        config=config,
        start=lambda: learnt.learner,
        passes=(final_pass(wanted, film=2 if wanted.task.kind == "video" else 0),),
        curve_metric=wanted.task.metrics[0],
    )
    outcome = evaluate(plan, workshop)
    found = collect(outcome, plan, metrics={}, shape=wanted.task.test.observation_shape)
    epochs = range(wanted.setting.epochs)
    valid = [learnt.results[f"valid/{epoch}"]["metrics"] for epoch in epochs]
    found.metrics = {
        "test": outcome.results["test"]["metrics"],
        "valid": min(valid, key=lambda metrics: metrics[wanted.task.metrics[0]]),
        "valid_by_epoch": valid,
        "train_by_epoch": [learnt.results[f"train/{epoch}"]["metrics"] for epoch in epochs],
    }
    found.datasets = {**wanted.plan().datasets, **plan.datasets}
    found.curve = learnt.curve
    found.seconds += learnt.seconds
    found.peak_memory = max(found.peak_memory or 0, learnt.peak_memory)
    found.notes = notes(wanted)
    return found


def notes(of: Training) -> list[str]:
    """What a reader of the table should know of a training."""
    lines = list(of.task.notes)
    if of.model.endswith("-rtrl") and "kf" not in of.model:
        inputs = of.task.train.input_size
        needed = RTRL.required_bytes(of.model.split("-")[0], inputs, 1_000)
        lines.append(
            f"exact RTRL has {of.setting.exact_units} units here: the paper's 1,000 on {inputs:,} inputs would need "
            f"{in_words(needed)} for each row of a batch"
        )
    return lines


def config(job: Job) -> dict[str, Any]:
    return training(job).config


def cells(record: Record) -> Cells:
    if "bpc" in record.metrics["test"]:
        return {f"{split}_bpc": {record.data: record.metrics[split]["bpc"]} for split in ("valid", "test")}
    return {f"test_{metric}": {record.data: value} for metric, value in record.metrics["test"].items()}


EXPERIMENT = Experiment(
    name="prediction",
    about="table I: bouncing MNIST and NotMNIST, Penn Treebank",
    models={"mnist": VIDEO_MODELS, "notmnist": VIDEO_MODELS, "ptb": TEXT_MODELS},
    seeds={scale: VIDEO[scale].seeds for scale in VIDEO},
    config=config,
    run=run,
    cells=cells,
    trainings=lambda job: [training(job)],
    test=("test", "se"),
    paper={
        **paper_cells(
            ("mnist", "notmnist"),
            ("test_ce", "test_se"),
            ("lstm-bptt", 375.42, 85.27, 787.51, 256.66),
            ("lstm-sab", 379.3, 86.79, 787.59, 256.89),
            ("gru-bptt", 375.0, 85.18, 788.00, 257.01),
            ("rnn-bptt", 391.4, 90.14, 795.12, 269.29),
            ("rnn-sab", 392.7, 90.22, 794.21, 265.21),
            ("esn-ridge", 489.2, 99.86, 812.43, 305.57),
            ("lstm-uoro", 386.7, 89.21, 789.48, 259.10),
            ("lstm-rtrl", 361.2, 85.89, 778.29, 222.08),
            ("ptncn", 338.79, 79.67, 713.67, 176.73),
        ),
        **paper_cells(
            ("ptb",),
            ("valid_bpc", "test_bpc"),
            ("lstm-tbptt", 1.61, 1.56),
            ("lstm-bptt", 1.48, 1.38),
            ("lstm-sab", 1.49, 1.40),
            ("gru-bptt", 1.50, 1.41),
            ("rnn-bptt", 2.20, 2.16),
            ("rnn-sab", 2.27, 2.19),
            ("rhn-kf-rtrl", 1.77, 1.72),
            ("esn-ridge", 3.22, 3.16),
            ("rhn-uoro", 2.63, 2.61),
            ("lstm-rtrl", 1.75, 1.71),
            ("ptncn", 1.73, 1.70),
        ),
    },
)
