"""Who lives: a P-TNCN, and an LSTM with as many weights. Each has the options that served it best on another seed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from torch import nn

from ptncn.demo.worlds import CANVAS
from ptncn.learner import Learner
from ptncn.learners import make

PTNCN, LSTM = "ptncn", "lstm-tbptt"
NAMES = {PTNCN: "P-TNCN", LSTM: "LSTM", "copy": "last frame again"}
PIXELS = CANVAS * CANVAS

PTNCN_OPTIONS: dict[str, Any] = {
    "optimizer": "rmsprop",
    "lr": 3e-4,
    "rescale": "none",  # RMSprop sets the size of a step itself
    "beta": 0.5,
    "error_rule": "transpose",
    "error_lr_factor": 0.03,  # on videos E is best learnt slowly
    "biases": False,
}
LSTM_OPTIONS: dict[str, Any] = {
    "optimizer": "rmsprop",
    "lr": 2e-3,
    "window": 8,  # frames that it runs back through
    "stride": 4,  # an update every so many frames; more often takes too long for a demo
}


def contestants(units: Sequence[int], seed: int) -> dict[str, Learner]:
    """Both, untrained; `units` are those of the P-TNCN's layers.

    >>> [count_weights(learner) for learner in contestants([20, 10], seed=0).values()]
    [62740, 63136]
    """
    network = make(PTNCN, input_size=PIXELS, hidden_size=list(units), seed=seed, **PTNCN_OPTIONS)
    hidden = equal_units(count_weights(network))
    return {PTNCN: network, LSTM: make(LSTM, input_size=PIXELS, hidden_size=hidden, seed=seed, **LSTM_OPTIONS)}


def uncorrected(network: Learner) -> Learner:
    """A copy of the P-TNCN with the same weights whose states are not corrected by what it sees."""
    options = {**network.options(), "beta": 0.0, "gamma": 0.0, "lam": 0.0}
    copy = make(PTNCN, **options)
    copy.restore(network.snapshot())
    return copy


def count_weights(learner: Learner) -> int:
    """Numbers in all its matrices and biases, those that do not learn included."""
    return sum(weight.numel() for weight in cast(nn.Module, learner).parameters())


def equal_units(weights: int) -> int:
    """Units of the LSTM that comes closest: 4 (n + h + 2) h weights are in its cell, (h + 1) n in its readout."""
    return min(
        range(1, weights // PIXELS + 1), key=lambda h: abs(4 * (PIXELS + h + 2) * h + (h + 1) * PIXELS - weights)
    )
