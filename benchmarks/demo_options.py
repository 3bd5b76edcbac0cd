"""Choose the options of each learner of the demo, with another seed than the demo's.

    python benchmarks/demo_options.py --out results/demo/options.json

This takes about a quarter of an hour.
"""

from __future__ import annotations

import argparse
import datetime
import json
from pathlib import Path
from typing import Any

import torch

from ptncn.cli.demo import FULL
from ptncn.demo.simulate import (
    LSTM,
    LSTM_OPTIONS,
    PIXELS,
    PTNCN,
    PTNCN_OPTIONS,
    Size,
    make_learners,
    predictable,
    simulate,
)
from ptncn.learners import make
from ptncn.records import versions
from ptncn.system import write_atomically

SEED = 7
TRIED: dict[str, list[dict[str, Any]]] = {
    PTNCN: [
        {},
        {"lr": 2e-4},
        {"lr": 6e-4},
        {"error_lr_factor": 0.1},
        {"error_rule": "fixed"},
        {"optimizer": "adam"},
        {"optimizer": "sgd", "lr": 0.1, "rescale": "unit"},
    ],
    LSTM: [
        {},
        {"lr": 1e-3},
        {"lr": 4e-3},
        {"window": 8},
        {"window": 10, "stride": 10, "lr": 4e-3},
        {"window": 2, "stride": 2},
        {"optimizer": "adam"},
        {"optimizer": "adam", "lr": 4e-3},
    ],
}
"""Changes to `START`."""
START: dict[str, dict[str, Any]] = {PTNCN: PTNCN_OPTIONS, LSTM: {**LSTM_OPTIONS, "window": 4}}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("results/demo/options.json"))
    parser.add_argument("--scenes", type=int, default=FULL.scenes, help="scenes in each part of the stream")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    size = Size(arguments.scenes, test_scenes=1, units=FULL.units)
    found = []
    for name, several in TRIED.items():
        for changed in several:
            found.append(try_out(name, changed, size))
            print(f"{found[-1]['error']:.2f}  {found[-1]['milliseconds']:.2f} ms  {name} {changed}", flush=True)
    record = {
        "command": f"python benchmarks/demo_options.py --scenes {arguments.scenes}",
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "versions": versions(),
        "seed": SEED,
        "tried": found,
    }
    write_atomically(arguments.out, (json.dumps(record, indent=1) + "\n").encode())


def try_out(name: str, changed: dict[str, Any], size: Size) -> dict[str, Any]:
    """One run: the mean error while learning, and the time per frame."""
    units = {each: learner.options() for each, learner in make_learners(size.units, SEED).items()}[name]
    hidden = units["hidden_sizes"] if name == PTNCN else units["hidden_size"]
    options = {**START[name], **changed}
    learner = make(name, input_size=PIXELS, hidden_size=hidden, seed=SEED, **options)
    simulation = simulate({name: learner}, size, SEED)
    errors = simulation.errors[name]
    return {
        "learner": name,
        "options": options,
        "error": round(predictable(errors), 3),
        "parts": [round(predictable(part), 3) for part in errors],
        "milliseconds": round(1000 * simulation.seconds[name] / errors.size, 3),
    }


if __name__ == "__main__":
    main()
