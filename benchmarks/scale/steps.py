"""Time and bytes of a learning step on several ranks with one thread each: run it alone on the machine.

    python benchmarks/scale/steps.py efficiency   # 2 ranks against one: weak scaling, and bytes beside dense all-reduce
    python benchmarks/scale/steps.py layers       # layers on 2 ranks against one rank with 2 threads
    python benchmarks/scale/steps.py links        # 2, 3 and 4 ranks on loopback and in namespaces: what the model needs

The blocks of steps that are compared take turns in the same processes; a figure is the median of their ratios.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import torch
import torch.distributed as dist
from dry import dry_step, network
from launch import found, write
from links import LINKS, places
from torch import Tensor

from ptncn.distributed import DataParallel, LayerParallel, Ranks, connect

GRID = [(units, rows, size) for units in (250, 500, 1000) for rows in (10, 40, 80) for size in (1, 2, 8, 64)]
SIZES = (1024, 16384, 131072, 1048576)


def loopback() -> int:
    """Bytes that went through the loopback device so far."""
    return int(Path("/sys/class/net/lo/statistics/tx_bytes").read_text())


def timed(step: Callable[[Tensor], Any], frames: Tensor) -> float:
    """Seconds a step."""
    before = time.perf_counter()
    for x in frames:
        step(x)
    return (time.perf_counter() - before) / len(frames)


def alone_step(options: dict[str, Any], rows: int, *, compiled: bool = True) -> Callable[[Tensor], Any]:
    net = network(**options)
    net.compiled = compiled and net.compiled
    state = net.begin(rows)
    return lambda x: net.step(x, state)


def shared_step(options: dict[str, Any], ranks: Ranks, kind: str, rows: int) -> Callable[[Tensor], Any]:
    net = network(**options)
    shared: Any = LayerParallel(net, ranks) if kind == "layers" else DataParallel(net, ranks, split=kind)
    own = slice(None) if kind == "layers" else shared.rows(rows)
    state = shared.begin(rows)
    return lambda x: shared.step(x[own], state)


def random_frames(steps: int, rows: int, inputs: int) -> Tensor:
    return torch.rand(steps, rows, inputs, generator=torch.Generator().manual_seed(0))


def efficiency(ranks: Ranks, arguments: argparse.Namespace) -> dict[str, Any]:
    """T(rows) of one rank over T(rows · ranks) of all ranks."""
    options = {"units": arguments.units, "layers": arguments.layers, "inputs": 784, "preset": arguments.preset}
    rows, whole = arguments.rows, arguments.rows * ranks.size
    alone, shared = alone_step(options, rows), shared_step(options, ranks, arguments.split, whole)
    few, many = random_frames(arguments.steps, rows, 784), random_frames(arguments.steps, whole, 784)
    rounds, sent, through = [], 0, 0
    for turn in range(arguments.rounds + 1):
        dist.barrier()
        one = timed(alone, few) if ranks.rank == 0 else 0.0
        dist.barrier()
        before = ranks.sent, loopback()
        together = timed(shared, many)
        sent, through = ranks.sent - before[0], loopback() - before[1]
        rounds += [[one, together]] if turn else []
    weights = sum(weight.numel() for weight in network(**options).parameters())
    dense, before_dense = torch.zeros(weights), loopback()
    began = time.perf_counter()
    dist.all_reduce(dense)
    return {
        **options,
        "rows": rows,
        "split": arguments.split,
        "rounds": rounds,
        "efficiency": median(one / together for one, together in rounds) if ranks.rank == 0 else None,
        "bytes_a_step": sent / arguments.steps,
        "loopback_bytes_a_step": through / arguments.steps,
        "dense_all_reduce_seconds": time.perf_counter() - began,
        "dense_all_reduce_loopback_bytes": loopback() - before_dense,
    }


def layers(ranks: Ranks, arguments: argparse.Namespace) -> list[dict[str, Any]]:
    """Layers on ranks against one rank with as many threads, compiled and not."""
    out = []
    for units in (50, 200, 500, 1000, 2000):
        options = {"units": units, "layers": 2 * ranks.size, "inputs": units, "preset": arguments.preset}
        frames = random_frames(max(3, min(100, 20000 // units)), arguments.rows, units)
        steps = {
            name: alone_step(options, arguments.rows, compiled=name == "compiled") for name in ("compiled", "torch")
        }
        shared = shared_step(options, ranks, "layers", arguments.rows)
        rounds: list[dict[str, float]] = []
        for turn in range(arguments.rounds // 2 + 1):
            taken = {}
            for name, step in steps.items():
                dist.barrier()
                torch.set_num_threads(ranks.size)
                taken[name] = timed(step, frames) if ranks.rank == 0 else 0.0
                torch.set_num_threads(1)
            dist.barrier()
            taken["layers"] = timed(shared, frames)
            rounds += [taken] if turn else []
        out.append({**options, "rows": arguments.rows} | {key: median(r[key] for r in rounds) for key in rounds[0]})
    return out


def exchanges(ranks: Ranks) -> dict[str, list[list[float]]]:
    """Seconds of one exchange by its kind and bytes: [bytes of a rank, seconds]."""
    times: dict[str, list[list[float]]] = {"gather": [], "add": [], "pass": []}
    for size in SIZES:
        own, whole = torch.zeros(size // 4), torch.zeros(ranks.size * (size // 4))
        after, before = (ranks.rank + 1) % ranks.size, (ranks.rank - 1) % ranks.size

        def gather(own: Tensor = own, whole: Tensor = whole) -> None:
            dist.all_gather_into_tensor(whole, own)

        def add(own: Tensor = own) -> None:
            dist.all_reduce(own)

        def hand_on(own: Tensor = own, whole: Tensor = whole, after: int = after, before: int = before) -> None:
            sent = dist.isend(own, after)
            dist.irecv(whole[: len(own)], before).wait()
            sent.wait()

        for kind, work in (("gather", gather), ("add", add), ("pass", hand_on)):
            dist.barrier()
            work()
            samples = [timed(lambda _, work=work: work(), torch.zeros(10, 1)) for _ in range(3)]
            times[kind].append([size, median(samples)])
    return times


def on_link(ranks: Ranks, arguments: argparse.Namespace) -> dict[str, Any]:
    """Exchanges, and for each kind of parallelism a step with the others and one that all ranks take by themselves."""
    options = {"units": arguments.units, "layers": 4, "inputs": arguments.units, "preset": arguments.preset}
    rows = arguments.rows * 2
    frames, record = random_frames(arguments.steps, rows, arguments.units), {"exchanges": exchanges(ranks), "steps": {}}
    for kind in ("units", "rows", "layers"):
        shared = shared_step(options, ranks, kind, rows)
        dry, log = dry_step(network(**options), kind, ranks.rank, ranks.size, rows)
        rounds = []
        for turn in range(4):
            dist.barrier()
            together = timed(shared, frames)
            dist.barrier()
            log.log.clear()
            by_itself = timed(dry, frames)
            rounds += [[together, by_itself]] if turn else []
        logged = [[what, size] for what, size in log.log[: len(log.log) // len(frames)]]
        times = [median(column) for column in zip(*rounds, strict=True)]
        record["steps"][kind] = {"seconds": times[0], "dry_seconds": times[1], "exchanges": logged}
    return {**options, "rows": rows, **record}


def grid(ranks: Ranks, arguments: argparse.Namespace) -> list[dict[str, Any]]:
    """What one process takes for the part of one of `size` ranks, and for the whole, by width, batch and `size`."""
    out = []
    for units, rows, size in GRID:
        options = {"units": units, "layers": 4, "inputs": units, "preset": arguments.preset}
        frames = random_frames(6 if units < 1000 else 3, rows, units)
        steps = {"units": dry_step(network(**options), "units", 0, size, rows)[0]}
        if size == 1:
            steps = {"alone": alone_step(options, rows)}
        if size == 2:
            steps["layers"] = dry_step(network(**options), "layers", 0, 4, rows)[0]
        for kind, step in steps.items():
            times = [timed(step, frames) for _ in range(3)]
            out.append({"units": units, "rows": rows, "size": size, "kind": kind, "seconds": median(times[1:])})
    return out


WHAT = {"efficiency": efficiency, "layers": layers, "links": on_link, "grid": grid}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=WHAT)
    parser.add_argument("--ranks", type=int, nargs="+")
    parser.add_argument("--rows", type=int, default=20, help="of a rank")
    parser.add_argument("--units", type=int, help="of a layer")
    parser.add_argument("--layers", type=int, default=3)
    parser.add_argument("--steps", type=int, default=15, help="in a block")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--preset", default="best")
    parser.add_argument("--split", default="units", choices=("units", "rows"))
    arguments = parser.parse_args()
    arguments.units = arguments.units or {"links": 500}.get(arguments.what, 1000)
    if "RANK" in os.environ:
        torch.set_num_threads(1)
        with connect() as ranks:
            print(json.dumps(WHAT[arguments.what](ranks, arguments)), flush=True)
        return
    given = [arguments.what]
    for name in ("rows", "units", "layers", "steps", "rounds", "preset", "split"):
        given += [f"--{name}", str(getattr(arguments, name))]
    if arguments.what != "links":
        ((record,), *_) = found((arguments.ranks or [2])[0], __file__, *given)
        if arguments.what == "efficiency":
            print(
                f"efficiency {record['efficiency']:.3f}; a rank sends {record['bytes_a_step']:,.0f} bytes a step, ",
                end="",
            )
            print(f"all ranks {record['loopback_bytes_a_step']:,.0f} on the wire; ", end="")
            print(f"dense all-reduce {record['dense_all_reduce_loopback_bytes']:,.0f}")
        elif arguments.what == "layers":
            for row in record:
                one, both = min(row["compiled"], row["torch"]), row["layers"]
                print(
                    f"{row['units']} units: one rank {one * 1e3:.2f} ms, layers {both * 1e3:.2f} ms, {one / both:.2f} ×"
                )
        write(arguments.what, {"found": record})
        return
    runs = []
    for link in LINKS:
        for count in arguments.ranks or (2, 3, 4):
            with places(link, count) as where:
                record = [rank[0] for rank in found(count, __file__, *given, where=where)]
            runs.append({"link": link.name, "ranks": count, "by_rank": record})
            print(link.name, count, {kind: step["seconds"] for kind, step in record[0]["steps"].items()}, flush=True)
    ((single,),) = found(1, __file__, "grid", *given[1:])
    write("links", {"runs": runs, "grid": single})


if __name__ == "__main__":
    main()
