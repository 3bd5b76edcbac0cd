"""Run learners over whole sequences."""

from ptncn.training.loop import Batch, Run, evaluate, run

__all__ = ["Batch", "Run", "evaluate", "run"]
