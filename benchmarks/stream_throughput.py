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
from rich.progress import Progress

from ptncn.system import resident_memory

COLUMNS = 8
CHUNK = 10_000
SHARES = (0.02, 0.1, 0.25, 0.5, 0.75, 0.98)
"""Of all lines: where memory is looked at."""
POLL = 0.1


def write_feed(path: Path, count: int) -> None:
    """Eight slow sines with noise, four digits behind the point."""
    draw, paces = np.random.default_rng(0), np.linspace(0.01, 0.1, COLUMNS)
    with path.open("w", encoding="ascii") as file:
        file.write(",".join(f"c{column}" for column in range(COLUMNS)) + "\n")
        for start in range(0, count, CHUNK):
            t = np.arange(start, min(start + CHUNK, count))[:, None]
            np.savetxt(file, np.sin(t * paces) + 0.1 * draw.normal(size=(len(t), COLUMNS)), "%.4f", delimiter=",")


def run(lines: int, folder: Path, marks: list[int]) -> dict[str, Any]:
    """Seconds and memory of one process over a new file; the memory also after the lines of `marks`."""
    feed, out = folder / "feed.csv", folder / "out.csv"
    write_feed(feed, lines)
    out.touch()
    command = [sys.executable, "-m", "ptncn", "stream", str(feed), "--hidden", "32,32", "--out", str(out)]
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


def measure(lines: int) -> dict[str, Any]:
    """One long file, and one of a single line for what the start alone takes."""
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as folder:
        start = run(1, Path(folder), [])
        found = run(lines, Path(folder), [int(share * lines) for share in SHARES])
    return {
        "loadavg": round(load, 2),
        "columns": COLUMNS,
        "hidden": [32, 32],
        "lines": lines,
        "start_seconds": start["seconds"],
        **found,
        "lines_per_second": round(lines / found["seconds"]),
        "lines_per_second_after_start": round((lines - 1) / (found["seconds"] - start["seconds"])),
        "lines_per_processor_second_after_start": round((lines - 1) / (found["user_seconds"] - start["user_seconds"])),
    }
