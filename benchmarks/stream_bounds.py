"""How often the bounds of forecasts contain the value, on simulated streams that switch: bounds.json.

    python benchmarks/stream_bounds.py    # results/streams/bounds.json

Every 2,500 rows a stream switches its noise, season or level, as described by its name. Shares are computed in blocks
of 1,000 rows, by the time at which forecasts were made; the first 1,000 rows do not count. The rates at which bounds
adapt were chosen on the seeds 0 to 3, 100 to 111 and 200 to 211; other seeds are measured.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np

from ptncn.streaming.forecaster import Forecaster, default_setting

ROOT = Path(__file__).resolve().parents[1]
RECORD = ROOT / "results/streams/bounds.json"
HORIZONS, ROWS, BLOCK, SWITCH = (1, 12, 24), 9024, 1000, 2500
SEEDS = (10, 11, 12)


def simulate(seed: int) -> dict[str, np.ndarray]:
    draw, t = np.random.default_rng(seed), np.arange(ROWS)
    other, normal = t // SWITCH % 2, draw.normal(size=ROWS)
    slow = np.zeros(ROWS)
    for i in range(1, ROWS):
        slow[i] = 0.8 * slow[i - 1] + draw.normal()
    two = np.sin(2 * np.pi * t / 13) + np.sin(2 * np.pi * t / 5)
    week = 1 + 0.3 * np.sin(2 * np.pi * t / 168)
    return {
        "noise, three times as strong": np.where(other, 3, 1) * normal,
        "season, another one": np.where(other, np.sin(2 * np.pi * t / 25), two) + 0.2 * draw.normal(size=ROWS),
        "level, 6 spreads off": slow + 10 * other,
        "random walk": np.cumsum(draw.normal(size=ROWS)),
        "random walk, four times as quick": np.cumsum(np.where(other, 4, 1) * draw.normal(size=ROWS)),
        "random walk, heavy tails": np.cumsum(draw.standard_t(3, ROWS)),
        "day and week": 5 * np.sin(2 * np.pi * t / 24) * week + slow,
    }


def measure(values: np.ndarray, level: float) -> dict[str, dict[str, object]]:
    """For each horizon, the share of values within the bounds, block by block, and the mean width of the bounds as a
    share of the constant width that would, in hindsight, have contained as many."""
    forecaster = Forecaster(default_setting(1, HORIZONS[-1], 0, level=level))
    made = forecaster.observe(values[:, None].copy(), rows=np.zeros(len(values), dtype=np.int64))
    results: dict[str, dict[str, object]] = {}
    for h in HORIZONS:
        at = np.arange(BLOCK, (len(values) - h) // BLOCK * BLOCK)
        y, lower, upper = values[at + h], made.lower[at, 0, h - 1], made.upper[at, 0, h - 1]
        inside = (lower <= y) & (y <= upper)
        constant = 2 * np.quantile(np.abs(y - made.mean[at, 0, h - 1]), level)
        results[str(h)] = {
            "blocks": [round(float(block.mean()), 4) for block in inside.reshape(-1, BLOCK)],
            "width": round(float((upper - lower).mean() / constant), 3),
        }
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--level", type=float, default=0.9)
    parser.add_argument("--out", type=Path, default=RECORD)
    options = parser.parse_args()
    streams: dict[str, list[dict[str, dict[str, object]]]] = {}
    for seed in SEEDS:
        for name, values in simulate(seed).items():
            streams.setdefault(name, []).append(measure(values, options.level))
    record = {"command": "python benchmarks/stream_bounds.py", "level": options.level, "streams": streams}
    options.out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
