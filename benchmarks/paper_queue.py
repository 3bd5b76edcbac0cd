"""Estimate the time of each run of the paper's tables at full size from a few batches, and write the page about them.

    python benchmarks/paper_queue.py measure     # one thread, minutes; writes results/queue/times.json
    python benchmarks/paper_queue.py page        # writes docs/results/queue.md from it and from the finished records

Learners that unroll time are timed over whole batches, all others over a few frames.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import torch

from ptncn.experiments import EXPERIMENTS
from ptncn.experiments.run import RunSpec
from ptncn.learners.registry import describe
from ptncn.records import read_record
from ptncn.system import write_atomically
from ptncn.training import run

ROOT = Path(__file__).resolve().parents[1]
TIMES = ROOT / "results/queue/times.json"
PAGE = ROOT / "docs/results/queue.md"
COMMAND = "python benchmarks/paper_queue.py"
TASKS = "mnist+notmnist+fashion-mnist"
COLUMNS = [("prediction", "mnist"), ("prediction", "ptb"), ("continual", TASKS)]
EPOCHS = {"esn-ridge": 1}
"""A closed-form solution needs only one pass."""
LIKE = {"notmnist": "mnist"}
"""Letters take as long as digits, so only digits are timed."""
ORDER = (
    ("prediction", "mnist", ("copy", "ptncn-best", "lstm-bptt", "esn-ridge")),
    ("prediction", "notmnist", ("copy", "ptncn-best", "lstm-bptt", "esn-ridge")),
    ("prediction", "ptb", ("ptncn-memory", "lstm-tbptt", "lstm-bptt", "lru-rtrl")),
    ("continual", TASKS, ("ptncn-best", "lstm-bptt")),
    ("prediction", "mnist", ("gru-bptt", "rnn-bptt", "ptncn")),
    ("prediction", "notmnist", ("gru-bptt", "rnn-bptt", "ptncn")),
    ("prediction", "ptb", ("gru-bptt", "rnn-bptt", "ptncn", "esn-ridge")),
)
"""The runs that matter most for a table; the others follow, quickest first."""
INTRODUCTION = f"""# Runs at the paper's size, in order

*Made by `{COMMAND} page`. Do not edit by hand.*

Hours on one core for one seed: the processor time per batch, measured over a few batches of the run itself
(`{COMMAND} measure`), times the batches per epoch, times the epochs. Testing adds about a tenth. The runs that matter
most for a table come first, and slow ones last. Every run can be interrupted and continued
(`--resume --checkpoint-every 300`) and writes its record to `results/paper`. Commands are shown without the options
that a record adds: with one layer of 1,000 units, as recorded, the P-TNCN with memory took 0.6 hours.

"""


def measure(spec: RunSpec, frames: int = 6, seconds: float = 8.0) -> float:
    """Seconds per batch of a run while it learns."""
    learner, data, size = spec.make_learner(), spec.splits.train, spec.config.batch_size
    unrolls = describe(spec.learner).memory.endswith("T")
    taken, steps, length = 0.0, 0, 0.0
    for number in range(8):
        batch = data.batch(range(number * size, (number + 1) * size))
        length = len(batch.x) if number == 0 else (length * number + len(batch.x)) / (number + 1)
        shown = len(batch.x) if unrolls else min(frames, len(batch.x))
        start = time.process_time()
        mask = None if batch.mask is None else batch.mask[:shown]
        run(learner, batch.x[:shown], learn=True, mask=mask, keep_predictions=False)
        if number or time.process_time() - start > seconds:  # the first batch also allocates
            taken, steps = taken + time.process_time() - start, steps + shown
        if taken > seconds:
            break
    return taken / steps * length


def measure_all(only: set[str]) -> None:
    torch.set_num_threads(1)
    known: dict[str, Any] = json.loads(TIMES.read_text()) if TIMES.exists() else {"rows": {}}
    for name, data in COLUMNS:
        experiment = EXPERIMENTS.find(name)
        for spec in experiment.specs("paper", data=[data], seeds=[0]):
            key = f"{name}/{data}/{spec.row}"
            if key in known["rows"] or (only and spec.row not in only):
                continue
            one = spec if name != "continual" else _first_task(spec)
            known["rows"][key] = {"seconds_per_batch": measure(one), "batches": batches(spec)}
            print(key, known["rows"][key], flush=True)
            known |= {"command": f"{COMMAND} measure", "threads": 1, "torch": torch.__version__}
            write_atomically(TIMES, (json.dumps(known, indent=1) + "\n").encode())


def _first_task(spec: RunSpec) -> RunSpec:
    from ptncn.experiments.continual import tasks

    return tasks(spec)[0]


def batches(spec: RunSpec) -> int:
    """Batches in an epoch, over all tasks."""
    return -(-spec.config.sequences // spec.config.batch_size) * len(spec.data.split("+"))


def hours(times: dict[str, Any], name: str, data: str, row: str, epochs: int) -> float | None:
    entry = times["rows"].get(f"{name}/{LIKE.get(data, data)}/{row}")
    return None if entry is None else entry["seconds_per_batch"] * entry["batches"] * epochs / 3600


def page() -> str:
    times = json.loads(TIMES.read_text())
    lines = [
        INTRODUCTION,
        "| run | command after `ptncn reproduce` | epochs | hours | record |",
        "|---|---|--:|--:|---|",
    ]
    for name, data, row in ordered(times):
        experiment = EXPERIMENTS.find(name)
        spec = experiment.specs("paper", rows=[row], data=[data], seeds=[0])[0]
        file = spec.path(ROOT / "results/paper")
        record = read_record(file) if file.exists() else None
        epochs = record.config["run_config"]["epochs"] if record else EPOCHS.get(row, spec.config.epochs)
        needed = hours(times, name, data, row, epochs)
        command = f"{name} --scale paper --learners {row} --data {data} --epochs {epochs}"
        state = f"[recorded]({name}.md)" if record is not None and record.status == "finished" else "no"
        shown = "–" if needed is None else f"{needed:,.1f}" if needed < 100 else f"{needed:,.0f}"
        lines.append(
            f"| {experiment.row(row).label}, {data.replace('+', ' → ')} | `{command}` | {epochs} | {shown} | {state} |"
        )
    return "\n".join(lines) + "\n"


def ordered(times: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Every run: those in `ORDER`, then the others from the quickest to the slowest."""
    first = [(name, data, row) for name, data, rows in ORDER for row in rows]
    columns = [*COLUMNS, ("prediction", "notmnist")]
    every = [(name, data, row) for name, data in columns for row in EXPERIMENTS.find(name).rows[data]]
    rest = [each for each in every if each not in first]
    return first + sorted(rest, key=lambda each: hours(times, *each, 1) or 0.0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("measure", "page"))
    parser.add_argument("--rows", nargs="*", default=[], help="measure only these rows")
    arguments = parser.parse_args()
    if arguments.what == "measure":
        measure_all(set(arguments.rows))
    else:
        write_atomically(PAGE, page().encode())


if __name__ == "__main__":
    main()
