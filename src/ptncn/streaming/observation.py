"""What a stream tells about each observation."""

from __future__ import annotations

from dataclasses import dataclass

from ptncn.streaming.columns import Value


@dataclass(slots=True)
class Observation:
    """One observation, what was expected of it, and how surprising it was. Values are in the units of the source."""

    index: int
    """Observations before this one."""
    line: int
    """Where it was in the source, from 1."""
    timestamp: str | float | None
    observed: dict[str, Value]
    """None where nothing was observed."""
    prediction: dict[str, Value] | None
    """Made before the observation was seen; None for the first, which nothing came before."""
    forecast: list[dict[str, Value]]
    """The next `horizon` observations as the learner imagines them, after it has seen this one."""
    surprise: float | None
    """½ Σ e²/v over the columns; None where nothing was observed or expected."""
    score: float | None
    """From 0 to 1: the share of late surprises that were smaller; None among the first 32, too."""
    alarm: bool
    """Whether the score is among the `alarm_rate` highest."""
    drift: bool
    """Whether the drift detector, if there is one, has detected a lasting change with this observation."""
    errors: tuple[float | None, ...]
    """½‖e‖² of each layer, if asked for; None before there was anything to see."""
