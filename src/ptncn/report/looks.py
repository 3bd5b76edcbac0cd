"""What a model or a dataset is called in a report, and how its line looks: the same in every figure."""

from __future__ import annotations

from typing import Any

from ptncn.learners import LEARNERS, Style
from ptncn.report.drawing import BLUE, INK, SKY, SOFT, VERMILLION

OTHERS = {"sign": Style(BLUE, emphasis=True), "tanh": Style(VERMILLION), "untrained": Style(SKY)}
"""Lines of networks that no registry knows."""
NAMES = {
    "mnist": "MNIST",
    "notmnist": "NotMNIST",
    "fashion-mnist": "Fashion MNIST",
    "ptb": "Penn Treebank",
    "noisy-cosine": "noisy cosine",
    "sign": "P-TNCN of signs",
    "tanh": "P-TNCN of tanh",
    "cosine": "the cosine without noise",
    "untrained": "not trained",
}


def label(name: str) -> str:
    """
    >>> label("ptncn"), label("lstm-kf-rtrl"), label("mnist-to-notmnist"), label("bouncing-digits"), label("mnist 3")
    ('P-TNCN', 'LSTM (KF-RTRL)', 'MNIST → NotMNIST', 'digits', 'MNIST, 3 objects')
    """
    if name in LEARNERS:
        return LEARNERS[name].label or name
    if name in NAMES:
        return NAMES[name]
    what, _, count = name.rpartition(" ")
    if count.isdigit():
        return f"{label(what)}, {count} object{'s' * (count != '1')}"
    for joint, arrow in (("-to-", " → "), ("+", " → "), (" after ", " after "), (" ", " ")):
        if joint in name:
            return arrow.join(label(part) for part in name.split(joint))
    return name.removeprefix("bouncing-")


def line(model: str) -> dict[str, Any]:
    """Options of matplotlib's lines: the P-TNCN stands out, and no two learners of the registry look the same."""
    style = LEARNERS[model].style if model in LEARNERS else OTHERS.get(model)
    if style is None:
        return {"color": INK if model == "cosine" else SOFT, "linestyle": ":"}
    return {
        "color": style.colour,
        "linestyle": style.dashes,
        "linewidth": 2.6 if style.emphasis else 1.5,
        "zorder": 4 if style.emphasis else 3,
    }
