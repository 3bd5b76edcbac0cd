"""Options that change the time of a step: one thread, bfloat16, `torch.compile`, a trace memory."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import torch

from ptncn.network import PTNCN
from speed.cases import make_case
from speed.limits import Products
from speed.processes import run_module
from speed.shapes import SHAPES, Shape
from speed.timing import Case, median_ms

COMPILE_SECONDS = 90.0
"""Time limit for `torch.compile`."""
SEQUENCE = 100
"""Number of symbols in a sequence, as in a typical sentence."""
TEXT, MEMORY = Shape.parse("49-1x600@50"), 128
"""A network for text, and the units of its memory."""


def measure_options(
    budget: float, shapes: tuple[Shape, ...] = SHAPES, report: Callable[[str], None] = lambda line: None
) -> list[dict[str, Any]]:
    """Each {"option", "shape", "batch", "of", "plain_ms", "ms"}; "failed" with the reason replaces "ms"."""
    results, share = [], budget / len(shapes) / 2
    for shape in shapes:
        report(f"one thread and bfloat16 at {shape}, {2 * share:.0f} seconds")
        results += [threads(shape, share), bfloat16(shape, share)]
    report(f"torch.compile at {shapes[0]}, at most {COMPILE_SECONDS:.0f} seconds")
    return [*results, compiled(shapes[0])]


def measure_trace_memory(budget: float, shape: Shape = TEXT) -> list[dict[str, Any]]:
    """The cost of a trace memory, with all threads and with one."""
    usual = torch.get_num_threads()
    return [trace_memory(shape, budget / 2, threads) for threads in dict.fromkeys([usual, 1])]


def threads(shape: Shape, budget: float) -> dict[str, Any]:
    """One thread instead of all."""
    default, single = make_case("ptncn-sgd", shape), make_case("ptncn-sgd", shape)
    single.name, single.run = "single", _on_threads(single.run, 1, torch.get_num_threads())
    plain_ms, ms = median_ms([default, single], budget)
    return {**_where("1 thread", shape, "ptncn-sgd"), "plain_ms": plain_ms, "ms": ms}


def _on_threads(run: Callable[[int], object], threads: int, usual: int) -> Callable[[int], object]:
    def limited(steps: int) -> None:
        torch.set_num_threads(threads)
        try:
            run(steps)
        finally:
            torch.set_num_threads(usual)

    return limited


def bfloat16(shape: Shape, budget: float) -> dict[str, Any]:
    """The products of a learning step in bfloat16."""
    cases = [Case(str(dtype), Products(shape, "RW", dtype).run) for dtype in (torch.float32, torch.bfloat16)]
    plain_ms, ms = median_ms(cases, budget)
    return {**_where("bfloat16", shape, "products"), "plain_ms": plain_ms, "ms": ms}


def trace_memory(shape: Shape, budget: float, threads: int) -> dict[str, Any]:
    """The preset `best` on symbols, with a trace memory and without."""
    usual = torch.get_num_threads()
    runs = {units: _on_threads(_on_symbols(shape, units), threads, usual) for units in (0, MEMORY)}
    plain_ms, ms = median_ms([Case(f"memory {units}", run, unit=SEQUENCE) for units, run in runs.items()], budget)
    of = f"preset best, text, {threads} thread{'s' * (threads > 1)}"
    return {**_where(f"memory of {MEMORY}", shape, of), "plain_ms": plain_ms, "ms": ms}


def _on_symbols(shape: Shape, memory: int) -> Callable[[int], None]:
    """Learn from sequences of random symbols, the most frequent k times as frequent as number k, as in text."""
    network = PTNCN(shape.inputs, shape.sizes[1:], output="categorical", preset="best", memory=memory)
    frequent = 1 / torch.arange(1, shape.inputs + 1)
    rng = torch.Generator().manual_seed(0)
    drawn = torch.multinomial(frequent, SEQUENCE * shape.batch, replacement=True, generator=rng)
    drawn = drawn.view(SEQUENCE, shape.batch)
    frames = torch.nn.functional.one_hot(drawn, shape.inputs).float()

    def run(count: int) -> None:
        for _ in range(count // SEQUENCE):
            state = network.begin(shape.batch)
            for x in frames:
                network.step(x, state)

    return run


def compiled(shape: Shape, timeout: float = COMPILE_SECONDS) -> dict[str, Any]:
    """`torch.compile` of prediction, correction and learning rules, in a separate process."""
    entry = _where("torch.compile", shape, "ptncn-sgd")
    try:
        return {**entry, **run_module("speed.options", str(shape), timeout=timeout)}
    except subprocess.TimeoutExpired:
        return {**entry, "failed": f"not compiled after {timeout:.0f} seconds"}
    except RuntimeError as error:
        return {**entry, "failed": str(error)}


def _compile_and_time(shape: Shape, budget: float = 8.0) -> dict[str, float]:
    from ptncn.network import equations

    default, in_pytorch = make_case("ptncn-sgd", shape), make_case("ptncn-sgd-pytorch", shape)
    usual = {name: getattr(equations, name) for name in ("predict", "correct", "learn")}
    fast = {name: torch.compile(function) for name, function in usual.items()}

    def run(steps: int) -> None:
        for name, function in fast.items():
            setattr(equations, name, function)
        try:
            in_pytorch.run(steps)
        finally:
            for name, function in usual.items():
                setattr(equations, name, function)

    plain_ms, ms = median_ms([default, Case("compiled", run)], budget)
    return {"plain_ms": plain_ms, "ms": ms}


def _where(option: str, shape: Shape, of: str) -> dict[str, Any]:
    return {"option": option, "shape": shape.name, "batch": shape.batch, "of": of}


if __name__ == "__main__":
    print(json.dumps(_compile_and_time(Shape.parse(sys.argv[1]))))
