"""The demo's learners: a P-TNCN and an LSTM with as many weights, each with options tuned on another seed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import nn

from ptncn.learner import Learner
from ptncn.learners import make

PTNCN, LSTM = "ptncn", "lstm-tbptt"
NAMES = {PTNCN: "P-TNCN", LSTM: "LSTM", "copy": "last frame"}
CANVAS = 32
"""Pixels along an edge of a frame."""
PIXELS = CANVAS * CANVAS

PTNCN_OPTIONS: dict[str, Any] = {
    "optimizer": "rmsprop",
    "lr": 3e-4,
    "rescale": "none",  # RMSprop sets the size of a step itself
    "beta": 0.5,
    "error_rule": "transpose",
    "error_lr_factor": 0.03,  # on videos a slowly learning E is best
    "biases": False,
}
LSTM_OPTIONS: dict[str, Any] = {
    "optimizer": "rmsprop",
    "lr": 2e-3,
    "window": 8,  # frames that each update unrolls
    "stride": 4,  # frames between updates; fewer would take too long for a demo
}


def make_learners(units: Sequence[int], seed: int) -> dict[str, Learner]:
    """Both learners, untrained; `units` are those of the P-TNCN's layers.

    >>> [count_weights(learner) for learner in make_learners([20, 10], seed=0).values()]
    [62740, 63136]
    """
    network = make(PTNCN, input_size=PIXELS, hidden_size=list(units), seed=seed, **PTNCN_OPTIONS)
    hidden = equal_units(count_weights(network))
    return {PTNCN: network, LSTM: make(LSTM, input_size=PIXELS, hidden_size=hidden, seed=seed, **LSTM_OPTIONS)}


def without_correction(network: Learner) -> Learner:
    """A copy of the P-TNCN with the same weights that does not correct its states."""
    options = {**network.options(), "beta": 0.0, "gamma": 0.0, "lam": 0.0}
    copy = make(PTNCN, **options)
    copy.restore(network.snapshot())
    return copy


def count_weights(learner: Learner) -> int:
    """The number of weights and biases, including those that do not learn."""
    if not isinstance(learner, nn.Module):
        raise TypeError(f"{learner.kind}: expected a PyTorch module, got {type(learner).__name__}")
    return sum(weight.numel() for weight in learner.parameters())


def equal_units(weights: int) -> int:
    """Units of the LSTM closest in size: its cell has 4 (n + h + 2) h weights, its readout (h + 1) n."""
    return min(
        range(1, weights // PIXELS + 1), key=lambda h: abs(4 * (PIXELS + h + 2) * h + (h + 1) * PIXELS - weights)
    )
