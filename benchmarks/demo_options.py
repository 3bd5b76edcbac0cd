"""Choose the options of each learner in the demo, using a different seed from the demo's.

    python benchmarks/demo_options.py --out results/demo/options.json
    python benchmarks/demo_options.py --learners ptncn

This takes about a quarter of an hour. Learners that are not selected keep their entries in the record.
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
        {"lr": 3e-4},
        {"lr": 1e-3},
        {"beta": 0.5},
        {"optimizer": "rmsprop", "lr": 3e-4},
        {"optimizer": "rmsprop"},
        {"error_lr_factor": 0.03},
        {"schedule": {"kind": "root", "steps": 1000, "final": 0.1}, "lr": 1e-3},
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
"""Changes to make to `START`."""
START: dict[str, dict[str, Any]] = {
    PTNCN: {"preset": "best", "lr": 6e-4, "schedule": None},
    LSTM: {**LSTM_OPTIONS, "window": 4},
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("results/demo/options.json"))
    parser.add_argument("--learners", nargs="+", default=list(TRIED), choices=TRIED)
    parser.add_argument("--scenes", type=int, default=FULL.scenes, help="scenes in each part of the stream")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    size = Size(arguments.scenes, test_scenes=1, units=FULL.units)
    results = kept(arguments.out, arguments.learners)
    for name in arguments.learners:
        for changed in TRIED[name]:
            results.append(try_out(name, changed, size))
            print(f"{results[-1]['error']:.2f}  {results[-1]['milliseconds']:.2f} ms  {name} {changed}", flush=True)
    record = {
        "command": f"python benchmarks/demo_options.py --scenes {arguments.scenes}",
        "measured": arguments.learners,
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "versions": versions(),
        "seed": SEED,
        "tried": results,
    }
    write_atomically(arguments.out, (json.dumps(record, indent=1) + "\n").encode())


def kept(record: Path, measured: list[str]) -> list[dict[str, Any]]:
    """The recorded results of learners that are not measured now."""
    if not record.is_file() or set(measured) == set(TRIED):
        return []
    tried = json.loads(record.read_text(encoding="utf-8"))["tried"]
    return [each for each in tried if each["learner"] not in measured]


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
