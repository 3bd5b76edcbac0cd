"""Measure every learner on the small tasks of tests/learners/test_tasks.py, in one record.

    python benchmarks/learners.py results/learners/tasks.json
    python benchmarks/learners.py results/learners/rivals.json lstm-immediate lru-rtrl

Names after the file select those learners only. This takes a few minutes. docs/learners.md shows the numbers.
"""

from __future__ import annotations

import json
import platform
import sys
from pathlib import Path

import torch
from rich.progress import track

import ptncn
from ptncn.learners import make, names

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "learners"))
from test_tasks import TASKS, batches, error_of


def reached(learners: list[str]) -> dict[str, dict[str, float]]:
    """The error of each learner on each task."""
    pairs = [(name, task) for name in learners for task in TASKS]
    errors: dict[str, dict[str, float]] = {name: {} for name in learners}
    for name, task in track(pairs, description="learners × tasks"):
        errors[name][task] = round(error_of(name, task), 4)
    return errors


def microstates() -> dict[str, dict[str, float]]:
    """SAB on an endless pair of sines, for each choice of what it stores: the largest value in its state, its error."""
    results = {}
    for microstate in ("cell", "sum"):
        learner = make("lstm-sab", input_size=2, hidden_size=16, output="gaussian", lr=0.01, microstate=microstate)
        state = learner.begin(batch_size=1)
        time, error = torch.arange(8000)[:, None], 0.0
        xs = torch.cat([torch.sin(0.6 * time), torch.sin(0.35 * time)], dim=1)
        for t, x in enumerate(xs):
            out = learner.step(x[None], state)
            error += float(out.errors[0].square().sum()) / 1000 if t >= 7000 else 0.0
        results[microstate] = {
            "largest_state": round(float(state.hidden[0].abs().max()), 3),
            "squared_error_of_the_last_1000": round(error, 5),
        }
    return results


def main(path: str, *learners: str) -> None:
    torch.set_num_threads(1)
    record = {
        "command": " ".join(["python benchmarks/learners.py", path, *learners]),
        "versions": {"ptncn": ptncn.__version__, "torch": torch.__version__, "python": platform.python_version()},
        "stated": {name: task.stated for name, task in TASKS.items()},
        "sequences": {task: sum(xs.shape[1] for xs in batches(task, True)) for task in TASKS},
        "errors": reached(list(learners) or names()),
    }
    if not learners:
        record["sab_on_a_stream"] = microstates()
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
