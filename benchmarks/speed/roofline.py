"""The roofline plot: the speed that the machine allows at each arithmetic intensity, and the speed of the steps."""

from __future__ import annotations

import io
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from speed.cases import Row
from speed.shapes import Shape

MARKS = {"ptncn-sgd": ("o", "#1b6ca8", True), "ptncn-eval": ("s", "#2a9d55", False), "textbook": ("x", "#c0392b", True)}
"""Marker, colour, and whether the row learns."""


def roofline(record: dict[str, Any]) -> bytes:
    """SVG bytes; the same record gives the same bytes."""
    machine = record["machine"]
    roof, slope = machine["gflops"], machine["gigabytes_a_second"]
    figure = Figure(figsize=(7, 4.5), layout="constrained")
    axes = figure.subplots()
    intensity = np.geomspace(0.1, 100, 200)
    axes.loglog(intensity, np.minimum(roof, slope * intensity), color="black", linewidth=1.5)
    axes.text(90, roof * 1.1, f"products: {roof:.0f} GFLOP/s", ha="right")
    axes.text(0.11, slope * 0.17, f"memory: {slope:.1f} GB/s", rotation=32)
    for name, (marker, colour, learn) in MARKS.items():
        rows = [row for row in record["rows"] if row["what"] == name]
        points = [point(row, learn=learn) for row in rows]
        axes.scatter(
            [at for at, _ in points],
            [speed for _, speed in points],
            marker=marker,
            color=colour,
            label=name,
            zorder=3,
        )
        if name == "ptncn-sgd":
            for row, (at, speed) in zip(rows, points, strict=True):
                where = f"{row['shape']}, batch {row['batch']}"
                axes.annotate(where, (at, speed), textcoords="offset points", xytext=(6, -11), fontsize=8)
    axes.set(xlabel="floating-point operations per byte moved", ylabel="GFLOP/s")
    axes.legend(loc="lower right", frameon=False)
    return _svg(figure)


def point(row: Row, *, learn: bool) -> tuple[float, float]:
    """Operations per byte and GFLOP/s, counting only the necessary operations and bytes."""
    shape = Shape.parse(f"{row['shape']}@{row['batch']}")
    flops = shape.flops(learn=learn)
    return flops / shape.traffic(learn=learn), flops / row["ms"] / 1e6


def _svg(figure: Figure) -> bytes:
    buffer = io.BytesIO()
    with mpl.rc_context({"svg.hashsalt": "ptncn", "svg.fonttype": "none"}):
        FigureCanvasSVG(figure).print_svg(buffer, metadata={"Date": None, "Creator": None})  # type: ignore[no-untyped-call]
    return b"\n".join(line.rstrip() for line in buffer.getvalue().splitlines()) + b"\n"
