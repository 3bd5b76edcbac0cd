"""Learn for ten million steps at default settings from a stream that drifts: no NaN, no slow-down, no growth of memory.

After each block a new learner also takes some steps, to distinguish a busy machine from a learner that has slowed down.
`--work` stores the learner after each block, so that an interrupted run can continue.
"""

from __future__ import annotations

import json
import statistics
import time
from pathlib import Path
from typing import Any

import torch
from common import parser, record
from torch import Tensor

import ptncn
from ptncn.streaming import default_learner
from ptncn.system import resident_memory

COLUMNS = 4
BLOCK = 100_000
FRESH = 5_000
"""Steps of a fresh learner after each block."""
REGIME = 250_000
"""Steps after which the periods, levels and noise of the stream change."""


def feed(start: int, count: int, seed: int) -> Tensor:
    """(count, 1, COLUMNS) sines of about unit size, different ones in each regime."""
    t = torch.arange(start, start + count, dtype=torch.float64)[:, None]
    parts = []
    for regime in range(start // REGIME, (start + count - 1) // REGIME + 1):
        draw = torch.Generator().manual_seed(seed * 1_000_003 + regime)
        period = 5 + 200 * torch.rand(COLUMNS, generator=draw)
        level = 2 * torch.rand(COLUMNS, generator=draw) - 1
        noise = 0.3 * torch.rand(COLUMNS, generator=draw)
        own = t[(t[:, 0] // REGIME) == regime]
        drawn = torch.randn(len(own), COLUMNS, generator=draw.manual_seed(start + regime))
        parts.append(level + torch.sin(2 * torch.pi * own / period) + noise * drawn)
    return torch.cat(parts).float()[:, None]


def take(learner: Any, state: Any, xs: Tensor) -> tuple[float, float]:
    """Processor seconds per step, and the mean squared error."""
    step, total, start = learner.step, 0.0, time.process_time()
    last = None
    for index, x in enumerate(xs):
        last = step(x, state)
        if index % 100 == 0:
            total += float(last.errors[0].square().mean())
    return (time.process_time() - start) / len(xs), total / (len(xs) / 100)


def run(count: int, seed: int, work: Path) -> list[dict[str, Any]]:
    saved, log = work / "learner.ckpt", work / "blocks.json"
    if saved.exists():
        learner, state, blocks = ptncn.load(saved)
    else:
        learner, blocks = default_learner(COLUMNS), []
        state = learner.begin(1)
    while len(blocks) * BLOCK < count:
        start = len(blocks) * BLOCK
        xs = feed(start, BLOCK, seed)
        seconds, error = take(learner, state, xs)
        young = default_learner(COLUMNS)
        fresh, _ = take(young, young.begin(1), xs[:FRESH])
        finite = all(bool(weight.isfinite().all()) for weight in learner.state_dict().values())
        blocks.append(
            {
                "steps": start + BLOCK,
                "microseconds": round(1e6 * seconds, 2),
                "fresh_microseconds": round(1e6 * fresh, 2),
                "megabytes": round(resident_memory() / 1e6, 1),
                "finite": finite,
                "mse": round(error, 5),
            }
        )
        ptncn.save(saved, learner, state, blocks)
        log.write_text(json.dumps(blocks[-1]) + "\n")
    return blocks


def main() -> None:
    arguments = parser(__doc__, 10_000_000)
    arguments.add_argument(
        "--work", type=Path, default=Path("build") / "endurance", help="folder for intermediate results"
    )
    options = arguments.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    started = time.time()
    blocks = run(options.count, options.seed, options.work)
    tenth = max(1, len(blocks) // 10)
    ratios = [block["microseconds"] / block["fresh_microseconds"] for block in blocks]
    summary = {
        "steps": blocks[-1]["steps"],
        "finite": all(block["finite"] for block in blocks),
        "slow_down": round(statistics.median(ratios[-tenth:]) / statistics.median(ratios[:tenth]), 3),
        "megabytes_first_tenth": statistics.median(block["megabytes"] for block in blocks[:tenth]),
        "megabytes_last_tenth": statistics.median(block["megabytes"] for block in blocks[-tenth:]),
        "microseconds_a_step": statistics.median(block["microseconds"] for block in blocks),
        "mse_first_tenth": round(statistics.mean(block["mse"] for block in blocks[:tenth]), 4),
        "mse_last_tenth": round(statistics.mean(block["mse"] for block in blocks[-tenth:]), 4),
        "blocks": blocks[:: max(1, len(blocks) // 20)],
    }
    record("endurance", options, summary, started)


if __name__ == "__main__":
    main()
