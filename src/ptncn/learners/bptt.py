"""Back-propagation through time: over whole sequences, or over a window."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from ptncn.learner import Step
from ptncn.learners.base import check_size
from ptncn.learners.unrolled import UnrollingLearner


class BPTT(UnrollingLearner):
    """Back-propagation through the whole sequence (Werbos, 1990); one update, in `end`.

    >>> import torch
    >>> learner = BPTT(3, 8, cell="gru")
    >>> state = learner.begin(batch_size=1)
    >>> for t in range(5):
    ...     out = learner.step(torch.eye(3)[[t % 3]], state)
    >>> learner.end(state)
    """

    rule = "bptt"

    def __init__(self, input_size: int, hidden_size: int, *, max_length: int = 10_000, **common: Any) -> None:
        """
        :param max_length: steps that may be stored before a missing `end` is called out.
        :param common: see `RecurrentLearner`.
        """
        check_size("max_length", max_length)
        self.max_length = max_length
        super().__init__(input_size, hidden_size, **common)

    def options(self) -> dict[str, Any]:
        return {**super().options(), "max_length": self.max_length}

    def check_room(self, state: Any) -> None:
        """Refuse to store an endless stream."""
        if len(state.xs) >= self.max_length and not state.closed:
            windowed = self.kind.replace("bptt", "tbptt")
            raise ValueError(
                f"{self.kind!r} has stored {len(state.xs)} steps, its max_length, without an end(): an "
                f"unrolled learner on an endless stream needs a window. Use {windowed!r}, call end(), or "
                f"raise max_length"
            )


class TBPTT(UnrollingLearner):
    """Every `stride` steps, back-propagation through the last `window` steps (Williams and Peng, 1990).

    Each step is learnt from once: the loss is over the steps since the last update, and its gradient flows
    back through up to `window` steps, to the hidden state as it was then. The state goes on as it is: an
    update does not recompute it. `end` learns from the remainder. Memory does not grow, so that a stream need
    never end.

    >>> import torch
    >>> learner = TBPTT(3, 8, cell="gru", window=4, stride=2)
    >>> state = learner.begin(batch_size=1)
    >>> for t in range(100):
    ...     out = learner.step(torch.eye(3)[[t % 3]], state)
    >>> len(state.xs)
    2
    """

    rule = "tbptt"

    def __init__(self, input_size: int, hidden_size: int, *, window: int = 25, stride: int = 25, **common: Any) -> None:
        """
        :param window: steps a gradient may flow back.
        :param stride: steps between updates.
        :param common: see `RecurrentLearner`.
        """
        check_size("window", window)
        check_size("stride", stride)
        if window < stride:
            raise ValueError(
                f"window: expected at least the stride, {stride}, got {window}; steps would be forgotten before an "
                f"update learns from them"
            )
        self.window, self.stride = window, stride
        super().__init__(input_size, hidden_size, **common)

    def options(self) -> dict[str, Any]:
        return {**super().options(), "window": self.window, "stride": self.stride}

    def step(self, x: Tensor, state: Any, *, learn: bool = True, mask: Tensor | None = None) -> Step:
        """Predict, observe `x` (B, n), advance `state` and, each `stride` steps, learn."""
        out = super().step(x, state, learn=learn, mask=mask)
        if state.fresh == self.stride and learn:
            self.update(state)
            state.forget(keep=self.window - self.stride)
        return out

    def store(self, x: Tensor, mask: Tensor | None, scored: Tensor, state: Any) -> None:
        """Keep the step, and the hidden state before it: it may become the start of a window."""
        super().store(x, mask, scored, state)
        if len(state.before) < len(state.xs):
            state.before.append(state.hidden)
