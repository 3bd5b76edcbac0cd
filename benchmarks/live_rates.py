"""Choose the step sizes of the live page's learners, on worlds that the page does not show: `results/live/rates.json`.

    OMP_NUM_THREADS=1 nice -n 5 python benchmarks/live_rates.py

Both learners get the same search: the same step sizes, and two values of one more option each, which is how strongly
the P-TNCN corrects its states and how often the LSTM updates its weights. A run lasts as long as a minute of the page,
half with digits and half with letters, and has a different seed from the page's. The setting with the lowest mean error
over all frames is chosen.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import statistics
from pathlib import Path
from typing import Any

import torch

from ptncn.demo.simulate import LSTM, PIXELS, PTNCN, count_weights
from ptncn.learners import make
from ptncn.live.objects import World
from ptncn.live.pair import FIXED, UNITS, equal_units

ROOT = Path(__file__).resolve().parents[1]
RATES = (3e-4, 6e-4, 1.2e-3, 2.4e-3, 4.8e-3, 9.6e-3)
SEARCHED: dict[str, dict[str, tuple[float, ...]]] = {
    PTNCN: {"lr": RATES, "beta": (0.25, 0.5)},
    LSTM: {"lr": RATES, "stride": (1, 4)},
}
SEEDS = (101, 102)
FRAMES = 1500


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--frames", type=int, default=FRAMES)
    arguments.add_argument("--out", type=Path, default=ROOT / "results" / "live" / "rates.json")
    options = arguments.parse_args()
    torch.set_num_threads(1)
    network = make(PTNCN, input_size=PIXELS, hidden_size=list(UNITS))
    sizes: dict[str, Any] = {PTNCN: list(UNITS), LSTM: equal_units(LSTM, count_weights(network))}
    runs = []
    for name, space in SEARCHED.items():
        for values in itertools.product(*space.values()):
            tried = dict(zip(space, values, strict=True))
            errors = [
                error_of(name, sizes[name], {**FIXED[name], **tried}, seed=seed, frames=options.frames)
                for seed in SEEDS
            ]
            runs.append({"learner": name, "tried": tried, "errors": errors, "mean": statistics.fmean(errors)})
            print(json.dumps(runs[-1]), flush=True)
    best = {name: min((run for run in runs if run["learner"] == name), key=by_error)["tried"] for name in SEARCHED}
    record = {
        "command": "python benchmarks/live_rates.py",
        "frames": options.frames,
        "seeds": SEEDS,
        "unit": "share of the squared error of repeating the last picture, over all frames that are scored",
        "best": best,
        "runs": runs,
    }
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(record, indent=1) + "\n")


def error_of(name: str, hidden: Any, options: dict[str, Any], *, seed: int, frames: int) -> float:
    """The error over a whole run, relative to the error of repeating the last frame; infinite if it diverges."""
    world = World(seed)
    learner = make(name, input_size=PIXELS, hidden_size=hidden, seed=seed, **options)
    state, last = learner.begin(1), None
    error = copied = 0.0
    for number in range(frames):
        if number == frames // 2:
            world.change(kind="letters")
        if world.begins:
            learner.end(state)
            state, last = learner.begin(1), None
        x = world.next()
        try:
            step = learner.step(x, state)
        except FloatingPointError:
            return math.inf
        if last is not None:
            error += float((step.prediction - x).double().square().sum())
            copied += float((last - x).double().square().sum())
        last = x
    return round(error / copied, 5)


def by_error(run: dict[str, Any]) -> float:
    return float(run["mean"])


if __name__ == "__main__":
    main()
