"""What only shows over time: slow-down and denormal numbers in long runs, and the share that data has of a run."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from functools import partial
from itertools import cycle
from typing import Any

import torch
from torch import Tensor

from ptncn.bench.contestants import NETWORKS, STEP_SIZES, frames
from ptncn.bench.shapes import Shape
from ptncn.bench.timing import Contestant, interleave, seconds
from ptncn.data import bouncing
from ptncn.metrics.cost import tensors_of
from ptncn.network import PTNCN

LONG = (("ptncn-sgd", 1_000_000), ("ptncn-adam", 100_000))
PAIRS = 50
"""Blocks of steps at the end of a run, each with one of a fresh network beside it."""


def measure_long_run(what: str, shape: Shape, steps: int) -> dict[str, Any]:
    """Milliseconds a step at the end of a run, those of a network in its first steps, and how many denormal numbers.

    After the middle of the run nothing happens any more, all observations are 0, and whatever can fade does. In the
    last tenth each block of steps is followed by one of a fresh network, so that the two meet the same machine.
    """
    options = NETWORKS[what]
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
    few = steps // 10 // PAIRS
    for _ in range(PAIRS):
        late.append(seconds(partial(block, old, state, silence, few)))
        early.append(seconds(partial(block, young, young_state, source, few)))
    first, last = statistics.median(early), statistics.median(late)
    each = 1000 / few
    held = [*old.parameters(), *old.buffers(), *tensors_of(state)]
    return {
        "what": what,
        "shape": shape.name,
        "batch": shape.batch,
        "steps": steps,
        "first_ms": first * each,
        "last_ms": last * each,
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
    """Milliseconds to make a batch of bouncing video, and to learn from it."""
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

    times = interleave([Contestant("generate", generate), Contestant("learn", learn)], budget)
    generating, learning = (times[what].summary()["ms"] for what in ("generate", "learn"))
    return {
        "generate_ms": generating,
        "learn_ms": learning,
        "frames": len(x),
        "share": generating / (generating + learning),
    }
