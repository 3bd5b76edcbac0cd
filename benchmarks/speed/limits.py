"""Lower bounds on the time of a step: its matrix products alone, and one read of all weights."""

from __future__ import annotations

import ctypes
import statistics
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import torch
from torch import Tensor

from ptncn.network.layers import widths
from speed.shapes import Shape
from speed.timing import time_once


class Products:
    """The matrix products of a step into preallocated memory, without biases, activations or norms.

    Arguments:
        learn: which weights learn: "" in evaluation, "RW" with fixed E, "RWE" if E learns.
    """

    def __init__(self, shape: Shape, learn: str, dtype: torch.dtype = torch.float32) -> None:
        generator = torch.Generator().manual_seed(0)

        def draw(rows: int, columns: int) -> Tensor:
            return torch.rand(rows, columns, generator=generator).to(dtype)

        self.forward: list[tuple[Tensor, Tensor, Tensor]] = []
        self.updates: list[tuple[Tensor, Tensor, Tensor]] = []
        for below, own, above in widths(shape.sizes):
            for name, source, target in (("R", below + own + above, own), ("W", own, below), ("E", below, own)):
                pre, weight, post = draw(shape.batch, source), draw(source, target) - 0.5, draw(shape.batch, target)
                self.forward.append((pre, weight, torch.empty_like(post)))
                if name in learn:
                    self.updates.append((pre, weight, post))

    def run(self, steps: int) -> None:
        for _ in range(steps):
            for x, weight, out in self.forward:
                torch.mm(x, weight, out=out)
            for pre, weight, post in self.updates:
                weight.addmm_(pre.T, post, alpha=-1e-6)


class Read:
    """One pass over as many bytes as the weights have, by the fastest method found on this machine."""

    def __init__(self, count: int) -> None:
        self.buffer = torch.empty(count).fill_(0.0)  # writing allocates the pages
        self.methods = _read_methods(self.buffer)
        self.ms = _time_methods(self.methods)
        self.fastest = min(self.ms, key=self.ms.__getitem__)

    def run(self, steps: int) -> None:
        read = self.methods[self.fastest]
        for _ in range(steps):
            read()


def _time_methods(methods: dict[str, Callable[[], object]], rounds: int = 9) -> dict[str, float]:
    """Median milliseconds of each method, timed in turn; the first round warms up."""
    times: dict[str, list[float]] = {name: [] for name in methods}
    for _ in range(rounds):
        for name, read in methods.items():
            times[name].append(1000 * time_once(read))
    return {name: statistics.median(ms[1:]) for name, ms in times.items()}


def _read_methods(buffer: Tensor) -> dict[str, Callable[[], object]]:
    columns = next(width for width in (1000, 100, 10, 1) if len(buffer) >= width)
    matrix = buffer[: len(buffer) // columns * columns].view(-1, columns)
    array = buffer.numpy()
    methods: dict[str, Callable[[], object]] = {
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
        address = buffer.data_ptr()
        methods["memchr, threads"] = _in_threads(
            lambda start, stop: search(address + 4 * start, 1, 4 * (stop - start)), len(array)
        )
    return methods


def _in_threads(part: Callable[[int, int], object], count: int) -> Callable[[], object]:
    """Split range(count) over as many threads as PyTorch uses."""
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
    """GFLOP/s of a large square matrix product."""
    a, b, out = torch.rand(size, size), torch.rand(size, size), torch.empty(size, size)
    times = [time_once(lambda: torch.mm(a, b, out=out)) for _ in range(8)]
    return 2 * size**3 / statistics.median(times[1:]) / 1e9
