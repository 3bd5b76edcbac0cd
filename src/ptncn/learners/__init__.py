"""Every learner of the comparison behind the same three calls, and the registry that makes them by name."""

from ptncn.learners.registry import Entry, describe, make, names

__all__ = ["Entry", "describe", "make", "names"]
