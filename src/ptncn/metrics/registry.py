"""Errors by name: `make_metric("se")`. Tables, figures and records find label, unit and digits here."""

from __future__ import annotations

from dataclasses import dataclass

from ptncn.metrics.base import FrameMean
from ptncn.metrics.errors import BPC, CE, SE, Accuracy
from ptncn.registry import Registry


@dataclass(frozen=True)
class Metric:
    """One error of predictions."""

    make: type[FrameMean]
    """The meter's class; its `name` is the name in the registry."""
    label: str
    """What tables and figures call it."""
    unit: str = ""
    digits: int = 2
    """Digits after the point in tables."""
    lower_is_better: bool = True


METRICS: Registry[Metric] = Registry(
    "metric",
    "ptncn.metrics",
    {
        "se": Metric(SE, "SE"),
        "ce": Metric(CE, "CE", "nats"),
        "bpc": Metric(BPC, "BPC", "bits", digits=3),
        "accuracy": Metric(Accuracy, "accuracy", digits=3, lower_is_better=False),
    },
)
"""Every metric that experiments and the training loop know by name."""


def make_metric(name: str) -> FrameMean:
    """A fresh meter by its registry name.

    >>> make_metric("se").name
    'se'
    """
    return METRICS.find(name).make()
