"""Random-feedback local online learning (Murray, 2019): a leaky network, traces with its leak."""

from __future__ import annotations

from typing import Any

import torch

from ptncn.learners.base import check_choice
from ptncn.learners.cells import RNN, Cell
from ptncn.learners.traces import EligibilityLearner


class RFLO(EligibilityLearner):
    """Traces fade by the network's own leak, the same for all units::

        h' = (1 − α) h + α tanh(W [x, h, 1])          T ← (1 − α) T + α tanh′ ⊗ [x, h, 1]

    The recurrent weights have no part in the traces, and the error reaches the units through random weights. With
    α = 1 nothing of the past is left.

    >>> from ptncn.learners import make
    >>> make("rnn-rflo", input_size=3, hidden_size=4, leak_rate=0.2).kind
    'rnn-rflo'
    """

    rule = "rflo"
    default_feedback = "random"

    def __init__(
        self, input_size: int, hidden_size: int, *, cell: str = "rnn", leak_rate: float = 0.5, **common: Any
    ) -> None:
        """
        :param leak_rate: share of a unit that is new at each step, α.
        :param common: see `EligibilityLearner` and `RecurrentLearner`.
        """
        check_choice("cell for rflo", cell, {"rnn": None})
        if not 0 < leak_rate <= 1:
            raise ValueError(f"leak_rate: expected a number above 0 and at most 1, got {leak_rate!r}")
        self.leak_rate = leak_rate
        super().__init__(input_size, hidden_size, cell=cell, **common)

    def build_cell(self, name: str, *, depth: int, gate_bias: float | None, dtype: torch.dtype) -> Cell:
        cell = super().build_cell(name, depth=depth, gate_bias=gate_bias, dtype=dtype)
        assert isinstance(cell, RNN)
        cell.leak_rate = self.leak_rate
        return cell

    def options(self) -> dict[str, Any]:
        return {**super().options(), "leak_rate": self.leak_rate}
