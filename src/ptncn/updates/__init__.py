"""Local updates: kept as factors, rescaled, turned into steps, and held within a ball, in that order."""

from ptncn.updates.apply import LocalLearning
from ptncn.updates.config import Group, Options
from ptncn.updates.deferred import Synapses
from ptncn.updates.factors import Activity, Factors, rescaling
from ptncn.updates.maxnorm import MaxNorm
from ptncn.updates.optimizers import OPTIMIZERS, Optimizer
from ptncn.updates.schedule import Schedule

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
