"""What some learners can do beyond the protocol, typed: ask with `isinstance`, or with the function given here."""

from __future__ import annotations

from typing import Any, Protocol, TypeGuard, runtime_checkable

from torch import Tensor

from ptncn.learner import Learner


class StepSized(Learner, Protocol):
    """A learner whose step size can be set while it learns; `has_step_size` finds out."""

    lr: float


def has_step_size(learner: Learner) -> TypeGuard[StepSized]:
    """Whether a learner has a step size among its options.

    >>> from ptncn.learners import make
    >>> [has_step_size(make(name, input_size=2, hidden_size=3)) for name in ("rnn-bptt", "esn-ridge")]
    [True, False]
    """
    return learner.options().get("lr") is not None


@runtime_checkable
class Dreamer(Learner, Protocol):
    """A learner that continues a sequence from its own predictions."""

    def dream(self, state: Any, steps: int) -> Tensor:
        """(steps, B, n) the predicted continuation."""


@runtime_checkable
class Surprising(Protocol):
    """A step that reports how unexpected the observation was."""

    @property
    def surprise(self) -> tuple[Tensor, ...]:
        """(B,) for each layer."""
