"""Measure lines per second and memory of `ptncn stream` from file to file, including learning."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.progress import Progress

from ptncn.streaming import Stream, default_learner
from ptncn.streaming.options import LearnerSpec
from ptncn.streaming.sources import Block
from ptncn.system import resident_memory

COLUMNS = 8
CHUNK = 10_000
SHARES = (0.02, 0.1, 0.25, 0.5, 0.75, 0.98)
"""Shares of all lines after which memory is measured."""
POLL = 0.1


def write_feed(path: Path, count: int) -> None:
    """Eight slow sines with noise, with four digits after the decimal point."""
    draw, paces = np.random.default_rng(0), np.linspace(0.01, 0.1, COLUMNS)
    with path.open("w", encoding="ascii") as file:
        file.write(",".join(f"c{column}" for column in range(COLUMNS)) + "\n")
        for start in range(0, count, CHUNK):
            t = np.arange(start, min(start + CHUNK, count))[:, None]
            np.savetxt(file, np.sin(t * paces) + 0.1 * draw.normal(size=(len(t), COLUMNS)), "%.4f", delimiter=",")


def write_keyed_feed(path: Path, keys: int, rounds: int) -> None:
    """Rows with one column, one for each key in turn."""
    draw = np.random.default_rng(0)
    with path.open("w", encoding="ascii") as file:
        file.write("device,value\n")
        for t in range(rounds):
            values = np.sin(0.05 * t + np.arange(keys)) + 0.1 * draw.normal(size=keys)
            file.writelines(f"d{key},{value:.4f}\n" for key, value in enumerate(values))


def run(lines: int, folder: Path, marks: list[int], *options: str) -> dict[str, Any]:
    """Seconds and memory of one process for a new file; the memory is also measured after the lines in `marks`."""
    write_feed(folder / "feed.csv", lines)
    return run_command(folder, lines, marks, "--hidden", "32,32", *options)


def run_command(folder: Path, lines: int, marks: list[int], *options: str) -> dict[str, Any]:
    """The same for the existing file."""
    feed, out = folder / "feed.csv", folder / "out.csv"
    out.unlink(missing_ok=True)
    out.touch()
    command = [sys.executable, "-m", "ptncn", "stream", str(feed), *options, "--quiet", "--out", str(out)]
    used, start = os.times().children_user, time.perf_counter()
    process, passed = subprocess.Popen(command, stdout=subprocess.DEVNULL), []
    with out.open("rb") as file, Progress(transient=True) as progress:
        task, written = progress.add_task(f"ptncn stream, {lines:,} lines", total=lines), -1
        while process.poll() is None:
            time.sleep(POLL)
            written += sum(chunk.count(b"\n") for chunk in iter(lambda: file.read(1 << 20), b""))
            progress.update(task, completed=max(written, 0))
            while marks[len(passed) :] and written >= marks[len(passed)] and process.poll() is None:
                passed.append({"lines": written, "megabytes": round(resident_memory(process.pid) / 1e6, 1)})
        seconds = time.perf_counter() - start
        written += file.read().count(b"\n")
    if process.returncode or written != lines:
        raise RuntimeError(f"`ptncn stream` ended with {process.returncode} after {written} of {lines} lines")
    return {"seconds": round(seconds, 2), "user_seconds": round(os.times().children_user - used, 2), "memory": passed}


def bare_step(steps: int = 3000) -> float:
    """Processor time of one step of the network by itself in microseconds, called from Python: 8 columns, 2 × 32."""
    torch.set_num_threads(1)
    network = default_learner(2 * COLUMNS)
    state, rows = network.begin(1), torch.randn(steps, 2 * COLUMNS, generator=torch.Generator().manual_seed(0))
    start = time.process_time()
    for row in rows.split(1):
        network.step(row, state)
    return round(1e6 * (time.process_time() - start) / steps, 1)


def bank(weights: str, threads: int, keys: int = 1000, rounds: int = 100) -> dict[str, Any]:
    """Observations a second in Python, for blocks with one row of one column for each key, and 1 × 32 units."""
    torch.set_num_threads(threads)
    os.environ["OMP_NUM_THREADS"] = str(threads)  # for the threads that share the keys
    stream = Stream(network=LearnerSpec(hidden=(32,)), key="device", weights=weights)
    draw, names = np.random.default_rng(0), tuple(map(str, range(keys)))
    lines = list(range(1, keys + 1))
    values = draw.normal(size=(rounds + 10, keys)).tolist()
    blocks = [Block(("device", "value"), list(zip(names, row, strict=True)), lines) for row in values]
    for block in blocks[:10]:
        stream.feed_block(block)
    used, start = time.process_time(), time.perf_counter()
    for block in blocks[10:]:
        stream.feed_block(block)
    seconds, used = time.perf_counter() - start, time.process_time() - used
    return {
        "weights": weights,
        "threads": threads,
        "observations_per_second": round(rounds * keys / seconds),
        "observations_per_processor_second": round(rounds * keys / used),
    }


def keyed(folder: Path, weights: str, keys: int, rounds: int, hidden: str) -> dict[str, Any]:
    """Run a file with many keys through the command line: lines a second after the start, and peak memory."""
    options = ("--key", "device", "--weights", weights, "--hidden", hidden)
    write_keyed_feed(folder / "feed.csv", 1, 1)
    start = run_command(folder, 1, [], *options)
    lines = keys * rounds
    write_keyed_feed(folder / "feed.csv", keys, rounds)
    marks = [int(share * lines) for share in (0.5, 0.75, 0.9, 0.98)]
    measured = run_command(folder, lines, marks, *options)
    return {
        "weights": weights,
        "keys": keys,
        "hidden": hidden,
        "lines": lines,
        "seconds": measured["seconds"],
        "lines_per_second_after_start": round((lines - 1) / (measured["seconds"] - start["seconds"])),
        "lines_per_processor_second_after_start": round(
            (lines - 1) / (measured["user_seconds"] - start["user_seconds"])
        ),
        "megabytes": max((at["megabytes"] for at in measured["memory"]), default=None),
    }


def measure_many(folder: Path) -> dict[str, Any]:
    """Many keys: the bank in Python, the command line, and the memory of 10,000 keys."""
    limit = os.environ.pop("OMP_NUM_THREADS", None)
    banks = [bank(weights, threads) for weights in ("own", "shared") for threads in (1, 2)]
    del os.environ["OMP_NUM_THREADS"]
    if limit is not None:
        os.environ["OMP_NUM_THREADS"] = limit
    commands = [keyed(folder, weights, 1000, 200, "32") for weights in ("own", "shared")]
    memory = [
        keyed(folder, weights, 10_000, 4, hidden)
        for weights, hidden in (("own", "32,32"), ("own", "32"), ("shared", "32,32"))
    ]
    return {"bank": banks, "keyed": commands, "ten_thousand_keys": memory}


def measure(lines: int) -> dict[str, Any]:
    """One long file, a file with a single line to time the start alone, two horizons, and many keys."""
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        bare = bare_step()
        start = run(1, place, [])
        measured = run(lines, place, [int(share * lines) for share in SHARES])
        horizons, in_processor_time = {}, {}
        for horizon in (1, 24):
            ahead = run(lines, place, [], "--horizon", str(horizon))
            horizons[str(horizon)] = round((lines - 1) / (ahead["seconds"] - start["seconds"]))
            used = ahead["user_seconds"] - start["user_seconds"]
            in_processor_time[str(horizon)] = round((lines - 1) / used)
        many = measure_many(place)
    after_start = (lines - 1) / (measured["seconds"] - start["seconds"])
    in_processor = (lines - 1) / (measured["user_seconds"] - start["user_seconds"])
    return {
        "loadavg": round(load, 2),
        "columns": COLUMNS,
        "hidden": [32, 32],
        "lines": lines,
        "start_seconds": start["seconds"],
        **measured,
        "lines_per_second": round(lines / measured["seconds"]),
        "lines_per_second_after_start": round(after_start),
        "lines_per_processor_second_after_start": round(in_processor),
        "bare_step_microseconds": bare,
        "row_in_bare_steps": round(1e6 / in_processor / bare, 2),
        "horizon_lines_per_second_after_start": horizons,
        "horizon_lines_per_processor_second_after_start": in_processor_time,
        **many,
    }
