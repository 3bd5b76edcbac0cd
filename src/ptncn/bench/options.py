"""What could have made it faster, and whether it does: threads, bfloat16, `torch.compile`."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import torch

from ptncn.bench.contestants import make_contestant
from ptncn.bench.limits import Products
from ptncn.bench.shapes import SHAPES, Shape
from ptncn.bench.timing import Contestant, interleave

PATIENCE = 90.0
"""Seconds that the compiler gets."""


def measure_options(budget: float, shapes: tuple[Shape, ...] = SHAPES) -> list[dict[str, Any]]:
    """Each {"option", "shape", "batch", "of", "plain_ms", "ms"}, or "failed" with the reason in place of "ms"."""
    found = []
    for shape in shapes:
        found += [threads(shape, budget / len(shapes) / 2), bfloat16(shape, budget / len(shapes) / 2)]
    return [*found, compiled(shapes[0])]


def threads(shape: Shape, budget: float) -> dict[str, Any]:
    """One thread instead of all."""
    all_of_them = torch.get_num_threads()
    plain, alone = make_contestant("ptncn-sgd", shape), make_contestant("ptncn-sgd", shape)
    alone.what, alone.run = "alone", _on_one_thread(alone.run, all_of_them)
    times = interleave([plain, alone], budget)
    return _entry("1 thread", shape, "ptncn-sgd", times["ptncn-sgd"].summary()["ms"], times["alone"].summary()["ms"])


def _on_one_thread(run: Callable[[int], object], usual: int) -> Callable[[int], object]:
    def alone(steps: int) -> None:
        torch.set_num_threads(1)
        try:
            run(steps)
        finally:
            torch.set_num_threads(usual)

    return alone


def bfloat16(shape: Shape, budget: float) -> dict[str, Any]:
    """The products of a learning step with half the bytes."""
    plain, half = Products(shape, "RW"), Products(shape, "RW", torch.bfloat16)
    times = interleave([Contestant("plain", plain.run), Contestant("half", half.run)], budget)
    return _entry("bfloat16", shape, "products", times["plain"].summary()["ms"], times["half"].summary()["ms"])


def compiled(shape: Shape, patience: float = PATIENCE) -> dict[str, Any]:
    """`torch.compile` of prediction, correction and the rules, in a process of its own."""
    entry = {"option": "torch.compile", "shape": shape.name, "batch": shape.batch, "of": "ptncn-sgd"}
    command = [sys.executable, "-m", "ptncn.bench.options", str(shape)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=patience)
    except subprocess.TimeoutExpired:
        return {**entry, "failed": f"not compiled after {patience:.0f} seconds"}
    if done.returncode:
        lines = done.stderr.strip().splitlines()
        return {**entry, "failed": lines[-1][:200] if lines else f"exit code {done.returncode}"}
    return {**entry, **json.loads(done.stdout.splitlines()[-1])}


def _compile_and_time(shape: Shape, budget: float = 8.0) -> dict[str, float]:
    from ptncn.network import equations

    plain = make_contestant("ptncn-sgd", shape)
    with_compiler = make_contestant("ptncn-sgd-pytorch", shape)
    usual = {name: getattr(equations, name) for name in ("predict", "correct", "learn")}
    fast = {name: torch.compile(function) for name, function in usual.items()}
    run = with_compiler.run

    def swapped(steps: int) -> None:
        for name, function in fast.items():
            setattr(equations, name, function)
        try:
            run(steps)
        finally:
            for name, function in usual.items():
                setattr(equations, name, function)

    times = interleave([plain, Contestant("compiled", swapped)], budget)
    return {"plain_ms": times["ptncn-sgd"].summary()["ms"], "ms": times["compiled"].summary()["ms"]}


def _entry(option: str, shape: Shape, of: str, plain_ms: float, ms: float) -> dict[str, Any]:
    return {
        "option": option,
        "shape": shape.name,
        "batch": shape.batch,
        "of": of,
        "plain_ms": plain_ms,
        "ms": ms,
    }


if __name__ == "__main__":
    print(json.dumps(_compile_and_time(Shape.parse(sys.argv[1]))))
