"""Meters: measurements while a learner runs."""

from ptncn.metrics.base import BPC, CE, METRICS, SE, Accuracy, FrameMean, Meter, Metric, make_metric
from ptncn.metrics.continual import Point, Prequential, TaskMatrix
from ptncn.metrics.cost import Cost, GradientMeter, bytes_of

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
