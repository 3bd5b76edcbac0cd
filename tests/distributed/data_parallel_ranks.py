"""A rank that compares, case by case, a network that the ranks share with one that it runs by itself."""

from __future__ import annotations

import json
import sys

import torch

from ptncn import PTNCN
from ptncn.distributed import DataParallel, Ranks, connect

CASES = {
    "paper": {},
    "paper with moments": {"optimizer": "adam", "lr": 0.001, "rescale": "clip", "max_norm": 0.4},
    "authors": {"preset": "authors", "xi": 0.1, "lr": 0.02},
    "best": {"preset": "best", "displacement_decay": 0.9, "lr": 0.003},
    "fixed errors": {"error_rule": "fixed", "optimizer": "momentum", "lr": 0.002, "weight_decay": 0.01},
    "z teaches": {"presynaptic": "z", "optimizer": "adafactor", "corrections": 2, "lr": 0.01, "teaching": "small"},
    "projected": {"max_norm": 0.2, "prediction_error": "e_z", "output": "categorical"},
    "traced memory": {"memory": 3, "optimizer": "rmsprop", "lr": 0.002, "rescale": "none"},
    "immediate memory": {"memory": [3, 0, 2], "credit": "immediate", "teaching": "small"},
    "least squares": {"readout": "rls", "horizons": (1, 3), "output": "gaussian", "error_rule": "transpose"},
}


def difference(options: dict, split: str, steps: int, seed: int, ranks: Ranks) -> float:
    """The largest difference in weights, moments, states and predictions after so many steps of masked batches."""
    options = {"output": "bernoulli", **options, "seed": seed, "dtype": "float64"}
    alone, shared = PTNCN(7, [9, 6, 5], **options), DataParallel(PTNCN(7, [9, 6, 5], **options), ranks, split=split)
    chance = torch.Generator().manual_seed(seed)
    rows, worst = 5, 0.0
    for step in range(steps):
        if step % 50 == 0:
            state, shared_state = alone.begin(rows), shared.begin(rows)
        x = torch.rand(rows, 7, generator=chance, dtype=torch.float64).round()
        mask = torch.rand(rows, generator=chance) < 0.8 if step % 50 > 25 else None
        own = shared.rows(rows)
        out = alone.step(x, state, mask=mask)
        shared_out = shared.step(x[own], shared_state, mask=None if mask is None else mask[own])
        worst = max(worst, float((out.prediction - shared_out.prediction).abs().max()))
        assert out.scored.equal(shared_out.scored)
    tree = shared.snapshot()
    shared.restore(tree)
    again = PTNCN(7, [9, 6, 5], **options)
    again.restore(tree)
    assert far_apart(again.snapshot(), shared.snapshot()) == 0
    return max(worst, far_apart(alone.snapshot(), tree), far_apart(vars(state), vars(shared_state)))


def far_apart(one: object, other: object) -> float:
    if isinstance(one, dict):
        assert one.keys() == other.keys()
        names = one.keys() - {"postponed", "generator"}
        return max((far_apart(one[name], other[name]) for name in names), default=0.0)
    if isinstance(one, torch.Tensor) and one.numel():
        return float((one.double() - other.double()).abs().max())
    assert isinstance(one, torch.Tensor) or one == other, (one, other)
    return 0.0


if __name__ == "__main__":
    steps, seed, *names = sys.argv[1:]
    with connect() as ranks:
        for name in names or CASES:
            for split in ("rows", "units"):
                far = difference(CASES[name], split, int(steps), int(seed), ranks)
                print(json.dumps([name, split, far]), flush=True)
