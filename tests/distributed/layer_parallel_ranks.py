"""A rank that compares, case by case, a network whose layers are on several ranks with one that it runs by itself."""

from __future__ import annotations

import json
import sys

import torch
from data_parallel_ranks import CASES

from ptncn import PTNCN
from ptncn.distributed import LayerParallel, Ranks, connect


def equal(options: dict, steps: int, seed: int, ranks: Ranks) -> bool:
    """Whether weights, moments, statistics and predictions are the same to the bit after so many steps."""
    options = {"output": "bernoulli", **options, "seed": seed}
    alone, shared = PTNCN(7, [9, 6, 5], **options), LayerParallel(PTNCN(7, [9, 6, 5], **options), ranks)
    alone.compiled = False
    chance = torch.Generator().manual_seed(seed)
    rows, same = 5, True
    for step in range(steps):
        if step % 20 == 0:
            state, shared_state = alone.begin(rows), shared.begin(rows)
        x = torch.rand(rows, 7, generator=chance).round()
        mask = torch.rand(rows, generator=chance) < 0.8 if step % 20 > 10 else None
        out = alone.step(x, state, mask=mask)
        prediction = shared.step(x if ranks.rank == 0 else None, shared_state, mask=mask)
        same &= (prediction is None) == (ranks.rank > 0)
        same &= prediction is None or prediction.equal(out.prediction)
    return same and identical(alone.snapshot(), shared.snapshot())


def identical(one: object, other: object) -> bool:
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(identical(one[name], other[name]) for name in one)
    if isinstance(one, tuple):
        return all(identical(*pair) for pair in zip(one, other, strict=True))
    return one.equal(other) if isinstance(one, torch.Tensor) else one == other


if __name__ == "__main__":
    steps, seed = int(sys.argv[1]), int(sys.argv[2])
    with connect() as ranks:
        for name, options in CASES.items():
            if options.get("readout") != "rls":
                print(json.dumps([name, equal(options, steps, seed, ranks)]), flush=True)
