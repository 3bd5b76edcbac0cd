"""Check that ranks give the same result as one process, for every rule and optimiser, in float64.

    python benchmarks/scale/equality.py --ranks 2 3 --seeds 1 2 3

Each rank runs each network twice: alone with the whole batch, and together with the other ranks. All predictions are
compared, and at the end all weights, moments and states.

Ranks compute each element of a product as one process does, so results are bit-identical. The exception is a maximum
norm for rows of weights, which is summed over ranks: there, results are equal up to rounding. `growth` then shows how
much of the difference the rule itself causes: it repeats the run in one process with W1 larger by a unit in the last
place.
"""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import json
import os
import time
from typing import Any

import torch
from launch import RESULTS, run_ranks, write

from ptncn import PTNCN
from ptncn.distributed import DataParallel, LayerParallel, Ranks, connect
from ptncn.distributions import DISTRIBUTIONS
from ptncn.network.activations import NAMES
from ptncn.network.config import PRESETS, Config
from ptncn.updates.optimizers import OPTIMIZERS

LIMIT, INPUTS, ROWS = 1e-9, 7, 5
NEEDS: dict[str, dict[str, Any]] = {
    "readout=rls": {"output": "gaussian", "horizons": (1, 3)},
    "credit=trace": {"memory": 3},
    "credit=immediate": {"memory": [3, 0, 2]},
    "temporal_sign=-1": {"temporal_sign": -1},
    "temporal_sign=1": {"temporal_sign": 1},
}
OTHERS: dict[str, dict[str, Any]] = {
    "max_norm=0.2": {"max_norm": 0.2},
    "weight_decay=0.01": {"weight_decay": 0.01},
    "corrections=3": {"corrections": 3},
    "xi=0.1": {"xi": 0.1},
    "biases=False": {"biases": False},
    "first_frame=True": {"first_frame": True},
    "memory=4": {"memory": 4},
    "schedule=root": {"schedule": {"kind": "root", "steps": 50}},
    "error_lr_factor=0.5": {"error_lr_factor": 0.5},
    "batch of one": {"rows": 1},
    "large enough to postpone": {"rows": 1, "sizes": [300, 5, 5]},
}


def cases() -> dict[str, dict[str, Any]]:
    """Each preset, choice, output and activation separately; optimisers with all rules for teaching and errors."""
    every = {f"preset={name}": {"preset": name} for name in PRESETS}
    for option in dataclasses.fields(Config):
        for choice in option.metadata.get("choices", ()):
            name = f"{option.name}={choice}"
            every[name] = {option.name: choice} | NEEDS.get(name, {})
    every |= {f"output={name}": {"output": name} for name in DISTRIBUTIONS}
    every |= {f"activation={name}": {"activation": name} | NEEDS.get(f"activation={name}", {}) for name in NAMES}
    for optimizer in OPTIMIZERS:
        for error, teaching in itertools.product(("temporal", "transpose", "fixed"), ("coupled", "small")):
            options = {"optimizer": optimizer, "error_rule": error, "teaching": teaching, "rescale": "none"}
            every[f"{optimizer}+{error}+{teaching}"] = options | {"reduction": "mean"}
    return every | OTHERS


def make(options: dict[str, Any], seed: int) -> PTNCN:
    own = {name: value for name, value in options.items() if name not in ("rows", "sizes")}
    return PTNCN(INPUTS, options.get("sizes", [9, 6, 5]), **{"output": "bernoulli", **own}, seed=seed, dtype="float64")


def observation(rows: int, step: int, rng: torch.Generator) -> tuple[torch.Tensor, torch.Tensor | None]:
    """The frame of a step, and a mask in the second half of each sequence of 50 steps."""
    x = torch.rand(rows, INPUTS, generator=rng, dtype=torch.float64).round()
    return x, torch.rand(rows, generator=rng) < 0.8 if step % 50 > 25 else None


class Pair:
    """The same network alone and shared, and the batches that both see, some of them masked."""

    def __init__(self, options: dict[str, Any], ranks: Ranks, kind: str, seed: int) -> None:
        self.ranks, self.kind = ranks, kind
        self.rows = options.get("rows", ROWS)
        self.alone, self.again, net = (make(options, seed) for _ in range(3))
        if kind == "layers":
            self.alone.compiled = False
        self.shared: Any = LayerParallel(net, ranks) if kind == "layers" else DataParallel(net, ranks, split=kind)
        self.rng = torch.Generator().manual_seed(seed)
        self.equal_steps = 0
        """The number of steps before the first difference above 1e-9."""

    def difference(self, steps: int) -> float:
        """The largest difference in predictions, weights, moments and states; 0 only if all bits are equal."""
        worst = 0.0
        for step in range(steps):
            if step % 50 == 0:
                state, shared_state = self.alone.begin(self.rows), self.shared.begin(self.rows)
            x, mask = observation(self.rows, step, self.rng)
            expected, got = self.alone.step(x, state, mask=mask).prediction, self._step(x, shared_state, mask)
            worst = worst if got is None else max(worst, apart(expected, got))
            self.equal_steps += worst < LIMIT
        if self.kind == "layers":
            return max(worst, apart(self.alone.snapshot(), self.shared.snapshot()))
        tree = self.shared.snapshot()
        self.shared.restore(tree)
        self.again.restore(tree)  # a snapshot is that of one process
        assert apart(self.again.snapshot(), self.shared.snapshot()) == 0
        states = apart(vars(state), vars(shared_state))
        return max(worst, states, apart(written(self.alone.snapshot()), written(tree)))

    def _step(self, x: torch.Tensor, state: Any, mask: torch.Tensor | None) -> torch.Tensor | None:
        if self.kind == "layers":
            prediction: torch.Tensor | None
            prediction = self.shared.step(x if self.ranks.rank == 0 else None, state, mask=mask)
            assert (prediction is None) == (self.ranks.rank > 0)
            return prediction
        own = self.shared.rows(self.rows)
        out = self.shared.step(x[own], state, mask=None if mask is None else mask[own])
        got: torch.Tensor = out.prediction
        return got


