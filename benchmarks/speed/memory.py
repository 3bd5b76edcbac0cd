"""Peak memory of a run, measured in a separate process."""

from __future__ import annotations

import json
import sys
from typing import Any

import torch

from ptncn.learners.registry import make
from ptncn.metrics.cost import bytes_of
from ptncn.system import peak_memory, resident_memory
from speed.cases import NETWORKS, STEP_SIZES, learner_options
from speed.processes import run_module
from speed.shapes import Shape

PEAKS = [(what, "4096-3x1000@20", 40) for what in ("ptncn-sgd", "ptncn-momentum", "ptncn-rmsprop", "ptncn-adam")]
LENGTHS = [
    *(("ptncn-sgd", "49-2x1000@1", steps) for steps in (20, 2_000, 20_000)),
    *(("lstm-bptt", "49-2x1000@1", steps) for steps in (20, 1_000, 5_000)),
]


def measure_memory(
    peaks: list[tuple[str, str, int]] = PEAKS, lengths: list[tuple[str, str, int]] = LENGTHS
) -> dict[str, list[dict[str, Any]]]:
    """`peaks` are compared with weights and optimiser state, `lengths` with one another."""
    return {"peaks": [in_subprocess(*case) for case in peaks], "lengths": [in_subprocess(*case) for case in lengths]}


def in_subprocess(what: str, shape: str, steps: int) -> dict[str, Any]:
    """{"what", "shape", "batch", "steps", "peak", "held"}: bytes in addition to those of an idle interpreter."""
    return run_module("speed.memory", what, shape, str(steps))


def run(what: str, shape: Shape, steps: int) -> dict[str, Any]:
    _sequence(what, Shape(4, 1, 4, shape.batch), 3)  # loads the libraries and starts the threads
    before = resident_memory()
    held = _sequence(what, shape, steps)
    peak = peak_memory() - before
    return {"what": what, "shape": shape.name, "batch": shape.batch, "steps": steps, "peak": peak, "held": held}


def _sequence(what: str, shape: Shape, steps: int) -> int:
    """Learn from one sequence; return the bytes of weights and optimiser state."""
    if what in NETWORKS:
        options = {"lr": STEP_SIZES[NETWORKS[what]["optimizer"]], **NETWORKS[what]}
        learner: Any = make("ptncn", input_size=shape.inputs, hidden_sizes=list(shape.sizes[1:]), **options)
    else:
        learner = make(what, input_size=shape.inputs, hidden_size=shape.units, **learner_options(what))
    held = bytes_of([*map(torch.Tensor.detach, learner.parameters()), *learner.buffers()])
    state, generator = learner.begin(shape.batch), torch.Generator().manual_seed(0)
    for _ in range(steps):
        learner.step(torch.rand(shape.batch, shape.inputs, generator=generator), state)
    learner.end(state)
    return held


if __name__ == "__main__":
    print(json.dumps(run(sys.argv[1], Shape.parse(sys.argv[2]), int(sys.argv[3]))))
