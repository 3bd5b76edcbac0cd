"""What no implementation can be faster than: the matrix products of a step alone, and one read of all weights."""

from __future__ import annotations

import ctypes
import statistics
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import torch
from torch import Tensor

from ptncn.bench.shapes import Shape
from ptncn.bench.timing import seconds
from ptncn.network.layers import widths


class Products:
    """The products of a step into memory that is there already, and nothing else: no bias, no activation, no norm.

    learn: "" for evaluation, "RW" where E is fixed, "RWE" where it learns.
    """

    def __init__(self, shape: Shape, learn: str, dtype: torch.dtype = torch.float32) -> None:
        chance = torch.Generator().manual_seed(0)

        def draw(rows: int, columns: int) -> Tensor:
            return torch.rand(rows, columns, generator=chance).to(dtype)

        self.sent: list[tuple[Tensor, Tensor, Tensor]] = []
        self.learnt: list[tuple[Tensor, Tensor, Tensor]] = []
        for below, own, above in widths(shape.sizes):
            for name, source, target in (("R", below + own + above, own), ("W", own, below), ("E", below, own)):
                pre, weight, post = draw(shape.batch, source), draw(source, target) - 0.5, draw(shape.batch, target)
                self.sent.append((pre, weight, torch.empty_like(post)))
                if name in learn:
                    self.learnt.append((pre, weight, post))

    def run(self, steps: int) -> None:
        for _ in range(steps):
            for x, weight, out in self.sent:
                torch.mm(x, weight, out=out)
            for pre, weight, post in self.learnt:
                weight.addmm_(pre.T, post, alpha=-1e-6)


class Read:
    """One pass over as many bytes as the weights have, in the way that was found to be the fastest here."""

    def __init__(self, count: int) -> None:
        self.buffer = torch.empty(count).fill_(0.0)  # written to: pages that were only asked for are not there
        self.ways = _ways_to_read(self.buffer)
        self.ms = _race(self.ways)
        self.way = min(self.ms, key=self.ms.__getitem__)

    def run(self, steps: int) -> None:
        read = self.ways[self.way]
        for _ in range(steps):
            read()


def _race(ways: dict[str, Callable[[], object]], rounds: int = 9) -> dict[str, float]:
    """Median milliseconds of each, taken in turn."""
    taken: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, read in ways.items():
            taken[name].append(1000 * seconds(read))
    return {name: statistics.median(times[1:]) for name, times in taken.items()}


def _ways_to_read(buffer: Tensor) -> dict[str, Callable[[], object]]:
    columns = next(width for width in (1000, 100, 10, 1) if len(buffer) >= width)
    matrix = buffer[: len(buffer) // columns * columns].view(-1, columns)
    array = buffer.numpy()
    ways: dict[str, Callable[[], object]] = {
        "torch.sum": buffer.sum,
        "torch.amax": buffer.amax,
        "torch.dot": partial(torch.dot, buffer, buffer),
        "matrix times vector": partial(torch.mv, matrix, torch.ones(columns)),
        "vector times matrix": partial(torch.mv, matrix.T, torch.ones(len(matrix))),
        "numpy, threads": _in_threads(lambda start, stop: np.max(array[start:stop]), len(array)),
    }
    search = getattr(ctypes.CDLL(None), "memchr", None)
    if search is not None:
        search.restype, search.argtypes = ctypes.c_void_p, (ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t)
        start_of = buffer.data_ptr()
        ways["memchr, threads"] = _in_threads(
            lambda start, stop: search(start_of + 4 * start, 1, 4 * (stop - start)), len(array)
        )
    return ways


def _in_threads(part: Callable[[int, int], object], count: int) -> Callable[[], object]:
    """The parts of 0 … count on as many threads as PyTorch uses."""
    threads = torch.get_num_threads()
    bounds = [count * index // threads for index in range(threads + 1)]
    if threads == 1:
        return partial(part, 0, count)
    pool = ThreadPoolExecutor(threads - 1)

    def everything() -> None:
        others = [pool.submit(part, bounds[i], bounds[i + 1]) for i in range(1, threads)]
        part(bounds[0], bounds[1])
        for other in others:
            other.result()

    return everything


def matrix_rate(size: int) -> float:
    """GFLOP/s of a large square product, the roof of anything made of products."""
    a, b, out = torch.rand(size, size), torch.rand(size, size), torch.empty(size, size)
    times = [seconds(lambda: torch.mm(a, b, out=out)) for _ in range(8)]
    return 2 * size**3 / statistics.median(times[1:]) / 1e9
