"""A picture of each stream with its forecasts, their bounds and its alarms: docs/figures/stream-*.svg.

    python benchmarks/stream_pictures.py

Each stream goes through `ptncn stream` with its defaults and a horizon of 12. ETT and exchange rates come from
`$PTNCN_DATA/streams`.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

import ptncn.streaming
from forecasts import NAMES, load
from ptncn.report.model import canvas, for_page, legend_below, save, theme

FIGURES = Path(__file__).resolve().parents[1] / "docs/figures"
PICTURED = [name for name in NAMES if name != "approval + polls"]
AHEAD, SHOWN = 12, 240
"""How many steps ahead forecasts are, and how many of the last rows are shown."""


def file_name(stream: str) -> str:
    return f"stream-{stream.lower().replace(' ', '-')}.svg"


def draw(stream: str) -> None:
    values, _ = load(stream)
    outs = list(ptncn.streaming.Stream(([value] for value in values), horizon=AHEAD))
    rows = np.arange(max(AHEAD + 1, len(values) - SHOWN), len(values))
    made = [outs[t - AHEAD] for t in rows]
    mean, lower, upper = (
        np.array([part[-1]["x0"] for part in parts])
        for parts in (
            [out.forecast for out in made],
            [out.lower for out in made],
            [out.upper for out in made],
        )
    )
    alarms = [t for t in rows if outs[t].alarm]
    with theme():
        figure, axes = canvas(height=3.2, nrows=2, sharex=True, height_ratios=(3, 1))
        axes[0].fill_between(rows, lower, upper, alpha=0.2, linewidth=0, label="90 % bounds")
        axes[0].plot(rows, values[rows], linewidth=1.0, label="values")
        axes[0].plot(rows, mean, linewidth=1.0, label=f"forecast {AHEAD} steps before")
        axes[0].plot(alarms, values[alarms], "v", markersize=5, label="alarms")
        axes[0].set(title=stream)
        axes[1].vlines(rows, 0, [outs[t].anomaly or 0.0 for t in rows], linewidth=1.0)
        axes[1].plot(alarms, [outs[t].anomaly or 0.0 for t in alarms], "v", markersize=5)
        axes[1].set(xlabel="row", ylabel="anomaly", ylim=(0, 1))
        legend_below(figure, axes[0], columns=2)
        picture = save(figure, file_name(stream).removesuffix(".svg"))
    (FIGURES / file_name(stream)).write_bytes(for_page(picture.svg))


def main() -> None:
    for stream in PICTURED:
        draw(stream)


if __name__ == "__main__":
    main()
