"""Back-propagation through time."""

from __future__ import annotations

from typing import Any

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