def written(tree: dict[str, Any]) -> dict[str, Any]:
    """A snapshot with all postponed updates applied to the weights."""
    weights = dict(tree["weights"])
    for name, (pre, post) in tree["postponed"].items():
        weights[name] = weights[name] + pre.T @ post if len(pre) else weights[name]
    return {**tree, "weights": weights}


def apart(one: Any, other: Any) -> float:
    if isinstance(one, dict):
        assert one.keys() == other.keys()
        return max((apart(one[name], other[name]) for name in one.keys() - {"postponed", "generator"}), default=0.0)
    if isinstance(one, torch.Tensor):
        assert one.shape == other.shape
        return float((one.double() - other.double()).abs().max()) if one.numel() else 0.0
    assert one == other, (one, other)
    return 0.0


def unfit_for_layers(options: dict[str, Any]) -> bool:
    """Whether layers on ranks cannot run a case: they support neither least squares nor shared random numbers."""
    return options.get("readout") == "rls" or options.get("activation") == "bernoulli"


def as_rank(arguments: argparse.Namespace) -> None:
    """One process group for all cases; each rank prints its own differences."""
    torch.set_num_threads(1)
    every = cases()
    with connect() as ranks:
        for name, kind in itertools.product(arguments.cases or every, arguments.kinds):
            if kind == "layers" and (ranks.size > 3 or unfit_for_layers(every[name])):
                continue
            pair = Pair(every[name], ranks, kind, arguments.seeds[0])
            far = pair.difference(arguments.steps)
            print(json.dumps([name, kind, far, pair.equal_steps]), flush=True)


def growth(options: dict[str, Any], seed: int, steps: int) -> float:
    """The difference between two runs in one process if W1 differs by a unit in the last place."""
    nets = [make(options, seed) for _ in range(2)]
    nets[1].get_parameter("W1").mul_(1 + 2**-52)
    rows, worst, rng = options.get("rows", ROWS), 0.0, torch.Generator().manual_seed(seed)
    for step in range(steps):
        if step % 50 == 0:
            states = [net.begin(rows) for net in nets]
        x, mask = observation(rows, step, rng)
        one, other = (net.step(x, state, mask=mask).prediction for net, state in zip(nets, states, strict=True))
        worst = max(worst, apart(one, other))
    return worst


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, nargs="+", default=[2, 3])
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--kinds", nargs="+", default=["rows", "units", "layers"])
    parser.add_argument("--cases", nargs="+", help="names of cases; default: all")
    arguments = parser.parse_args()
    if "RANK" in os.environ:
        as_rank(arguments)
        return
    path = RESULTS / "equality.json"
    record: dict[str, Any] = {"steps": arguments.steps, "runs": {}}
    if path.exists() and json.loads(path.read_text())["steps"] == arguments.steps:
        record["runs"] = json.loads(path.read_text())["runs"]
    for count, seed in itertools.product(arguments.ranks, arguments.seeds):
        chosen = ["--steps", str(arguments.steps), "--seeds", str(seed), "--kinds", *arguments.kinds]
        chosen += ["--cases", *arguments.cases] if arguments.cases else []
        began = time.monotonic()
        lines = [line for rank in run_ranks(count, __file__, *chosen) for line in rank]
        for kind in arguments.kinds:
            about = {"ranks": count, "kind": kind, "seed": seed}
            run = about | summary([line for line in lines if line[1] == kind], seed, arguments.steps)
            record["runs"][f"{count} ranks, {kind}, seed {seed}"] = run
            print(json.dumps(run))
        print(f"{time.monotonic() - began:.0f} s", flush=True)
        if not arguments.cases:
            write("equality", record)


def summary(lines: list[tuple[str, str, float, int]], seed: int, steps: int) -> dict[str, Any]:
    """How many cases are bit-identical; for the others, the largest difference over all ranks, and that of `growth`."""
    far: dict[str, float] = {}
    for name, _, difference, _ in lines:
        far[name] = max(difference, far.get(name, 0.0))
    every, apart_at_all = cases(), sorted(name for name, difference in far.items() if difference != 0)
    return {
        "cases": len(far),
        "equal_bits": len(far) - len(apart_at_all),
        "above_limit": [name for name in apart_at_all if not far[name] < LIMIT],
        "differences": {
            name: {"ranks": far[name], "one_process_and_a_unit_in_the_last_place": growth(every[name], seed, steps)}
            for name in apart_at_all
        },
    }


if __name__ == "__main__":
    main()
