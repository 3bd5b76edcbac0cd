"""Time and bytes of a learning step on several ranks, against one rank: run it alone on the machine.

    python benchmarks/scale/steps.py --ranks 2 --out results/scale/two-ranks.json

Weak scaling: each rank adds `--rows` to the batch, and has one thread. One rank runs the compiled step; the ranks run
what `ptncn.distributed` runs. Bytes are those that a rank sends, counted by the library and, for all ranks together,
by the loopback device. Dense all-reduce is what a ring sends to add up gradients of the size of the weights.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from typing import Any

import torch

from ptncn import PTNCN
from ptncn.distributed import DataParallel, LayerParallel, connect


def loopback() -> int:
    """Bytes that went through the loopback device so far."""
    return int(Path("/sys/class/net/lo/statistics/tx_bytes").read_text())


def seconds(step: Any, state: Any, frames: torch.Tensor, warm_up: int) -> list[float]:
    taken = []
    for x in frames:
        before = time.perf_counter()
        step(x, state)
        taken.append(time.perf_counter() - before)
    return taken[warm_up:]


def measure(arguments: argparse.Namespace) -> None:
    """One rank's part; the first rank prints the record."""
    torch.set_num_threads(1)
    sizes, options = [arguments.units] * arguments.layers, {"preset": arguments.preset}
    chance = torch.Generator().manual_seed(0)
    with connect() as ranks:
        rows = arguments.rows * ranks.size
        frames = torch.rand(arguments.steps + 5, rows, arguments.inputs, generator=chance)
        record: dict[str, Any] = {**vars(arguments), "torch": torch.__version__, "cores": os.cpu_count()}
        if ranks.size == 1:
            net = PTNCN(arguments.inputs, sizes, **options)
            taken = seconds(net.step, net.begin(rows), frames, 5)
        else:
            net = PTNCN(arguments.inputs, sizes, **options)
            layered = arguments.split == "layers"
            shared: Any = LayerParallel(net, ranks) if layered else DataParallel(net, ranks, split=arguments.split)
            own = slice(None) if layered else shared.rows(rows)
            sent, through = ranks.sent, loopback()
            taken = seconds(shared.step, shared.begin(rows), frames[:, own], 5)
            weights = sum(weight.numel() for weight in net.parameters()) * 4
            record |= {
                "bytes_a_step": (ranks.sent - sent) / len(frames),
                "loopback_bytes_a_step": (loopback() - through) / len(frames),
                "dense_all_reduce_bytes_a_step": 2 * weights * (ranks.size - 1) / ranks.size,
            }
        record |= {"ranks": ranks.size, "batch": rows, "seconds": median(taken), "all_seconds": taken}
        if ranks.rank == 0:
            print(json.dumps(record), flush=True)


def launch(count: int, *more: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={count}"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run([*command, __file__, *more], check=True, stdout=subprocess.PIPE, text=True, env=environment)
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--rows", type=int, default=20)
    parser.add_argument("--units", type=int, default=1000)
    parser.add_argument("--layers", type=int, default=3)
    parser.add_argument("--inputs", type=int, default=784)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--preset", default="paper")
    parser.add_argument("--split", default="units", choices=("units", "rows", "layers"))
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    if "RANK" in os.environ:
        arguments.out = None
        measure(arguments)
        return
    given = sys.argv[1:]
    runs = [(launch(1, *given), launch(arguments.ranks, *given)) for _ in range(arguments.repeats)]
    efficiency = [alone["seconds"] / together["seconds"] for alone, together in runs]
    found = {"command": " ".join(["python", "benchmarks/scale.py", *given]), "efficiency": efficiency, "runs": runs}
    if arguments.out is not None:
        arguments.out.parent.mkdir(parents=True, exist_ok=True)
        arguments.out.write_text(json.dumps(found, indent=1) + "\n")
    together = runs[-1][1]
    print(f"efficiency {median(efficiency):.2f}; a rank sends {together['bytes_a_step']:,.0f} bytes a step, ", end="")
    print(f"dense all-reduce would send {together['dense_all_reduce_bytes_a_step']:,.0f}")


if __name__ == "__main__":
    main()
