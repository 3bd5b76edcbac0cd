"""The speed and memory targets, and whether a record meets them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from speed.cases import Row
from speed.shapes import SHAPES, Shape

NEAR_PRODUCTS = 1.15
NEAR_READ = 1.5
NEAR_SGD = 1.6
FACTORED = 2.0
WITH_MEMORY = 1.5
OBSERVATIONS_A_SECOND = 5_000
MEMORY = 1.3
NO_GROWTH = 2e6  # bytes; the allocator's peaks vary by less than this between runs
SLOWER = 1.05
EXPONENT = (1.7, 2.3)
GENERATOR_SHARE = 0.02


Check = tuple[str, str, bool]
"""The target, what the record reached, and whether it is met."""


def check_targets(record: dict[str, Any]) -> list[dict[str, Any]]:
    """{"target", "reached", "met"} for each target that the record has figures for."""
    targets = [
        *_row_targets(record["rows"]),
        *_memory_targets(record),
        *_growth_targets(record),
        *_long_targets(record),
    ]
    targets += _trace_memory_targets(record)
    return [{"target": target, "reached": reached, "met": bool(met)} for target, reached, met in targets]


def find(rows: Sequence[Row], shape: Shape, name: str) -> Row | None:
    return next((r for r in rows if (r["shape"], r["batch"], r["what"]) == (shape.name, shape.batch, name)), None)


def _row_targets(rows: list[Row]) -> Iterator[Check]:
    for shape in SHAPES:
        if shape.batch > 1:
            yield from _at_most(rows, shape, "ptncn-sgd", "products", NEAR_PRODUCTS)
            yield from _at_most(rows, shape, "ptncn-sgd-transpose", "products-learnt-e", NEAR_PRODUCTS)
            for rival in ("lstm-bptt", "lstm-bptt-whole"):
                yield from _at_most(rows, shape, "ptncn-sgd", rival, 1.0)
            for optimizer in ("momentum", "nesterov", "rmsprop", "adam"):
                yield from _at_most(rows, shape, f"ptncn-{optimizer}", "ptncn-sgd", NEAR_SGD)
        elif shape.inputs > 1000:
            yield from _at_most(rows, shape, "ptncn-sgd", "read", NEAR_READ)
            yield from _at_most(rows, shape, "ptncn-sgd-transpose", "read", NEAR_READ)
            yield from _at_most(rows, shape, "ptncn-adafactor", "ptncn-sgd", FACTORED)
        if shape.units > 32:
            yield from _at_most(rows, shape, "ptncn-eval", "products-eval", NEAR_PRODUCTS)
        elif (row := find(rows, shape, "ptncn-sgd")) is not None:
            rate = 1000 / row["ms"]
            target = f"{shape.name}, batch 1: at least {OBSERVATIONS_A_SECOND:,} observations a second, learning"
            yield target, f"{rate:,.0f} a second", rate >= OBSERVATIONS_A_SECOND


def _at_most(rows: list[Row], shape: Shape, name: str, other: str, most: float) -> Iterator[Check]:
    case, reference = find(rows, shape, name), find(rows, shape, other)
    if case is not None and reference is not None:
        ratio = case["ms"] / reference["ms"]
        bound = f"at most {most:g} × {other}" if most != 1 else f"faster than {other}"
        reached = f"{ratio:.2f} × ({case['ms']:.2f} ms / {reference['ms']:.2f} ms)"
        yield f"{shape.name}, batch {shape.batch}: {name} {bound}", reached, ratio <= most


def _memory_targets(record: dict[str, Any]) -> Iterator[Check]:
    for entry in record.get("memory", {}).get("peaks", []):
        ratio = entry["peak"] / entry["held"]
        target = f"{entry['what']}, {entry['shape']}: peak memory under {MEMORY:g} × weights and optimiser state"
        yield target, f"{ratio:.2f} × ({entry['peak'] / 1e6:.0f} MB / {entry['held'] / 1e6:.0f} MB)", ratio < MEMORY
    lengths = [entry for entry in record.get("memory", {}).get("lengths", []) if entry["what"] == "ptncn-sgd"]
    if lengths:
        short, long = lengths[0], lengths[-1]
        grown = long["peak"] - short["peak"]
        target = f"peak memory does not grow from {short['steps']:,} to {long['steps']:,} steps"
        yield target, f"{grown / 1e6:+.1f} MB", grown < NO_GROWTH


def _trace_memory_targets(record: dict[str, Any]) -> Iterator[Check]:
    for entry in record.get("trace-memory", []):
        ratio = entry["ms"] / entry["plain_ms"]
        where = f"{entry['shape']}, batch {entry['batch']}, {entry['of']}"
        target = f"{where}: a step with a {entry['option']} at most {WITH_MEMORY:g} × the step without"
        yield target, f"{ratio:.2f} × ({entry['ms']:.2f} ms / {entry['plain_ms']:.2f} ms)", ratio <= WITH_MEMORY


def _growth_targets(record: dict[str, Any]) -> Iterator[Check]:
    growth = record.get("growth")
    if growth:
        low, high = EXPONENT
        exponent = growth["exponent_units"]
        yield f"time a step grows with units², exponent {low:g} to {high:g}", f"{exponent:.2f}", low <= exponent <= high
        straight = growth["layers_r2"]
        yield "time a step grows linearly with layers, R² at least 0.99", f"{straight:.4f}", straight >= 0.99


def _long_targets(record: dict[str, Any]) -> Iterator[Check]:
    for run in record.get("long", []):
        ratio = run["last_ms"] / run["first_ms"]
        target = f"{run['what']}, {run['steps']:,} steps: the last tenth at most {SLOWER:g} × a first tenth"
        yield target, f"{ratio:.3f} ×", ratio <= SLOWER
        target = f"{run['what']}, {run['steps']:,} steps: no denormal numbers"
        yield target, f"{run['denormals']:,} of {run['numbers']:,}", run["denormals"] == 0
    share = record.get("generator", {}).get("share")
    if share is not None:
        yield "data at most 2 % of a training run, 4096-3x1000 at batch 20", f"{share:.2%}", share <= GENERATOR_SHARE
