"""Labels and line styles, from the registries of learners and datasets and from the experiment."""

from __future__ import annotations

from typing import Any

from ptncn.data.registry import DATASETS
from ptncn.experiments.experiment import Experiment
from ptncn.learners.registry import LEARNERS, Style
from ptncn.report.theme import PALETTE, SOFT

JOINTS = {"-to-": " → ", "+": " → ", " after ": " after ", " ": " "}
"""How columns join the names of datasets, and how their labels are joined."""


def data_label(name: str) -> str:
    """The label of a dataset, or of a column that joins several.

    >>> data_label("mnist-to-notmnist"), data_label("bouncing-digits"), data_label("mnist 3"), data_label("random")
    ('MNIST → NotMNIST', 'digits', 'MNIST, 3 objects', 'random')
    """
    generated = name.removeprefix("bouncing-")
    if generated in DATASETS:
        return DATASETS[generated].label
    what, _, count = name.rpartition(" ")
    if count.isdigit():
        return f"{data_label(what)}, {count} object{'s' * (count != '1')}"
    for joint, words in JOINTS.items():
        if joint in name:
            return words.join(data_label(part) for part in name.split(joint))
    return name


def learner_label(name: str) -> str:
    """
    >>> learner_label("lstm-kf-rtrl"), learner_label("one of my own")
    ('LSTM (KF-RTRL)', 'one of my own')
    """
    return (LEARNERS[name].label if name in LEARNERS else "") or name


def row_label(experiment: Experiment, name: str) -> str:
    """The label of a row of a table: a variant's own, or its learner's."""
    return experiment.variants[name].label or name if name in experiment.variants else learner_label(name)


def line_style(name: str) -> dict[str, Any]:
    """Line options of matplotlib for a learner."""
    return _line((LEARNERS[name].style if name in LEARNERS else None) or Style(SOFT, ":"))


def row_style(experiment: Experiment, name: str) -> dict[str, Any]:
    """Line options for a row: its learner's, or for variants one colour each, with the reference row emphasised."""
    if name not in experiment.variants:
        return line_style(name)
    if name in experiment.page.references:
        return _line(Style(SOFT, ":" if name == experiment.page.references[0] else "-."))
    place = list(experiment.variants).index(name)
    return _line(Style(PALETTE[place % len(PALETTE)], emphasis=name == experiment.reference))


def _line(style: Style) -> dict[str, Any]:
    return {
        "color": style.colour,
        "linestyle": style.dashes,
        "linewidth": 2.6 if style.emphasis else 1.5,
        "zorder": 4 if style.emphasis else 3,
    }
