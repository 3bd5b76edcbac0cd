"""All learners except the P-TNCN, and the registry that builds any learner by name."""

from ptncn.learners import entries as entries  # registers the package's own
from ptncn.learners.registry import LEARNERS, Entry, Style, describe, make, names, option_names

__all__ = ["LEARNERS", "Entry", "Style", "describe", "make", "names", "option_names"]
