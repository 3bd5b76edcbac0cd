"""Learn sequences online: Parallel Temporal Neural Coding Networks, and the learners they are compared with."""

from ptncn.checkpoint import Checkpoint, CheckpointError, load, save
from ptncn.learner import Learner, State, Step

__version__ = "0.1.0"

__all__ = ["Checkpoint", "CheckpointError", "Learner", "State", "Step", "__version__", "load", "save"]
