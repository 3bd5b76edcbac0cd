"""Where the time of a step goes: the phases of the compiled step, and the interpreter around it."""

from __future__ import annotations

from typing import Any

from ptncn.bench.contestants import STEP_SIZES, frames
from ptncn.bench.shapes import Shape
from ptncn.bench.timing import seconds
from ptncn.network import PTNCN
from ptncn.network.compiled import PHASES


def profile_step(shape: Shape, least: float = 1.0) -> dict[str, Any]:
    """Milliseconds of a learning step, and the share of each phase in it; {} where there is no compiled code."""
    network = PTNCN(shape.inputs, shape.sizes[1:], lr=STEP_SIZES["sgd"], error_rule="fixed")
    state, x = network.begin(shape.batch), frames(shape)
    kernel = network._kernel(shape.batch)
    if kernel is None:
        return {}
    for observation in x[:32]:
        network.step(observation, state)
    clock, taken, steps = kernel.watch(), 0.0, 0
    while taken < least:
        taken += seconds(lambda: [network.step(observation, state) for observation in x])
        steps += len(x)
    shares = dict(zip(PHASES, (clock / taken).tolist(), strict=True))
    return {
        "shape": shape.name,
        "batch": shape.batch,
        "what": "ptncn-sgd",
        "ms": 1000 * taken / steps,
        "shares": {**shares, "the rest": 1 - sum(shares.values())},
    }
