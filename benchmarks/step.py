"""Time a learning step next to its matrix products, a direct implementation, BPTT and other online learners.

Cases are timed in turn, with many short samples each; the record contains medians and interquartile ranges. Run this on
an otherwise idle machine; it warns if the machine was busy. A full run takes a quarter of an hour, --quick a minute.
"""

from __future__ import annotations

import argparse
import json
import math
import shlex
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from ptncn.learners.registry import describe
from ptncn.system import write_atomically
from speed.cases import ALL, QUICK, measure
from speed.extras import LONG_RUNS, measure_generator, measure_growth, measure_long_run, profile_step
from speed.limits import Read, matrix_rate
from speed.machine import BackgroundLoad, describe_machine, is_idle, load_average
from speed.memory import measure_memory
from speed.options import measure_options, measure_trace_memory
from speed.page import show, write_page
from speed.shapes import SHAPES, Shape
from speed.targets import check_targets
from speed.timing import MIN_SAMPLES

EXTRAS = ("memory", "growth", "long", "generator", "options", "trace-memory", "profile")
DOCS = Path(__file__).resolve().parents[1] / "docs"


@dataclass(frozen=True)
class Plan:
    """What to measure, and for how long."""

    shapes: Sequence[Shape] = SHAPES
    cases: Sequence[str] = ALL
    extras: Sequence[str] = EXTRAS
    seconds: float = 60.0
    """Time for the rows of one shape, and for one extra: about twenty samples of each case."""
    min_samples: int = MIN_SAMPLES


def make_plan(*, quick: bool, shapes: Sequence[str] = (), names: Sequence[str] = (), seconds: float | None) -> Plan:
    """The plan for these options; without names, every case and, unless quick or limited to shapes, every extra."""
    for name in names:
        if name not in (*ALL, *EXTRAS):
            describe(name)  # raises unless the learner registry knows it
    everything = not names and not shapes and not quick
    return Plan(
        shapes=[Shape.parse(text) for text in shapes] or SHAPES,
        cases=[name for name in names if name not in EXTRAS] if names else QUICK if quick else ALL,
        extras=EXTRAS if everything else [name for name in names if name in EXTRAS],
        seconds=seconds or (3.0 if quick else Plan.seconds),
        min_samples=3 if quick else MIN_SAMPLES,
    )


def run(plan: Plan, report: Callable[[str], None] = lambda line: None) -> dict[str, Any]:
    """{"machine", "rows", "skipped", "targets", "seconds"} and one entry per extra."""
    start, background = time.perf_counter(), BackgroundLoad()
    record: dict[str, Any] = {"machine": describe_machine(load_average()), "rows": [], "skipped": []}
    report("matrix products and memory reads")
    record["machine"] |= _machine_limits(plan)
    for shape in plan.shapes if plan.cases else ():
        report(str(shape))
        rows, skipped = measure(shape, plan.cases, plan.seconds, plan.min_samples)
        record["rows"] += rows
        record["skipped"] += skipped
    for name in plan.extras:
        report(name)
        record[name] = _measure_extra(name, plan, report)
    record["machine"]["others"] = background.share()
    record["machine"]["idle"] = is_idle(record["machine"])
    record["targets"] = check_targets(record)
    record["seconds"] = round(time.perf_counter() - start, 1)
    return record


def _machine_limits(plan: Plan) -> dict[str, Any]:
    """GFLOP/s and GB/s that PyTorch, NumPy or the C library reach."""
    largest = max(shape.all_weights for shape in plan.shapes)
    read = Read(largest)
    return {
        "gflops": matrix_rate(min(2000, math.isqrt(largest))),
        "gigabytes_a_second": 4 * largest / read.ms[read.fastest] / 1e6,
        "read_by": read.fastest,
        "read_ms": read.ms,
    }


def _measure_extra(name: str, plan: Plan, report: Callable[[str], None]) -> Any:
    largest, smallest = plan.shapes[0], plan.shapes[-1]
    if name == "memory":
        return measure_memory()
    if name == "growth":
        return measure_growth(plan.seconds)
    if name == "long":
        return [measure_long_run(case, smallest, steps) for case, steps in LONG_RUNS]
    if name == "generator":
        return measure_generator(plan.seconds / 4, largest)
    if name == "options":
        return measure_options(plan.seconds, tuple(plan.shapes), report)
    if name == "trace-memory":
        return measure_trace_memory(plan.seconds)
    return [profile for shape in plan.shapes if (profile := profile_step(shape))]


def parse_arguments(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer cases and samples, about a minute")
    parser.add_argument("--json", action="store_true", help="print the record as JSON instead of tables")
    parser.add_argument("--out", type=Path, help="also write the record to this file")
    parser.add_argument(
        "--shape", action="append", default=[], help="INPUTS-LAYERSxUNITS@BATCH, such as 4096-3x1000@20; repeatable"
    )
    parser.add_argument(
        "--case", action="append", default=[], help=f"a case, a learner or one of {', '.join(EXTRAS)}; repeatable"
    )
    parser.add_argument(
        "--page",
        type=Path,
        nargs="+",
        help="measure nothing; write docs/performance.md from a full record and any further ones",
    )
    parser.add_argument("--docs", type=Path, default=DOCS, help="folder that --page writes to")
    parser.add_argument("--seconds", type=float, help="time for the rows of one shape")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    options, errors = parse_arguments(arguments), Console(stderr=True, highlight=False)
    try:
        if options.page is not None:
            print(f"wrote {write_page(options.page, options.docs)}")
            return 0
        plan = make_plan(quick=options.quick, shapes=options.shape, names=options.case, seconds=options.seconds)
        given = sys.argv[1:] if arguments is None else arguments
        record = {"command": shlex.join(["python", "benchmarks/step.py", *given])}
        record |= run(plan, report=lambda line: errors.print(f"measuring {line}"))
        text = json.dumps(record, indent=1, ensure_ascii=False)
        if options.out is not None:
            options.out.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(options.out, f"{text}\n".encode())
    except (ValueError, OSError) as error:
        errors.print(f"Error: {error}", style="red", soft_wrap=True, markup=False)
        return 1
    if options.json:
        print(text)
    else:
        show(record, Console(highlight=False))
    return 0


if __name__ == "__main__":
    sys.exit(main())
