"""Meters: what is measured while a learner runs."""

from ptncn.metrics.base import FrameMean, Meter
from ptncn.metrics.cost import Cost, bytes_of
from ptncn.metrics.errors import BPC, CE, SE, Accuracy
from ptncn.metrics.gradient import GradientMeter
from ptncn.metrics.prequential import Point, Prequential
from ptncn.metrics.tasks import TaskMatrix

__all__ = [
    "BPC",
    "CE",
    "SE",
    "Accuracy",
    "Cost",
    "FrameMean",
    "GradientMeter",
    "Meter",
    "Point",
    "Prequential",
    "TaskMatrix",
    "bytes_of",
]
