"""Ten million steps of recursive least squares with fast forgetting: does P stay bounded and symmetric?

    python benchmarks/rls_endurance.py results/stability/rls.json --steps 10000000

Features are in turn active, zero, and active in one direction only, in which case forgetting diverges unless the prior
is restored. This takes an hour or two on one core.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ptncn.updates.rls import absorb, reminder

FEATURES, PHASE = 8, 5_000


def features(step: int, noise: Tensor) -> Tensor:
    """(1, F) the features of one step; phases of `PHASE` steps take turns."""
    phase = step // PHASE % 3
    if phase == 1:
        return torch.zeros(1, FEATURES, dtype=torch.float64)
    return noise if phase == 0 else noise[:, :1] * torch.ones(1, FEATURES, dtype=torch.float64)


def endure(steps: int, forgetting: float, ridge: float) -> dict[str, Any]:
    rng = torch.Generator().manual_seed(0)
    P = torch.eye(FEATURES, dtype=torch.float64) / ridge
    W, truth = torch.zeros(FEATURES, 1, dtype=torch.float64), torch.linspace(-1, 1, FEATURES, dtype=torch.float64)
    largest = asymmetry = worst = 0.0
    noises = torch.empty(0)
    for step in range(steps):
        if step % 10_000 == 0:
            noises = torch.randn(10_000, 1, FEATURES, generator=rng, dtype=torch.float64)
        row = features(step, noises[step % 10_000])
        target = row @ truth[:, None]
        worst = max(worst, abs(float(target - row @ W))) if step > PHASE else worst
        rows = torch.cat([row, reminder(P, ridge, forgetting, step)])
        wanted = torch.cat([target, torch.zeros(1, 1, dtype=torch.float64)])
        W += absorb(P, rows, forgetting, step) @ (wanted - rows @ W)
        if step % 1000 == 0:
            largest = max(largest, float(torch.linalg.matrix_norm(P, 2)))
            asymmetry = max(asymmetry, float((P - P.T).abs().max()))
            if not math.isfinite(largest):
                break
    return {
        "steps": step + 1,
        "forgetting": forgetting,
        "ridge": ridge,
        "largest_P": largest,
        "prior_P": 1 / ridge,
        "largest_asymmetry": asymmetry,
        "largest_error": worst,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path", type=Path)
    parser.add_argument("--steps", type=int, default=10_000_000)
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    start = time.perf_counter()
    content = endure(chosen.steps, forgetting=0.99, ridge=1.0)
    content["command"] = f"python benchmarks/rls_endurance.py {chosen.path} --steps {chosen.steps}"
    content["seconds"] = round(time.perf_counter() - start, 1)
    chosen.path.parent.mkdir(parents=True, exist_ok=True)
    chosen.path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(content))


if __name__ == "__main__":
    main()
