"""e-prop (Bellec et al., 2020): eligibility traces that live inside a unit, and a broadcast error."""

from __future__ import annotations

from typing import Any

from ptncn.learners.base import check_choice
from ptncn.learners.traces import EligibilityLearner

CELLS = {"lstm": None, "gru": None, "rhn": None}


class EProp(EligibilityLearner):
    """Traces fade by the gate that keeps the unit's past: the LSTM's forget gate, as in the authors' appendix; the
    GRU's update gate and the RHN's carry gate likewise. What goes from unit to unit, or from a unit's output back to
    its own gates, is left out.

    >>> from ptncn.learners import make
    >>> make("lstm-e-prop", input_size=3, hidden_size=4, feedback="random").kind
    'lstm-e-prop'
    """

    rule = "e-prop"
    default_feedback = "symmetric"

    def __init__(self, input_size: int, hidden_size: int, *, cell: str = "lstm", **common: Any) -> None:
        """
        :param cell: "lstm", "gru" or "rhn"; `rnn-rflo` is the same for a plain cell.
        :param common: see `EligibilityLearner` and `RecurrentLearner`.
        """
        check_choice("cell for e-prop", cell, CELLS)
        super().__init__(input_size, hidden_size, cell=cell, **common)
