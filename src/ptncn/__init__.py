"""Learn sequences online: Parallel Temporal Neural Coding Networks, and the learners they are compared with."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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

_HOMES = {
    **dict.fromkeys(("Checkpoint", "CheckpointError", "load", "save"), "ptncn.checkpoint"),
    **dict.fromkeys(("Learner", "State", "Step"), "ptncn.learner"),
    "PTNCN": "ptncn.network",
}


def __getattr__(name: str) -> Any:
    """Import what is asked for when it is asked for: `ptncn --help` need not wait for PyTorch."""
    if name not in _HOMES:
        raise AttributeError(f"module 'ptncn' has no attribute {name!r}")
    globals()[name] = value = getattr(import_module(_HOMES[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
