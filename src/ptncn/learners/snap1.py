"""SnAp-1 (Menick et al., 2021): RTRL that leaves out what a weight does to other units."""

from __future__ import annotations

from torch import Tensor

from ptncn.learners.linearisation import MicroStep
from ptncn.learners.traces import TraceLearner


class SnAp1(TraceLearner):
    """Keep the influence of each weight on its own unit alone: A is the unit's own entry of the transition.

    It is exact where the transition is diagonal. For an LSTM the unit is the pair h, c, and A is two by two. The
    micro-steps of a deep RHN count as steps of their own.

    >>> from ptncn.learners import make
    >>> make("gru-snap1", input_size=3, hidden_size=4).kind
    'gru-snap1'
    """

    rule = "snap1"

    def keep(self, micro: MicroStep) -> Tensor:
        own = micro.recurrent.diagonal(dim1=1, dim2=2)  # (G', H)
        kept = micro.carry.clone()  # (B, R, R, H)
        kept[:, :, 0] += (micro.slopes[:, :, : len(own)] * own).sum(2)
        return kept
