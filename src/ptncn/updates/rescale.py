"""How long an update may be."""

from __future__ import annotations

from torch import Tensor

from ptncn.updates.factors import Factors


def rescaling(factors: Factors, rule: str, radius: float) -> Tensor | None:
    """(blocks,) what to multiply each block of an update with: `rule` is "unit", "clip" or "none".

    The numbers stay on the device, so that nobody waits for them.
    """
    if rule == "none":
        return None
    if rule == "unit":
        return radius / factors.norms().clamp_min(1e-30)  # an update that is 0 stays 0
    return radius / factors.norms().clamp_min(radius)
