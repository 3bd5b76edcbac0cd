"""Labels and line styles, from the registries of learners and datasets."""

from __future__ import annotations

from typing import Any

from ptncn.learners.registry import LEARNERS, Style
from ptncn.report.theme import BLUE, INK, SKY, SOFT, VERMILLION

DATASETS = {
    "mnist": "MNIST",
    "notmnist": "NotMNIST",
    "fashion-mnist": "Fashion MNIST",
    "ptb": "Penn Treebank",
    "noisy-cosine": "noisy cosine",
}
ROWS = {
    "sign": "P-TNCN of signs",
    "tanh": "P-TNCN of tanh",
    "cosine": "the cosine without noise",
    "untrained": "not trained",
}
ROW_STYLES = {
    "sign": Style(BLUE, emphasis=True),
    "tanh": Style(VERMILLION),
    "untrained": Style(SKY),
    "cosine": Style(INK, ":"),
}
PLAIN = Style(SOFT, ":")


def label(name: str) -> str:
    """The label of a learner, a dataset, or several datasets joined to a column.

    >>> label("ptncn"), label("lstm-kf-rtrl"), label("mnist-to-notmnist"), label("bouncing-digits"), label("mnist 3")
    ('P-TNCN', 'LSTM (KF-RTRL)', 'MNIST → NotMNIST', 'digits', 'MNIST, 3 objects')
    """
    if name in LEARNERS:
        return LEARNERS[name].label or name
    if name in DATASETS or name in ROWS:
        return {**DATASETS, **ROWS}[name]
    what, _, count = name.rpartition(" ")
    if count.isdigit():
        return f"{label(what)}, {count} object{'s' * (count != '1')}"
    for joint, arrow in (("-to-", " → "), ("+", " → "), (" after ", " after "), (" ", " ")):
        if joint in name:
            return arrow.join(label(part) for part in name.split(joint))
    return name.removeprefix("bouncing-")


def line_style(name: str) -> dict[str, Any]:
    """Line options of matplotlib for a learner; those of emphasis are drawn thick and on top."""
    style = ROW_STYLES.get(name) or (LEARNERS[name].style if name in LEARNERS else None) or PLAIN
    return {
        "color": style.colour,
        "linestyle": style.dashes,
        "linewidth": 2.6 if style.emphasis else 1.5,
        "zorder": 4 if style.emphasis else 3,
    }
