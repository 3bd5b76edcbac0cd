"""Coupled and small displacements on the noisy cosine of the appendix, for units with and without a slope.

    python benchmarks/teaching.py results/learners/teaching.json

The result is the squared error of each step, tested before it is learnt: two layers of 20 units, the preset `paper`,
10,000 steps, the mean of three seeds. `--table` prints the table in `docs/choices.md`.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import torch

from ptncn import PTNCN
from ptncn.data import CosineStream
from text import write_record

STEPS, SEEDS = 10_000, 3
UNITS: dict[str, dict[str, Any]] = {
    "tanh": {"weight_std": 0.3, "error_weight_std": 0.3, "error_rule": "transpose"},
    "sign": {},
    "step": {},
    "kwta": {},
    "bernoulli": {},
}
"""Activations, each with the options of its row in the table `discrete`, if it has one."""
TEACHING: dict[str, dict[str, Any]] = {
    "coupled": {},
    "coupled, γ = λ = 0": {"gamma": 0.0, "lam": 0.0},
    "small": {"teaching": "small"},
}
REACHES = (0.003, 0.01, 0.1, 0.3)


def error(options: dict[str, Any], seed: int, steps: int) -> float:
    """The mean squared error of the steps from the second on."""
    stream = CosineStream(steps, chunk=1_000, seed=seed)
    network = PTNCN(1, [20, 20], output="gaussian", preset="paper", hidden_prediction="identity", seed=seed, **options)
    state, total, count = network.begin(1), 0.0, 0
    for batch in stream.batches(1):
        for x in batch.x:
            out = network.step(x, state)
            total += float(out.errors[0].square().sum())
            count += int(out.scored.sum())
    return total / count


def variants() -> list[dict[str, Any]]:
    rows = [
        {"activation": activation, "teaching": name, "options": {"activation": activation, **own, **options}}
        for activation, own in UNITS.items()
        for name, options in TEACHING.items()
    ]
    for activation in ("sign", "step"):
        for reach in REACHES:
            options = {"activation": activation, "teaching": "small", "reach": reach}
            rows.append({"activation": activation, "teaching": f"small, reach {reach:g}", "options": options})
    return rows


def table(record: dict[str, Any]) -> str:
    """Markdown: a row for each activation, a column for each kind of teaching."""
    means = {(row["activation"], row["teaching"]): sum(row["errors"]) / len(row["errors"]) for row in record["rows"]}
    names = [*TEACHING, *(f"small, reach {reach:g}" for reach in REACHES)]
    lines = [f"| activation | {' | '.join(names)} |", f"|---|{'---|' * len(names)}"]
    for activation in UNITS:
        cells = [f"{means[activation, name]:.4f}" if (activation, name) in means else "" for name in names]
        lines.append(f"| `{activation}` | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("record", type=Path, help="where to write the record, or with --table where to read it")
    parser.add_argument("--table", action="store_true", help="measure nothing; print the table of the record")
    arguments = parser.parse_args()
    if arguments.table:
        print(table(json.loads(arguments.record.read_text(encoding="utf-8"))))
        return
    torch.set_num_threads(1)
    rows = variants()
    for row in rows:
        row["errors"] = [round(error(row["options"], seed, STEPS), 6) for seed in range(SEEDS)]
        print(row["activation"], row["teaching"], row["errors"], flush=True)
    write_record(arguments.record, {"steps": STEPS, "seeds": SEEDS, "rows": rows})


if __name__ == "__main__":
    main()
