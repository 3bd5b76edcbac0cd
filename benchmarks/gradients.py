"""Measure the exactness of RTRL, the noise of UORO and KF-RTRL, and the cost of each, in one record.

    python benchmarks/gradients.py results/gradient/forward-mode.json
    python benchmarks/gradients.py results/gradient/rivals.json rivals

The second command measures rules that keep only part of the influence, and exact RTRL for diagonal cells. Both take a
few minutes on one core. docs/forward-mode.md explains the numbers.
"""

from __future__ import annotations

import json
import platform
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

import ptncn
from ptncn.learners import make
from ptncn.learners.rtrl import RTRL
from ptncn.metrics import bytes_of
from ptncn.metrics.cost import GradientMeter

CELLS = [("rnn", 1), ("lstm", 1), ("gru", 1), ("rhn", 1), ("rhn", 3)]


def frames(steps: int, batch_size: int, input_size: int, seed: int = 0) -> Tensor:
    """(T, B, n) mixtures of two sines of different phases and speeds, in [0, 1]."""
    draw = torch.Generator().manual_seed(seed)
    speed = 0.1 + torch.rand(2, 1, batch_size, input_size, generator=draw, dtype=torch.float64)
    phase = 6.28 * torch.rand(2, 1, batch_size, input_size, generator=draw, dtype=torch.float64)
    t = torch.arange(steps, dtype=torch.float64)[:, None, None]
    return 0.5 + 0.25 * torch.sin(speed * t + phase).sum(0)


def bptt(learner: Any, xs: Tensor, masks: Tensor) -> dict[str, Tensor]:
    """The gradient of the summed loss by autograd over the unrolled sequence."""
    batch_size = xs.shape[1]
    hidden, seen, loss = learner.cell.begin(batch_size), torch.zeros(batch_size).bool(), 0.0
    for x, mask in zip(xs, masks, strict=True):
        surprise = learner.output.nll(learner.readout(hidden[0]), x)
        loss = loss + torch.where(seen & mask, surprise, 0.0).sum() / batch_size
        moved = learner.cell(x, hidden)
        hidden = tuple(torch.where(mask[:, None], new, old) for new, old in zip(moved, hidden, strict=True))
        seen = seen | mask
    names, weights = zip(*learner.named_parameters(), strict=True)
    return dict(zip(names, torch.autograd.grad(loss, weights), strict=True))


def exactness(cell: str, depth: int, **options: Any) -> dict[str, Any]:
    """The largest difference between RTRL's summed gradient and BPTT's: 30 steps, 4 rows, masks at random."""
    learner: Any = make(f"{cell}-rtrl", input_size=5, hidden_size=10, depth=depth, dtype="float64", **options)
    xs = frames(30, 4, 5)
    masks = torch.rand(30, 4, generator=torch.Generator().manual_seed(1)) < 0.7
    state, total = learner.begin(4), {name: torch.zeros_like(w) for name, w in learner.named_parameters()}
    for t, (x, mask) in enumerate(zip(xs, masks, strict=True)):
        total = {name: total[name] + g for name, g in learner.gradient(x, state, mask).items()}
        learner.step(x, state, learn=t == 0, mask=mask)
    exact = bptt(learner, xs, masks)
    worst = max(float((total[name] - exact[name]).detach().abs().max()) for name in exact)
    return {"cell": cell, "depth": depth, "largest_difference": worst}


def row_estimates(adjoint: Tensor, state: Any) -> Tensor:
    """(B, P) each row's gradient, from the factors in its state."""
    if hasattr(state, "influence"):
        parts = [torch.einsum("bh,bhqm->bqm", adjoint, influence[:, 0]) for influence in state.influence]
    elif hasattr(state, "tangent"):
        scale = (adjoint * state.tangent[:, 0]).sum(1)
        parts = [scale[:, None, None] * weights for weights in state.weights]
    else:
        factors = zip(state.vectors, state.matrices, strict=True)
        parts = [torch.einsum("bh,bhq,bm->bqm", adjoint, A[:, 0], u) for u, A in factors]
    return torch.cat([part.flatten(1) for part in parts], dim=1).detach()


def last_gradients(kind: str, depth: int, hidden_size: int, steps: int, draws: int, seed: int) -> Tensor:
    """(draws, P) the recurrent gradient of the last of `steps` frames with fixed weights; every row is a draw."""
    learner: Any = make(kind, input_size=5, hidden_size=hidden_size, depth=depth, dtype="float64")
    learner.generator.manual_seed(seed)
    state = learner.begin(draws)
    xs = frames(steps, 1, 5).expand(-1, draws, -1)
    for t, x in enumerate(xs[:-1]):
        learner.step(x, state, learn=t == 0)
    error = learner.predict(state) - xs[-1]
    return row_estimates(error @ learner.readout.weight, state)


