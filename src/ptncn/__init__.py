"""Learn sequences online: Parallel Temporal Neural Coding Networks, and the learners they are compared with.

    PTNCN, Config         the network and its options
    make, learners        build any learner by name; the package of learners
    run, evaluate         run a learner over sequences, and measure it
    Stream                predict, forecast and monitor a live feed
    save, load            checkpoints; CheckpointError, if a file is damaged
    Learner, State, Step  the protocol that every learner implements

A learner predicts each observation, sees it, and learns from it:

>>> import torch
>>> import ptncn
>>> network = ptncn.PTNCN(2, [16], output="gaussian", preset="best")
>>> state = network.begin(batch_size=1)
>>> for t in range(100):
...     out = network.step(torch.tensor([[0.5, -0.5]]), state)
>>> network.predict(state).shape
torch.Size([1, 2])

Other learners have the same methods:

>>> ptncn.make("lstm-tbptt", input_size=2, hidden_size=16, output="gaussian").registry_name
'lstm-tbptt'

On the command line: `ptncn --help`.
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
