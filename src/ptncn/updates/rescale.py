"""How long an update may be."""

from __future__ import annotations

from torch import Tensor

from ptncn.updates.factors import Factors, inverse


def rescaling(factors: Factors, rule: str, radius: float, reduction: str, batch_size: int) -> Tensor | float:
    """The number to multiply an update with: `rule` is "unit", "clip" or "none".

    A scalar on the device where it depends on the update's norm, so that nobody waits for it.
    """
    share = 1.0 / batch_size if reduction == "sum_then_mean" else 1.0
    if rule == "none":
        return share
    norm = factors.norm()
    if rule == "unit":
        return inverse(norm) * (share * radius)
    return share * radius / norm.clamp_min(radius)


def longest(rule: str, radius: float, reduction: str, batch_size: int) -> float | None:
    """The largest norm that a rescaled update can have; None where there is no limit."""
    if rule == "none":
        return None
    return radius / batch_size if reduction == "sum_then_mean" else radius
