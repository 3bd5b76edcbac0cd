"""Options that might make a step faster: one thread, bfloat16, `torch.compile`."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import torch

from speed.cases import make_case
from speed.limits import Products
from speed.processes import run_module
from speed.shapes import SHAPES, Shape
from speed.timing import Case, median_ms

COMPILE_SECONDS = 90.0
"""Time limit for `torch.compile`."""


def measure_options(budget: float, shapes: tuple[Shape, ...] = SHAPES) -> list[dict[str, Any]]:
    """Each {"option", "shape", "batch", "of", "plain_ms", "ms"}; "failed" with the reason replaces "ms"."""
    found = []
    for shape in shapes:
        found += [threads(shape, budget / len(shapes) / 2), bfloat16(shape, budget / len(shapes) / 2)]
    return [*found, compiled(shapes[0])]


def threads(shape: Shape, budget: float) -> dict[str, Any]:
    """One thread instead of all."""
    default, single = make_case("ptncn-sgd", shape), make_case("ptncn-sgd", shape)
    single.name, single.run = "single", _on_one_thread(single.run, torch.get_num_threads())
    plain_ms, ms = median_ms([default, single], budget)
    return {**_where("1 thread", shape, "ptncn-sgd"), "plain_ms": plain_ms, "ms": ms}


def _on_one_thread(run: Callable[[int], object], usual: int) -> Callable[[int], object]:
    def single(steps: int) -> None:
        torch.set_num_threads(1)
        try:
            run(steps)
        finally:
            torch.set_num_threads(usual)

    return single


def bfloat16(shape: Shape, budget: float) -> dict[str, Any]:
    """The products of a learning step in half the bytes."""
    cases = [Case(str(dtype), Products(shape, "RW", dtype).run) for dtype in (torch.float32, torch.bfloat16)]
    plain_ms, ms = median_ms(cases, budget)
    return {**_where("bfloat16", shape, "products"), "plain_ms": plain_ms, "ms": ms}


def compiled(shape: Shape, timeout: float = COMPILE_SECONDS) -> dict[str, Any]:
    """`torch.compile` of prediction, correction and learning rules, in a process of its own."""
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
