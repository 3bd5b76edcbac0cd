"""Learn sequences online: Parallel Temporal Neural Coding Networks, and the learners they are compared with."""

from ptncn.checkpoint import Checkpoint, CheckpointError, load, save
from ptncn.learner import Learner, State, Step
from ptncn.network import PTNCN

__version__ = "0.1.0"

__all__ = [
    "PTNCN",
    "Checkpoint",
    "CheckpointError",
    "Learner",
    "State",
    "Step",
    "__version__",
    "load",
    "save",
]
