"""Time and bytes of a learning step on several ranks with one thread each; needs an otherwise idle machine.

    python benchmarks/scale/steps.py efficiency   # weak scaling from one rank to 2, and bytes of a dense all-reduce
    python benchmarks/scale/steps.py layers       # layers on 2 ranks compared with one rank with 2 threads
    python benchmarks/scale/steps.py links        # 2, 3 and 4 ranks on loopback and in namespaces, for the model

The blocks of steps to compare take turns in the same processes; each figure is the median of their ratios.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from statistics import mean, median
from typing import Any

import torch
import torch.distributed as dist
from dry import dry_step, network
from launch import RESULTS, others, processor_seconds, run_ranks, write
from links import LINKS, places
from torch import Tensor

from ptncn.distributed import DataParallel, LayerParallel, Ranks, connect
from ptncn.system import end_with_parent

GRID = [(units, rows, size) for units in (250, 500, 1000) for rows in (10, 40, 80) for size in (1, 2, 8, 64)]
PATTERNS = [(1, 4096), (4, 4096), (1, 40960), (4, 40960), (1, 131072)]
REPEATS = 10


def loopback() -> int:
    """Bytes that have gone through the loopback device so far."""
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
    """T(rows) of one rank divided by T(rows · ranks) of all ranks, and the limits to it.

    `alone`: one rank with one thread, the others idle. `dry`: all ranks at once, without exchanges. `threads`: one
    process with as many threads and the whole batch, which exchanges nothing.
    """
    options = {"units": arguments.units, "layers": arguments.layers, "inputs": arguments.inputs}
    options |= {"preset": arguments.preset}
    rows, whole = arguments.rows, arguments.rows * ranks.size
    alone, shared = alone_step(options, rows), shared_step(options, ranks, arguments.split, whole)
    dry = dry_step(network(**options), arguments.split, ranks.rank, ranks.size, whole)[0]
    threaded = alone_step(options, whole) if ranks.rank == 0 else alone
    few, many = (random_frames(arguments.steps, count, arguments.inputs) for count in (rows, whole))
    rounds: list[dict[str, float]] = []
    sent = through = 0
    for turn in range(arguments.rounds + 1):
        taken = {}
        dist.barrier()
        taken["alone"] = timed(alone, few) if ranks.rank == 0 else 0.0
        dist.barrier()
        before = ranks.sent, loopback()
        taken["shared"] = timed(shared, many)
        sent, through = ranks.sent - before[0], loopback() - before[1]
        dist.barrier()
        taken["dry"] = timed(dry, many)
        dist.barrier()
        torch.set_num_threads(ranks.size)
        taken["threads"] = timed(threaded, many) if ranks.rank == 0 else 0.0
        torch.set_num_threads(1)
        rounds += [taken] if turn else []
    weights = sum(weight.numel() for weight in network(**options).parameters())
    dense = torch.zeros(weights)
    dist.all_reduce(dense)
    before_dense, began = loopback(), time.perf_counter()
    dist.all_reduce(dense)
    record = {
        **options,
        "rows": rows,
        "split": arguments.split,
        "milliseconds": {name: 1e3 * median(taken[name] for taken in rounds) for name in rounds[0]},
        "bytes_a_step": sent / arguments.steps,
        "loopback_bytes_a_step": through / arguments.steps,
        "dense_all_reduce_milliseconds": 1e3 * (time.perf_counter() - began),
        "dense_all_reduce_loopback_bytes": loopback() - before_dense,
        "rounds": rounds,
    }
    ratios = [taken["alone"] / taken["shared"] for taken in rounds]
    return {"efficiency": median(ratios), "smallest": min(ratios), "largest": max(ratios)} | record


def layers(ranks: Ranks, arguments: argparse.Namespace) -> list[dict[str, Any]]:
    """Layers on ranks compared with one rank with as many threads, both compiled and not."""
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


def exchanges(ranks: Ranks) -> list[list[float]]:
    """The cost of exchanges between all ranks without computing, by messages to each rank and bytes of each message.

    [messages, bytes, seconds, processor seconds without waiting, processor seconds if ranks sleep while they wait]
    """
    mesh, usual = ranks.mesh, ranks.mesh._spin
    taken: dict[tuple[int, int], list[tuple[float, float, float]]] = {pattern: [] for pattern in PATTERNS}
    for _ in range(5):
        for count, size in PATTERNS:
            own = torch.zeros(size // 4)
            places = [torch.zeros(size // 4) for _ in ranks.peers * count]

            def exchange(pause: Tensor, own: Tensor = own, places: list[Tensor] = places, count: int = count) -> None:
                messages, free = [], iter(places)
                for _ in range(count):
                    messages += [mesh.send(peer, own) for peer in ranks.peers]
                    messages += [mesh.receive(peer, next(free)) for peer in ranks.peers]
                    mesh.move()
                if pause:
                    time.sleep(float(pause))
                mesh.finish(messages)

            times = []
            longest = 2e-3 + count * size * len(ranks.peers) * 1e-7  # until everything has arrived
            for mesh._spin, pause in ((usual, 0.0), (0.0, longest), (0.0, 0.0)):
                dist.barrier()
                exchange(torch.tensor(0.0))
                before = time.process_time()
                seconds = timed(exchange, torch.full((REPEATS,), pause))
                times += [seconds, (time.process_time() - before) / REPEATS]
            mesh._spin = usual
            taken[count, size].append((times[0], times[3], times[5]))
    return [[*pattern, *map(median, zip(*samples, strict=True))] for pattern, samples in taken.items()]


def forwarding(ranks: Ranks, size: int = 40960, repeats: int = 300) -> float:
    """Processor seconds that a byte costs other than the ranks: the kernel, and the program that delays packets."""
    own, places = torch.zeros(size // 4), {peer: torch.zeros(size // 4) for peer in ranks.peers}
    dist.barrier()
    (_, machine, _), used = processor_seconds(), time.process_time()
    for _ in range(repeats):
        messages = [ranks.mesh.send(peer, own) for peer in ranks.peers]
        messages += [ranks.mesh.receive(peer, place) for peer, place in places.items()]
        ranks.mesh.finish(messages)
    dist.barrier()
    total = torch.tensor(time.process_time() - used, dtype=torch.float64)
    machine = processor_seconds()[1] - machine
    dist.all_reduce(total)
    return max(0.0, machine - float(total)) / (repeats * size * len(ranks.peers) * ranks.size)


def busy(step: Callable[[Tensor], Any], frames: Tensor, ranks: Ranks) -> float:
    """Processor seconds of a step without exchanges, while all ranks compute."""
    until, used, count = time.perf_counter() + 0.03 * ranks.size, time.process_time(), 0
    while time.perf_counter() < until:
        step(frames[count % len(frames)])
        count += 1
    return (time.process_time() - used) / count


def on_link(ranks: Ranks, arguments: argparse.Namespace) -> dict[str, Any]:
    """Exchanges without computing; and for each kind of parallelism a step with exchanges, and one without.

    Without exchanges, a rank first computes while the others sleep (`program`); then all compute at once (`busy`).
    """
    options = {"units": arguments.units, "layers": 4, "inputs": arguments.units, "preset": arguments.preset}
    rows = arguments.rows * 2
    frames = random_frames(arguments.steps, rows, arguments.units)
    record: dict[str, Any] = {**options, "rows": rows, "frames": len(frames), "exchanges": exchanges(ranks)}
    record["forwarding"] = forwarding(ranks)
    kinds: dict[str, Any] = {}
    for kind in ("units", "rows", "layers"):
        dry, log = dry_step(network(**options), kind, ranks.rank, ranks.size, rows)
        for x in frames[:3]:  # the first steps differ from all others
            dry(x)
        kinds[kind] = shared_step(options, ranks, kind, rows), dry, log
    rounds: dict[str, list[list[Any]]] = {kind: [] for kind in kinds}
    for turn in range(arguments.rounds + 1):
        for kind, (shared, dry, log) in kinds.items():
            dist.barrier()
            together = timed(shared, frames)
            program: Any = None
            for one in range(ranks.size):
                dist.barrier()
                program = log.program(dry, frames) if one == ranks.rank else program
            dist.barrier()
            rounds[kind] += [[together, busy(dry, frames, ranks), program]] if turn else []
    record["steps"] = {
        kind: {
            "seconds": middle([together for together, *_ in triples]),
            "rounds": [together for together, *_ in triples],
            "busy": middle([used for _, used, _ in triples]),
            "program": middle_program([program for *_, program in triples]),
        }
        for kind, triples in rounds.items()
    }
    return record


def middle(values: list[float]) -> float:
    """The mean of the middle half. The machine's speed varies, and a median would be one speed or the other."""
    few = len(values) // 4
    return mean(sorted(values)[few : len(values) - few])


