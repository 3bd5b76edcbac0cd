"""A whole run of the benchmark, as one JSON record."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ptncn.bench.company import Company
from ptncn.bench.contestants import ALL, QUICK
from ptncn.bench.endurance import LONG, measure_generator, measure_long_run
from ptncn.bench.growth import measure_growth
from ptncn.bench.limits import Read, matrix_rate
from ptncn.bench.machine import describe_machine, is_idle, load_average
from ptncn.bench.memory import measure_memory
from ptncn.bench.options import measure_options
from ptncn.bench.profiling import profile_step
from ptncn.bench.rows import measure
from ptncn.bench.shapes import SHAPES, Shape
from ptncn.bench.targets import judge
from ptncn.bench.timing import LEAST
from ptncn.learners.registry import describe

EXTRAS = ("memory", "growth", "long", "generator", "options", "profile")


@dataclass(frozen=True)
class Plan:
    """What is measured, and for how long."""

    shapes: Sequence[Shape] = SHAPES
    whats: Sequence[str] = ALL
    extras: Sequence[str] = EXTRAS
    seconds: float = 60.0
    """For the rows of one shape, and for one extra: some twenty samples of each contestant."""
    least: int = LEAST


def make_plan(*, quick: bool, shapes: Sequence[str] = (), whats: Sequence[str] = (), seconds: float | None) -> Plan:
    """From what the command line says; without names of contestants or of extras, all of them."""
    for name in whats:
        if name not in (*ALL, *EXTRAS):
            describe(name)  # any learner of the registry will do, and another name is an error
    rows = [name for name in whats if name not in EXTRAS]
    extras = [name for name in whats if name in EXTRAS]
    everything = not whats and not shapes and not quick
    return Plan(
        shapes=[Shape.parse(text) for text in shapes] or SHAPES,
        whats=rows if whats else QUICK if quick else ALL,
        extras=EXTRAS if everything else extras,
        seconds=seconds or (3.0 if quick else Plan.seconds),
        least=3 if quick else LEAST,
    )


def run(plan: Plan, tell: Callable[[str], None] = lambda line: None) -> dict[str, Any]:
    """{"machine", "rows", "skipped", "targets"} and the extras by their names."""
    start, company = time.perf_counter(), Company()
    record: dict[str, Any] = {"machine": describe_machine(load_average()), "rows": [], "skipped": []}
    tell("how fast this machine multiplies and reads")
    record["machine"] |= _roofs(plan)
    for shape in plan.shapes if plan.whats else ():
        tell(str(shape))
        rows, skipped = measure(shape, plan.whats, plan.seconds, plan.least)
        record["rows"] += rows
        record["skipped"] += skipped
    for name in plan.extras:
        tell(name)
        record[name] = _measure_extra(name, plan)
    record["machine"]["others"] = company.share()
    record["machine"]["idle"] = is_idle(record["machine"])
    record["targets"] = judge(record)
    record["seconds"] = round(time.perf_counter() - start, 1)
    return record


def _roofs(plan: Plan) -> dict[str, Any]:
    """GFLOP/s and GB/s, as good as PyTorch, NumPy and the C library know how."""
    largest = max(shape.all_weights for shape in plan.shapes)
    read = Read(largest)
    return {
        "gflops": matrix_rate(min(2000, math.isqrt(largest))),
        "gigabytes_a_second": 4 * largest / read.ms[read.way] / 1e6,
        "read_by": read.way,
        "read_ms": read.ms,
    }


def _measure_extra(name: str, plan: Plan) -> Any:
    largest, smallest = plan.shapes[0], plan.shapes[-1]
    if name == "memory":
        return measure_memory()
    if name == "growth":
        return measure_growth(plan.seconds)
    if name == "long":
        return [measure_long_run(what, smallest, steps) for what, steps in LONG]
    if name == "generator":
        return measure_generator(plan.seconds / 4, largest)
    if name == "options":
        return measure_options(plan.seconds, tuple(plan.shapes))
    return [found for shape in plan.shapes if (found := profile_step(shape))]
