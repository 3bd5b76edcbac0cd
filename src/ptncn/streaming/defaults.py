"""What a stream learns with by default; chosen by measurement, see `docs/streams.md`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ptncn.learner import Learner
from ptncn.learners import make

HIDDEN = (32, 32)
TARGET = "both"
PTNCN_OPTIONS: dict[str, Any] = {
    "optimizer": "rmsprop",
    "rescale": "none",  # an update of fixed length cannot settle
    "lr": 1e-3,
    "alpha": 0.999,  # one observation at a time: its moment needs a long memory
    "eps": 1e-3,  # what is predicted well already is left alone
    "beta": 0.3,
    "error_rule": "transpose",
    "weight_std": 0.1,  # smaller, and a small network takes a thousand observations to wake up
    "error_weight_std": 0.1,
}


@dataclass(frozen=True)
class LearnerSpec:
    """Makes learners like `default_learner`, and can be compared and saved."""

    name: str = "ptncn"
    hidden: tuple[int, ...] = HIDDEN
    lr: float | None = None
    seed: int = 0
    options: Mapping[str, Any] = field(default_factory=dict)

    def __call__(self, inputs: int) -> Learner:
        return default_learner(inputs, **vars(self))

    def tree(self) -> dict[str, Any]:
        return {**vars(self), "hidden": list(self.hidden), "options": dict(self.options)}


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
