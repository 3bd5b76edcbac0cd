"""Learn sequences online: Parallel Temporal Neural Coding Networks, and the learners they are compared with.

>>> import ptncn
>>> learner = ptncn.make("ptncn", input_size=3, hidden_size=8)
>>> ptncn.PTNCN is type(learner)
True
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ptncn import learners
    from ptncn.checkpoint import Checkpoint, CheckpointError, load, save
    from ptncn.learner import Learner, State, Step
    from ptncn.learners import make
    from ptncn.network import PTNCN, Config
    from ptncn.streaming import Stream
    from ptncn.training import evaluate, run

__version__ = "0.1.0"

__all__ = [
    "PTNCN",
    "Checkpoint",
    "CheckpointError",
    "Config",
    "Learner",
    "State",
    "Step",
    "Stream",
    "__version__",
    "evaluate",
    "learners",
    "load",
    "make",
    "run",
    "save",
]

_MODULES = {
    **dict.fromkeys(("Checkpoint", "CheckpointError", "load", "save"), "ptncn.checkpoint"),
    **dict.fromkeys(("Learner", "State", "Step"), "ptncn.learner"),
    **dict.fromkeys(("PTNCN", "Config"), "ptncn.network"),
    **dict.fromkeys(("evaluate", "run"), "ptncn.training"),
    "Stream": "ptncn.streaming",
    "make": "ptncn.learners",
}


def __getattr__(name: str) -> Any:
    """Import a name when it is first used, so that `import ptncn` does not wait for PyTorch."""
    if name == "learners":
        return import_module("ptncn.learners")
    if name not in _MODULES:
        raise AttributeError(f"module 'ptncn' has no attribute {name!r}")
    globals()[name] = value = getattr(import_module(_MODULES[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
