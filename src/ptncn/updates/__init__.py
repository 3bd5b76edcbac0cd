"""Local updates: kept as factors, rescaled, turned into steps, and projected onto a maximum norm, in that order."""

from ptncn.updates.apply import LocalLearning, MaxNorm
from ptncn.updates.config import Group, Options, Schedule
from ptncn.updates.factors import Activity, Factors, Synapses, rescaling
from ptncn.updates.optimizers import OPTIMIZERS, Optimizer

__all__ = [
    "OPTIMIZERS",
    "Activity",
    "Factors",
    "Group",
    "LocalLearning",
    "MaxNorm",
    "Optimizer",
    "Options",
    "Schedule",
    "Synapses",
    "rescaling",
]
