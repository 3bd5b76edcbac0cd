"""What a model or a dataset is called in a report, and how its line looks: the same in every figure."""

from __future__ import annotations

from typing import Any

from ptncn.report.drawing import BLUE, GREEN, INK, ORANGE, PURPLE, SKY, SOFT, VERMILLION

CELLS = {
    "ptncn": BLUE,
    "sign": BLUE,
    "lstm": VERMILLION,
    "tanh": VERMILLION,
    "gru": GREEN,
    "rnn": PURPLE,
    "esn": ORANGE,
    "rhn": SKY,
    "untrained": SKY,
}
"""The colour says which cell it is."""
RULES: dict[str, Any] = {
    "bptt": "-",
    "tbptt": (0, (5, 1)),
    "sab": "--",
    "rtrl": ":",
    "uoro": "-.",
    "kf-rtrl": (0, (3, 1, 1, 1, 1, 1)),
    "rls": "--",
    "sgd": ":",
}
"""The dashes say how it learns."""
NAMES = {
    "ptncn": "P-TNCN",
    "copy": "last frame again",
    "mean": "mean of all",
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
    if name in NAMES:
        return NAMES[name]
    what, _, count = name.rpartition(" ")
    if count.isdigit():
        return f"{label(what)}, {count} object{'s' * (count != '1')}"
    for joint, arrow in (("-to-", " → "), ("+", " → "), (" after ", " after "), (" ", " ")):
        if joint in name:
            return arrow.join(label(part) for part in name.split(joint))
    cell, dash, rule = name.partition("-")
    if dash and cell in CELLS:
        return f"{cell.upper()} ({rule.upper() if rule != 'ridge' else rule})"
    return name.removeprefix("bouncing-")


def line(model: str) -> dict[str, Any]:
    """Options of matplotlib's lines: the P-TNCN stands out, and no two learners of the registry look the same."""
    cell, _, rule = model.partition("-")
    if cell not in CELLS:
        return {"color": INK if model == "cosine" else SOFT, "linestyle": ":" if model != "mean" else "-."}
    ours = cell in ("ptncn", "sign")
    return {
        "color": CELLS[cell],
        "linestyle": RULES.get(rule, "-"),
        "linewidth": 2.6 if ours else 1.5,
        "zorder": 4 if ours else 3,
    }
