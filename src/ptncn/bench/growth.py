"""How the time of a step grows with units, layers and rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ptncn.bench.contestants import make_contestant
from ptncn.bench.shapes import Shape
from ptncn.bench.timing import Contestant, interleave

UNITS = (250, 500, 1000, 2000, 4000)
LAYERS = (1, 2, 4, 6, 8)
BATCHES = (1, 2, 5, 10, 20, 50, 100)


def measure_growth(
    budget: float,
    units: Sequence[int] = UNITS,
    layers: Sequence[int] = LAYERS,
    batches: Sequence[int] = BATCHES,
    width: int = 1000,
) -> dict[str, Any]:
    """Milliseconds of a learning step; the exponent is that of the larger half of the units."""
    by_units = _times([Shape(n, 2, n, 20) for n in units], budget / 3)
    by_layers = _times([Shape(width // 2, depth, width // 2, 20) for depth in layers], budget / 3)
    by_batch = _times([Shape(width, 2, width, rows) for rows in batches], budget / 3)
    large = len(units) // 2
    slope = np.polyfit(np.log(units[large:]), np.log(by_units[large:]), 1)[0]
    return {
        "units": dict(zip(map(str, units), by_units, strict=True)),
        "layers": dict(zip(map(str, layers), by_layers, strict=True)),
        "batch": dict(zip(map(str, batches), by_batch, strict=True)),
        "exponent_units": float(slope),
        "layers_r2": float(np.corrcoef(layers, by_layers)[0, 1] ** 2),
    }


def _times(shapes: list[Shape], budget: float) -> list[float]:
    contestants = []
    for shape in shapes:
        one = make_contestant("ptncn-sgd", shape)
        contestants.append(Contestant(str(shape), one.run, one.unit))
    return [samples.summary()["ms"] for samples in interleave(contestants, budget).values()]
