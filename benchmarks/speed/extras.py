"""Measurements other than the time of a step: scaling with size, long runs, the cost of data, a profile."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from functools import partial
from itertools import cycle
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ptncn.data import bouncing
from ptncn.metrics.cost import tensors_of
from ptncn.network import PTNCN
from ptncn.network.backend import CLOCKS
from speed.cases import NETWORKS, STEP_SIZES, frames, make_case
from speed.shapes import Shape
from speed.timing import Case, median_ms, time_once

UNITS = (250, 500, 1000, 2000, 4000)
LAYERS = (1, 2, 4, 6, 8)
BATCHES = (1, 2, 5, 10, 20, 50, 100)
LONG_RUNS = (("ptncn-sgd", 1_000_000), ("ptncn-adam", 100_000))
BLOCKS = 50
"""Blocks of steps timed at the end of a long run, each next to a block of a fresh network."""


def measure_growth(
    budget: float,
    units: Sequence[int] = UNITS,
    layers: Sequence[int] = LAYERS,
    batches: Sequence[int] = BATCHES,
    width: int = 1000,
) -> dict[str, Any]:
    """Milliseconds of a learning step by units, layers and batch; the exponent is fitted to the larger half."""
    by_units = _step_ms([Shape(n, 2, n, 20) for n in units], budget / 3)
    by_layers = _step_ms([Shape(width // 2, depth, width // 2, 20) for depth in layers], budget / 3)
    by_batch = _step_ms([Shape(width, 2, width, rows) for rows in batches], budget / 3)
    large = len(units) // 2
    slope = np.polyfit(np.log(units[large:]), np.log(by_units[large:]), 1)[0]
    return {
        "units": dict(zip(map(str, units), by_units, strict=True)),
        "layers": dict(zip(map(str, layers), by_layers, strict=True)),
        "batch": dict(zip(map(str, batches), by_batch, strict=True)),
        "exponent_units": float(slope),
        "layers_r2": float(np.corrcoef(layers, by_layers)[0, 1] ** 2),
    }


def _step_ms(shapes: list[Shape], budget: float) -> list[float]:
    cases = [make_case("ptncn-sgd", shape) for shape in shapes]
    return median_ms([Case(str(shape), case.run, case.unit) for shape, case in zip(shapes, cases, strict=True)], budget)


def measure_long_run(name: str, shape: Shape, steps: int) -> dict[str, Any]:
    """Milliseconds per step at the end of a run and in a fresh network, and the number of denormal numbers.

    In the second half all observations are 0, so every trace decays. In the last tenth each block of steps is
    followed by a block of a fresh network, so that both see the same background load.
    """
    options = NETWORKS[name]
    old, young = (
        PTNCN(shape.inputs, shape.sizes[1:], lr=STEP_SIZES[options["optimizer"]], **options) for _ in range(2)
    )
    state, source = old.begin(shape.batch), frames(shape)
    young_state, silence = young.begin(shape.batch), torch.zeros_like(source)

    def block(network: PTNCN, state: Any, observations: Tensor, count: int) -> None:
        for t in range(count):
            network.step(observations[t % len(observations)], state)

    block(old, state, source, steps // 2)
    block(old, state, silence, steps // 2 - steps // 10)
    late, early = [], []
    few = steps // 10 // BLOCKS
    for _ in range(BLOCKS):
        late.append(time_once(partial(block, old, state, silence, few)))
        early.append(time_once(partial(block, young, young_state, source, few)))
    held = [*old.parameters(), *old.buffers(), *tensors_of(state)]
    return {
        "what": name,
        "shape": shape.name,
        "batch": shape.batch,
        "steps": steps,
        "first_ms": 1000 * statistics.median(early) / few,
        "last_ms": 1000 * statistics.median(late) / few,
        "denormals": count_denormals(held),
        "numbers": sum(tensor.numel() for tensor in held),
    }


def count_denormals(tensors: Iterable[Tensor]) -> int:
    """
    >>> count_denormals([torch.tensor([1e-40, 0.0, 1.0])])
    1
    """
    floats = (tensor for tensor in tensors if tensor.is_floating_point())
    return sum(int(((x != 0) & (x.abs() < torch.finfo(x.dtype).tiny)).sum()) for x in floats)


def measure_generator(budget: float, shape: Shape, canvas: int = 64) -> dict[str, float]:
    """Milliseconds to generate a batch of bouncing video, and to learn from it."""
    video = bouncing("digits", size=10_000, canvas=canvas)
    network = PTNCN(video.input_size, shape.sizes[1:], error_rule="fixed")
    starts = cycle(range(0, len(video) - shape.batch + 1, shape.batch))
    x = video.batch(range(shape.batch)).x

    def generate(count: int) -> None:
        for _, start in zip(range(count), starts, strict=False):
            video.batch(range(start, start + shape.batch))

    def learn(count: int) -> None:
        for _ in range(count):
            state = network.begin(shape.batch)
            for frame in x:
                network.step(frame, state)
            network.end(state)

    generating, learning = median_ms([Case("generate", generate), Case("learn", learn)], budget)
    share = generating / (generating + learning)
    return {"generate_ms": generating, "learn_ms": learning, "frames": len(x), "share": share}


def profile_step(shape: Shape, min_seconds: float = 1.0) -> dict[str, Any]:
    """Milliseconds of a learning step and each phase's share of it; {} without the compiled kernel."""
    network = PTNCN(shape.inputs, shape.sizes[1:], lr=STEP_SIZES["sgd"], error_rule="fixed")
    state, x = network.begin(shape.batch), frames(shape)
    kernel = network._backend()[1]
    if kernel is None:
        return {}
    for observation in x[:32]:
        network.step(observation, state)
    clock, elapsed, steps = kernel.watch(), 0.0, 0
    while elapsed < min_seconds:
        elapsed += time_once(lambda: [network.step(observation, state) for observation in x])
        steps += len(x)
    shares = dict(zip(CLOCKS, (clock / elapsed).tolist(), strict=True))
    return {
        "shape": shape.name,
        "batch": shape.batch,
        "what": "ptncn-sgd",
        "ms": 1000 * elapsed / steps,
        "shares": {**shares, "the rest": 1 - sum(shares.values())},
    }
