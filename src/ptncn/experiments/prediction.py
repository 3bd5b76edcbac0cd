"""Table I: predict the next frame of bouncing videos, and the next character of Penn Treebank."""

from __future__ import annotations

from typing import Any

from torch.nn import functional as F

from ptncn.data.sequences import SequenceDataset
from ptncn.experiments.config import VIDEO, find_config
from ptncn.experiments.experiment import (
    CE,
    FILMS_AND_SURPRISE,
    LEARNING_CURVES,
    SE,
    VARIANTS,
    Cells,
    ErrorKey,
    Experiment,
    PageSpec,
    paper_cells,
)
from ptncn.experiments.run import RunContext, RunSpec
from ptncn.experiments.runner import Result, train_and_test
from ptncn.learner import Dreamer
from ptncn.records import Record
from ptncn.training import run as run_frames

VIDEO_ROWS = (
    "lstm-bptt",
    "lstm-sab",
    "lstm-fp",
    "lstm-cfp",
    "gru-bptt",
    "rnn-bptt",
    "rnn-sab",
    "esn-ridge",
    "lstm-uoro",
    "lstm-rtrl",
    "ptncn",
    "ptncn-best",
    "elstm-rtrl",  # not in the paper, like the next: exact RTRL at its 1,000 units
    "copy",  # a learner that does not beat this has learnt nothing
)
FUTURE_VIDEOS = 1_000
ONLINE_TEXT_ROWS = ("lru-rtrl", "elstm-rtrl", "lstm-snap1", "lstm-immediate")
"""Not in the paper: online learners published since."""
TEXT_ROWS = (
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
    "ptncn-memory",
    *ONLINE_TEXT_ROWS,
)
STREAM_ROWS = ("lstm-tbptt", "ptncn", "ptncn-memory", *ONLINE_TEXT_ROWS)
"""Continuous text: learners that unroll a whole sequence cannot be used."""


def run(spec: RunSpec, context: RunContext) -> Result:
    result = train_and_test(spec, context)
    if spec.splits.kind == "video" and isinstance(result.learner, Dreamer):
        count = min(spec.config.test, FUTURE_VIDEOS, len(spec.splits.test))
        result.metrics["future"] = future_errors(result.learner, spec.splits.test, count)
    return result


def future_errors(learner: Dreamer, videos: SequenceDataset, count: int, context: int = 10) -> dict[str, float]:
    """CE and SE of the frames after `context`, all predicted from the context, over the first `count` videos."""
    ce = se = frames = 0.0
    for first in range(0, count, 20):
        x = videos.batch(range(first, min(first + 20, count))).x
        seen = run_frames(learner, x[:context], end=False, keep_predictions=False)
        future = learner.dream(seen.state, len(x) - context)
        ce += float(F.binary_cross_entropy(future.clamp(1e-6, 1 - 1e-6), x[context:], reduction="sum"))
        se += float(F.mse_loss(future, x[context:], reduction="sum"))
        frames += future.shape[0] * future.shape[1]
    return {"ce": ce / frames, "se": se / frames}


def cells(record: Record) -> Cells:
    if "bpc" in record.metrics["test"]:
        return {f"{split}_bpc": {record.data: record.metrics[split]["bpc"]} for split in ("valid", "test")}
    named = {"test": record.metrics["test"], "future": record.metrics.get("future", {})}
    return {
        f"{what}_{metric}": {record.data: value} for what, errors in named.items() for metric, value in errors.items()
    }


def _errors(metric: str, column: str) -> ErrorKey:
    split, _, what = metric.partition("_")
    return ("test", what) if split == "test" else None


def _paper_config(record: Record) -> dict[str, Any]:
    config = find_config(record.data, "paper")
    return {name: value for name, value in config.values().items() if name != "canvas" or config == VIDEO["paper"]}


PAGE = PageSpec(
    title="Table I: the next frame, the next character",
    question="How well does each learner predict the next frame of two bouncing objects, and the next character of a "
    "text? All learners see the same sequences in the same order; the weights from the epoch with "
    "the lowest validation error are tested.",
    metrics=(
        CE,
        SE,
        "**CE and SE of frames 11 to 20**: all ten frames are predicted from the first ten, over the first 1,000 test "
        "videos. The paper's numbers for LSTM-FP and LSTM-CFP, taken from Srivastava et al., are of this kind and "
        "cannot be compared with the one-step CE of the other rows.",
        "**BPC**: bits per character, on validation and test text. Lower is better.",
    ),
    metric_labels={
        "test_ce": "test CE",
        "test_se": "test SE",
        "future_ce": "CE of frames 11 to 20",
        "future_se": "SE of frames 11 to 20",
        "valid_bpc": "valid BPC",
        "test_bpc": "test BPC",
    },
    unstated=(
        "The paper gives neither the number of epochs nor the size of the validation set nor the step-size schedule; "
        "the table of sizes lists those used here.",
        "Step sizes of all learners were chosen on validation data, never on test data.",
        "“Repeat last frame” is not in the paper: a learner that does not beat it has learnt nothing.",
        "Penn Treebank is read one sentence per sequence. “Penn Treebank, continuous” carries the state from sentence "
        "to sentence, as most published numbers do; the two are not comparable.",
    ),
    errors=_errors,
    paper_config=_paper_config,
    figures=(LEARNING_CURVES, FILMS_AND_SURPRISE),
)

EXPERIMENT = Experiment(
    name="prediction",
    about="table I: bouncing MNIST and NotMNIST, Penn Treebank",
    rows={"mnist": VIDEO_ROWS, "notmnist": VIDEO_ROWS, "ptb": TEXT_ROWS, "ptb-stream": STREAM_ROWS},
    variants=VARIANTS,
    config=find_config,
    run=run,
    cells=cells,
    trains=lambda spec: [spec],
    compared_by=("test", "se"),
    page=PAGE,
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
        **paper_cells(("mnist",), ("future_ce",), ("lstm-fp", 350.2), ("lstm-cfp", 341.2)),
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
