"""How far kernel and PyTorch drift apart at a large step size, and whether a change in the last bit does the same.

Three networks in double precision learn from the same random frames: one with the kernel, one in PyTorch, and one in
PyTorch with initial weights that differ by a unit in the last place. If the first two drift apart no faster than the
last two, the dynamics amplify rounding errors, and no two orders of summation agree after enough steps. A fourth
network takes each step from the kernel's current state, which shows the difference added by one step.

Adafactor, which drifts apart fastest, is also run from eight seeds in both precisions, and its rate of growth is
measured. If the difference is amplified rounding, it grows by the same factor per step in both precisions, starting
from the rounding error of each.
"""

from __future__ import annotations

import math
import time
from typing import Any

import torch
from common import parser, record

from ptncn import PTNCN
from ptncn.updates import OPTIMIZERS

LR = 0.035
SHOWN = (10, 50, 100, 200)
SEEDS, EARLY = 8, (10, 20, 30, 40)


def distance(one: PTNCN, other: PTNCN) -> float:
    pairs = zip(one.state_dict().values(), other.state_dict().values(), strict=True)
    return max(((a - b).abs().max() / (1 + b.abs().max())).item() for a, b in pairs)


def drift(
    optimizer: str, steps: int, seed: int, shown: tuple[int, ...] = SHOWN, dtype: torch.dtype = torch.float64
) -> dict[str, Any]:
    kernel, plain, nudged, follower = (
        PTNCN(8, [20, 10], optimizer=optimizer, lr=LR, dtype=dtype, seed=seed) for _ in range(4)
    )
    rng = torch.Generator().manual_seed(seed)
    for network in (plain, nudged, follower):
        network.compiled = False
    for weight in nudged.parameters():
        weight.data.mul_(1 + torch.finfo(dtype).eps * torch.randint(-1, 2, weight.shape, generator=rng).to(dtype))
    networks = (kernel, plain, nudged)
    states = [network.begin(1) for network in networks]
    results: dict[str, Any] = {"one_step": 0.0, "kernel": {}, "nudged": {}}
    for number in range(1, steps + 1):
        x = torch.rand(1, 8, generator=rng, dtype=torch.float64).to(dtype)
        follower.restore(kernel.snapshot())
        start = states[0].clone()
        for network, state in zip(networks, states, strict=True):
            network.step(x, state)
        follower.step(x, start)
        results["one_step"] = max(results["one_step"], distance(kernel, follower))
        if number in shown:
            results["kernel"][str(number)] = distance(kernel, plain)
            results["nudged"][str(number)] = distance(nudged, plain)
    return results


def drift_in_both_precisions(optimizer: str, seed: int) -> dict[str, Any]:
    """Over several seeds: geometric means of the distances, the largest after the last step, and growth per step."""
    results: dict[str, Any] = {"optimizer": optimizer, "seeds": SEEDS}
    for dtype in (torch.float32, torch.float64):
        runs = [drift(optimizer, EARLY[-1], seed + number, EARLY, dtype) for number in range(SEEDS)]
        own: dict[str, Any] = {"one_step": max(run["one_step"] for run in runs)}
        for who in ("kernel", "nudged"):
            means = [math.exp(sum(math.log(run[who][str(at)]) for run in runs) / SEEDS) for at in EARLY]
            own[who] = {str(at): mean for at, mean in zip(EARLY, means, strict=True)}
            own[f"{who}_largest"] = max(run[who][str(EARLY[-1])] for run in runs)
            own[f"{who}_growth"] = (means[-1] / means[0]) ** (1 / (EARLY[-1] - EARLY[0]))
        results[str(dtype).removeprefix("torch.")] = own
    return results


def main() -> None:
    options = parser(__doc__, max(SHOWN)).parse_args()
    started = time.time()
    results = {name: drift(name, options.count, options.seed) for name in OPTIMIZERS}
    both = drift_in_both_precisions("adafactor", options.seed)
    record("divergence", options, {"lr": LR, "optimizers": results, "precisions": both}, started)


if __name__ == "__main__":
    main()