def noise(cell: str, depth: int, rule: str, hidden_size: int, steps: int, draws: int) -> dict[str, Any]:
    """Bias in standard errors, and variance in squared lengths of the exact gradient.

    `projection` is the mean of draw · exact / exact · exact: 1 for an unbiased rule.
    """
    exact = last_gradients(f"{cell}-rtrl", depth, hidden_size, steps, 1, 0)[0]
    count, total, squares, along, projections = 0, torch.zeros_like(exact), torch.zeros_like(exact), [], []
    while count < draws:
        rows = last_gradients(f"{cell}-{rule}", depth, hidden_size, steps, min(500, draws - count), 1000 + count)
        count, total, squares = count + len(rows), total + rows.sum(0), squares + rows.square().sum(0)
        along.append(torch.nn.functional.cosine_similarity(rows, exact[None]))
        projections.append(rows @ exact / exact.square().sum())
    mean, projection = total / count, torch.cat(projections)
    variance = (squares / count - mean.square()) * count / (count - 1)
    z = (mean - exact) / (variance / count).sqrt().clamp_min(1e-15)
    return {
        "cell": cell,
        "depth": depth,
        "rule": rule,
        "hidden_size": hidden_size,
        "steps": steps,
        "draws": count,
        "projection": float(projection.mean()),
        "projection_error": float(projection.std() / count**0.5),
        "largest_z": float(z.abs().max()),
        "coordinates": len(z),
        "relative_variance": float(variance.sum() / exact.square().sum()),
        "cosine_of_one_draw": float(torch.cat(along).mean()),
    }


def while_learning(kind: str, seeds: int = 5, **options: Any) -> dict[str, Any]:
    """Run the gradient meter on a cell of 16 units that learns sine mixtures: 4 rows, 100 steps, five seeds."""
    cosines, ratios = [], []
    for seed in range(seeds):
        meter = GradientMeter(make(kind, input_size=5, hidden_size=16, seed=seed, output="bernoulli", **options))
        state = meter.begin(4)
        for x in frames(100, 4, 5, seed=seed).float():
            meter.step(x, state)
        meter.end(state)
        measured = meter.compute()
        cosines.append(measured["cosine"])
        ratios.append(measured["norm_ratio"])
    return {
        "kind": kind,
        "options": options,
        "cosine": statistics.mean(cosines),
        "cosine_sd_over_seeds": statistics.stdev(cosines),
        "norm_ratio": statistics.mean(ratios),
    }


def cost(kind: str, input_size: int, hidden_size: int, batch_size: int) -> dict[str, Any]:
    """Shortest time of a learning step in float32, and bytes of state."""
    learner: Any = make(kind, input_size=input_size, hidden_size=hidden_size)
    state, seconds = learner.begin(batch_size), []
    for x in frames(20, batch_size, input_size).float():
        start = time.perf_counter()
        learner.step(x, state)
        seconds.append(time.perf_counter() - start)
    return {
        "kind": kind,
        "input_size": input_size,
        "hidden_size": hidden_size,
        "batch_size": batch_size,
        "milliseconds": 1000 * min(seconds[1:]),
        "state_bytes": bytes_of(state),
    }


def needs(cell: str, hidden_size: int, input_size: int, batch_size: int) -> dict[str, Any]:
    """Bytes of exact RTRL's influence in float32, at a size used in the paper."""
    size = RTRL.required_bytes(cell, input_size, hidden_size, batch_size)
    return {"cell": cell, "hidden_size": hidden_size, "input_size": input_size, "batch_size": batch_size, "bytes": size}


def record() -> dict[str, Any]:
    rules = ("uoro", "kf-rtrl")
    return {
        "exactness": [exactness(*cell) for cell in CELLS],
        "noise_by_cell": [noise(*cell, rule, 8, 20, 50_000) for cell in CELLS for rule in rules],
        "noise_by_size": [noise("rnn", 1, rule, H, 20, 4000) for H in (4, 8, 16, 32, 64) for rule in rules],
        "noise_by_length": [noise("lstm", 1, rule, 8, T, 10_000) for T in (5, 20, 80, 320) for rule in rules],
        "while_learning": [
            while_learning("lstm-rtrl"),
            while_learning("lstm-kf-rtrl"),
            while_learning("lstm-uoro"),
            while_learning("lstm-tbptt", window=5, stride=5),
            while_learning("lstm-tbptt", window=25, stride=25),
            while_learning("lstm-tbptt", window=5, stride=1),
            while_learning("lstm-tbptt", window=25, stride=1),
        ],
        "cost": [cost(f"lstm-{rule}", 50, H, 1) for H in (16, 32, 64, 128) for rule in ("rtrl", *rules)],
        "needs": [needs(*size) for size in (("lstm", 1000, 4096, 1), ("lstm", 1000, 4096, 20), ("rnn", 2000, 4096, 20))]
        + [needs("lstm", 1000, 50, 50)],
    }


def rivals() -> dict[str, Any]:
    return {
        "exactness": [exactness("elstm", 1), exactness("lru", 1)],
        "while_learning": [
            *(while_learning(f"lstm-{rule}") for rule in ("rtrl", "snap1", "e-prop", "immediate")),
            while_learning("lstm-e-prop", feedback="random"),
            *(while_learning(f"{cell}-{rule}") for cell in ("gru", "rnn") for rule in ("snap1", "immediate")),
            while_learning("rnn-rflo", feedback="symmetric"),
            while_learning("rnn-rflo"),
            while_learning("elstm-rtrl"),
            *(while_learning("lru-rtrl", layers=layers) for layers in (1, 2, 3)),
        ],
    }


def main(path: str, what: str = "") -> None:
    torch.set_num_threads(1)
    start = time.perf_counter()
    content = {
        "command": f"python benchmarks/gradients.py {path} {what}".strip(),
        "versions": {"ptncn": ptncn.__version__, "torch": torch.__version__, "python": platform.python_version()},
        "threads": 1,
        **(rivals() if what == "rivals" else record()),
    }
    content["seconds"] = round(time.perf_counter() - start, 1)
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
