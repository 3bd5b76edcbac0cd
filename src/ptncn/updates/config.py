"""What an update needs to know: options, and how each group of weights takes part."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from ptncn.updates.schedule import Factor


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
    """How some weights learn. Weights without a group do not."""

    lr_factor: float = 1.0
    """Their step size, as a multiple of `lr`."""
    regularized: bool = True
    """Whether `max_norm` and `weight_decay` apply."""
