"""Meters: what is measured while a learner runs."""

from ptncn.metrics.base import FrameMean, Meter
from ptncn.metrics.cost import Cost, bytes_of
from ptncn.metrics.errors import BPC, CE, METRICS, SE, Accuracy, Metric, make_metric
from ptncn.metrics.gradient import GradientMeter
from ptncn.metrics.prequential import Point, Prequential
from ptncn.metrics.task_matrix import TaskMatrix

__all__ = [
    "BPC",
    "CE",
    "METRICS",
    "SE",
    "Accuracy",
    "Cost",
    "FrameMean",
    "GradientMeter",
    "Meter",
    "Metric",
    "Point",
    "Prequential",
    "TaskMatrix",
    "bytes_of",
    "make_metric",
]
