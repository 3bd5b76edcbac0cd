"""Peak memory of a run, measured in a process of its own: `python -m ptncn.bench.memory ptncn-sgd 49-2x1000@1 20`."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import torch

from ptncn.bench.contestants import NETWORKS, STEP_SIZES
from ptncn.bench.shapes import Shape
from ptncn.learners.registry import make
from ptncn.metrics.cost import bytes_of
from ptncn.system import peak_memory, resident_memory

PEAKS = [(what, "4096-3x1000@20", 40) for what in ("ptncn-sgd", "ptncn-momentum", "ptncn-rmsprop", "ptncn-adam")]
LENGTHS = [
    *(("ptncn-sgd", "49-2x1000@1", steps) for steps in (20, 2_000, 20_000)),
    *(("lstm-bptt", "49-2x1000@1", steps) for steps in (20, 1_000, 5_000)),
]


def measure_memory(
    peaks: list[tuple[str, str, int]] = PEAKS, lengths: list[tuple[str, str, int]] = LENGTHS
) -> dict[str, list[dict[str, Any]]]:
    """`peaks` are held against weights and optimiser state, `lengths` against one another."""
    return {
        "peaks": [in_a_process(*each) for each in peaks],
        "lengths": [in_a_process(*each) for each in lengths],
    }


def in_a_process(what: str, shape: str, steps: int) -> dict[str, Any]:
    """{"what", "shape", "batch", "steps", "peak", "held"}: bytes above what an idle interpreter has."""
    command = [sys.executable, "-m", "ptncn.bench.memory", what, shape, str(steps)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed: {done.stderr.strip()[-500:]}")
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def run(what: str, shape: Shape, steps: int) -> dict[str, Any]:
    _sequence(what, Shape(4, 1, 4, shape.batch), 3)  # loads the libraries and starts the threads
    before = resident_memory()
    held = _sequence(what, shape, steps)
    peak = peak_memory() - before
    return {"what": what, "shape": shape.name, "batch": shape.batch, "steps": steps, "peak": peak, "held": held}


def _sequence(what: str, shape: Shape, steps: int) -> int:
    """Learn from one sequence; the bytes of weights and optimiser state."""
    if what in NETWORKS:
        options = {"lr": STEP_SIZES[NETWORKS[what]["optimizer"]], **NETWORKS[what]}
        learner: Any = make("ptncn", input_size=shape.inputs, hidden_sizes=list(shape.sizes[1:]), **options)
    else:
        learner = make(what, input_size=shape.inputs, hidden_size=shape.units, optimizer="sgd", lr=1e-4)
    held = bytes_of([*map(torch.Tensor.detach, learner.parameters()), *learner.buffers()])
    state, chance = learner.begin(shape.batch), torch.Generator().manual_seed(0)
    for _ in range(steps):
        learner.step(torch.rand(shape.batch, shape.inputs, generator=chance), state)
    learner.end(state)
    return held


if __name__ == "__main__":
    print(json.dumps(run(sys.argv[1], Shape.parse(sys.argv[2]), int(sys.argv[3]))))
