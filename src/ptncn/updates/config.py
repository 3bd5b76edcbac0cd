"""Options of updates, schedules of the step size, and groups of weights."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, Protocol


@dataclass(frozen=True)
class Schedule:
    """A factor on the step size that goes from 1 to `final` in `steps` updates, and stays there.

    "root" has no end: it is 1 / √(1 + updates / steps), but at least `final`.

    >>> falling = Schedule("linear", steps=100, final=0.5)
    >>> falling(0), falling(50), falling(1000)
    (1.0, 0.75, 0.5)
    """

    kind: Literal["linear", "cosine", "exponential", "root"]
    steps: int
    final: float = 0.0

    def __post_init__(self) -> None:
        if self.kind not in ("linear", "cosine", "exponential", "root"):
            raise ValueError(f"unknown schedule {self.kind!r}; choose one of: linear, cosine, exponential, root")
        if type(self.steps) is not int or self.steps < 1:
            raise ValueError(f"schedule: expected at least 1 step, got {self.steps!r}")
        if not isinstance(self.final, int | float) or not 0 <= self.final < math.inf:
            raise ValueError(f"schedule: expected a finite number of at least 0 as its end, got {self.final!r}")
        if self.kind == "exponential" and self.final == 0:
            raise ValueError(f"a schedule of kind {self.kind} cannot end at {self.final}")

    def __call__(self, update: int) -> float:
        if self.kind == "root":
            return max(1 / math.sqrt(1 + update / self.steps), self.final)
        progress = min(update / self.steps, 1.0)
        if self.kind == "exponential":
            return float(self.final**progress)
        remaining = 1 - progress if self.kind == "linear" else 0.5 * (1 + math.cos(math.pi * progress))
        return self.final + (1 - self.final) * remaining


Factor = Callable[[int], float]


def get_schedule(choice: Mapping[str, Any] | Factor | None) -> Factor | None:
    """A schedule from its fields; callables from the number of updates to a factor are returned unchanged."""
    if choice is None or callable(choice):
        return choice
    known = {field.name for field in fields(Schedule)}
    if not isinstance(choice, Mapping) or not {"kind", "steps"} <= set(choice) <= known:
        names = ", ".join(sorted(known))
        raise ValueError(f"schedule: expected a dict with {names}, or a function, got {choice!r:.60}")
    return Schedule(**choice)


def describe_schedule(schedule: Factor | None) -> dict[str, Any] | str | None:
    """JSON values for `get_schedule`; a custom callable becomes "custom"."""
    if schedule is None:
        return None
    return asdict(schedule) if isinstance(schedule, Schedule) else "custom"


class Options(Protocol):
    """The options of updates; `ptncn.network.Config` documents each."""

    @property
    def rescale(self) -> str: ...
    @property
    def radius(self) -> float: ...
    @property
    def reduction(self) -> str: ...
    @property
    def optimizer(self) -> str: ...
    @property
    def lr(self) -> float: ...
    @property
    def schedule(self) -> Mapping[str, Any] | Factor | None: ...
    @property
    def momentum(self) -> float: ...
    @property
    def beta1(self) -> float: ...
    @property
    def beta2(self) -> float: ...
    @property
    def alpha(self) -> float: ...
    @property
    def eps(self) -> float: ...
    @property
    def max_norm(self) -> float | None: ...
    @property
    def weight_decay(self) -> float: ...


@dataclass(frozen=True)
class Group:
    """How a group of weights learns. Weights without a group do not learn."""

    lr_factor: float = 1.0
    """Factor on the step size."""
    regularized: bool = True
    """Whether `max_norm` and `weight_decay` apply."""
