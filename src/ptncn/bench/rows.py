"""The rows of the benchmark: milliseconds a step of each contestant at one shape, and ratios to the limits."""

from __future__ import annotations

import gc
from collections.abc import Sequence
from typing import Any

from ptncn.bench.company import Company
from ptncn.bench.contestants import limit_of, make_contestant
from ptncn.bench.shapes import Shape
from ptncn.bench.timing import LEAST, Contestant, interleave

Row = dict[str, Any]


def measure(shape: Shape, whats: Sequence[str], budget: float, least: int = LEAST) -> tuple[list[Row], list[Row]]:
    """Rows, and what was left out with the reason; the limits of what is asked for are measured too."""
    limits = [limit_of(what, shape) for what in whats]
    contestants: list[Contestant] = []
    skipped = []
    for what in dict.fromkeys([*limits, *whats]):
        try:
            contestants.append(make_contestant(what, shape))
        except MemoryError as error:
            skipped.append({"shape": shape.name, "batch": shape.batch, "what": what, "reason": str(error)})
    company = Company()
    samples = interleave(contestants, budget, least)
    others = company.share()
    rows = []
    for what, each in samples.items():
        limit = limit_of(what, shape)
        summary = each.summary()
        rows.append(
            {
                "shape": shape.name,
                "batch": shape.batch,
                "what": what,
                **summary,
                "ratio": summary["ms"] / samples[limit].summary()["ms"],
                "limit": limit,
                "others": others,
            }
        )
    del contestants, samples
    gc.collect()
    return rows, skipped


def find(rows: Sequence[Row], shape: Shape, what: str) -> Row | None:
    return next((r for r in rows if (r["shape"], r["batch"], r["what"]) == (shape.name, shape.batch, what)), None)
