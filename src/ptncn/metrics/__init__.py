"""Meters: what is measured while a learner runs."""

from ptncn.metrics.base import FrameMean, Meter
from ptncn.metrics.errors import BPC, CE, SE, Accuracy

__all__ = ["BPC", "CE", "SE", "Accuracy", "FrameMean", "Meter"]
