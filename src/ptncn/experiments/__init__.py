"""Every table and figure of the paper, one module each.

Each module defines an `EXPERIMENT`: the learners and data that it compares, how a run works, which cells of the table
a record fills, and the text and figures of its page. All runs share one training loop (`runner`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptncn.registry import Lazy, Registry

if TYPE_CHECKING:
    from ptncn.experiments.experiment import Experiment

EXPERIMENTS: Registry[Experiment] = Registry(
    "experiment",
    "ptncn.experiments",
    {
        "prediction": Lazy("ptncn.experiments.prediction:EXPERIMENT"),
        "continual": Lazy("ptncn.experiments.continual:EXPERIMENT"),
        "zero-shot": Lazy("ptncn.experiments.zero_shot:EXPERIMENT"),
        "one-shot": Lazy("ptncn.experiments.one_shot:EXPERIMENT"),
        "out-of-domain": Lazy("ptncn.experiments.out_of_domain:EXPERIMENT"),
        "discrete": Lazy("ptncn.experiments.discrete:EXPERIMENT"),
        "complexity": Lazy("ptncn.experiments.complexity:EXPERIMENT"),
    },
)
"""In the order of the paper."""