def middle_program(programs: list[list[list[Any]]]) -> list[list[Any]]:
    return [
        ["compute", middle([one[1] for one in same])] if same[0][0] == "compute" else same[0]
        for same in zip(*programs, strict=True)
    ]


def grid(ranks: Ranks, arguments: argparse.Namespace) -> list[dict[str, Any]]:
    """The time of one process for the part of one of `size` ranks, and for the whole, by width, batch and `size`."""
    out = []
    for units, rows, size in GRID:
        options = {"units": units, "layers": 4, "inputs": units, "preset": arguments.preset}
        frames = random_frames(6 if units < 1000 else 3, rows, units)
        steps = {"units": dry_step(network(**options), "units", 0, size, rows)[0]}
        if size == 1:
            steps = {"alone": alone_step(options, rows)}
        if size == 2:  # the second of four ranks with a layer each
            steps["layers"] = dry_step(network(**options), "layers", 1, 4, rows)[0]
        for kind, step in steps.items():
            times = [timed(step, frames) for _ in range(3)]
            count = 4 if kind == "layers" else size
            out.append({"units": units, "rows": rows, "size": count, "kind": kind, "seconds": median(times[1:])})
    return out


WHAT = {"efficiency": efficiency, "layers": layers, "links": on_link, "grid": grid}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=WHAT)
    parser.add_argument("--ranks", type=int, nargs="+")
    parser.add_argument("--rows", type=int, default=20, help="of a rank")
    parser.add_argument("--units", type=int, help="of a layer")
    parser.add_argument("--layers", type=int, default=3)
    parser.add_argument("--inputs", type=int, default=4096)
    parser.add_argument("--steps", type=int, default=15, help="in a block")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--preset", default="best")
    parser.add_argument("--link", help="one of the networks, or grid, for `links`; keeps the results of the others")
    parser.add_argument("--split", default="units", choices=("units", "rows"))
    arguments = parser.parse_args()
    arguments.units = arguments.units or {"links": 500}.get(arguments.what, 1000)
    if "RANK" in os.environ:
        end_with_parent(1)  # a rank that keeps running would disturb the next measurement
        torch.set_num_threads(1)
        with connect() as ranks:
            print(json.dumps(WHAT[arguments.what](ranks, arguments)), flush=True)
        return
    flags = [arguments.what]
    for name in ("rows", "units", "layers", "inputs", "steps", "rounds", "preset", "split"):
        flags += [f"--{name}", str(getattr(arguments, name))]
    if arguments.what != "links":
        ((record,), *_) = run_ranks((arguments.ranks or [2])[0], __file__, *flags)
        if arguments.what == "efficiency":
            print(f"efficiency {record['efficiency']:.3f}, {record['milliseconds']}; ", end="")
            print(f"a rank sends {record['bytes_a_step']:,.0f} bytes a step, ", end="")
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
    path = RESULTS / "links.json"
    before = json.loads(path.read_text()) if path.exists() else {}
    record = {"runs": before.get("runs", {}), "grid": before.get("grid", [])}
    for link in LINKS:
        for count in arguments.ranks or (2, 3, 4):
            if arguments.link in (None, link.name):
                with places(link, count) as where:
                    by_rank = [rank[0] for rank in run_ranks(count, __file__, *flags, where=where)]
                about = {"link": link.name, "ranks": count, "burst": link.burst if link.rate else 0}
                record["runs"][f"{link.name}, {count} ranks"] = {
                    **about,
                    "others": round(others(), 3),
                    "by_rank": by_rank,
                }
                steps = {kind: round(1e3 * step["seconds"], 2) for kind, step in by_rank[0]["steps"].items()}
                print(link.name, count, steps, flush=True)
    if arguments.link in (None, "grid"):
        ((record["grid"],),) = run_ranks(1, __file__, "grid", *flags[1:])
    write("links", record)


if __name__ == "__main__":
    main()
