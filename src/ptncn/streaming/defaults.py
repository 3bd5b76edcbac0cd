"""What a stream learns with unless told otherwise: chosen by measuring, see `docs/streams.md`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ptncn.learner import Learner
from ptncn.learners import make

HIDDEN = (32, 32)
TARGET = "both"
PTNCN_OPTIONS: dict[str, Any] = {
    "optimizer": "rmsprop",
    "rescale": "none",
    "error_rule": "transpose",
    "error_lr_factor": 0.1,
    "weight_std": 0.1,
    "error_weight_std": 0.1,
    "lr": 1e-3,
}


def default_learner(
    input_size: int,
    name: str = "ptncn",
    *,
    hidden: Sequence[int] = HIDDEN,
    lr: float | None = None,
    seed: int = 0,
    options: Mapping[str, Any] | None = None,
) -> Learner:
    """A learner for scaled observations.

    >>> default_learner(8).kind
    'ptncn'
    """
    settings: dict[str, Any] = {"output": "gaussian", "seed": seed}
    if name == "ptncn":
        settings |= PTNCN_OPTIONS | {"hidden_size": list(hidden)}
    else:
        settings |= {"hidden_size": sum(hidden)}
    if lr is not None:
        settings["lr"] = lr
    return make(name, input_size=input_size, **(settings | dict(options or {})))
