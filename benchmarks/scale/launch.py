"""Start ranks as torchrun does, and read what they print."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil
import torch
from links import Place
from torch.distributed import TCPStore

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "results" / "scale"


def ranks(
    count: int, program: Path | str, *arguments: str, timeout: float = 7200.0, where: Sequence[Place] = ()
) -> list[tuple[int, str, str]]:
    """Run a Python program on `count` ranks; return the exit code, output and errors of each."""
    where = where or [Place((), {"MASTER_ADDR": "127.0.0.1"})] * count
    common = {"WORLD_SIZE": str(count), "OMP_NUM_THREADS": "1", "MASTER_PORT": "29555"}
    # a separate store, so that no other program takes its port; a namespace has no other programs
    if not where[0].prefix:
        store = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
        common |= {"MASTER_PORT": str(store.port), "TORCHELASTIC_USE_AGENT_STORE": "True"}
    started = [
        subprocess.Popen(
            [*where[rank].prefix, sys.executable, str(program), *arguments],
            env=os.environ | common | {"RANK": str(rank)} | where[rank].environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(count)
    ]
    try:
        said = [process.communicate(timeout=timeout) for process in started]
    finally:
        for process in started:
            process.kill()
            process.wait()
    return [(process.returncode, *words) for process, words in zip(started, said, strict=True)]


def run_ranks(count: int, program: Path | str, *arguments: str, where: Sequence[Place] = ()) -> list[list[Any]]:
    """What each rank printed, one JSON value per line; if a rank fails, this program ends."""
    lines = []
    for code, printed, errors in ranks(count, program, *arguments, where=where):
        if code:
            raise SystemExit(f"a rank ended with {code}: {errors[-2000:]}")
        lines.append([json.loads(line) for line in printed.splitlines()])
    return lines


def processor_seconds() -> tuple[float, float, float]:
    """The time now, the seconds for which cores were busy, and those used by this program and its finished children."""
    times, own = psutil.cpu_times(), os.times()
    return time.monotonic(), sum(times) - times.idle - times.iowait, sum(own[:4])


_BEGAN = processor_seconds()


def others() -> float:
    """The share of all cores that other programs have used since this one began."""
    (now, busy, own), (then, busy_then, own_then) = processor_seconds(), _BEGAN
    return (busy - busy_then - (own - own_then)) / (now - then) / (os.cpu_count() or 1)


def command() -> str:
    """How this program was called."""
    return " ".join(["python", f"benchmarks/scale/{Path(sys.argv[0]).name}", *sys.argv[1:]])


def write(name: str, record: dict[str, Any]) -> None:
    """Write results/scale/`name`.json, including the machine and the command."""
    about = {"command": command(), "date": datetime.now(UTC).date().isoformat(), "torch": torch.__version__}
    about |= {"cores": os.cpu_count(), "machine": platform.machine(), "others": round(others(), 3)}
    RESULTS.mkdir(parents=True, exist_ok=True)
    path = RESULTS / f"{name}.json"
    path.write_text(json.dumps({**about, **record}, indent=1) + "\n")
    print(f"written: {path.relative_to(ROOT)}; other programs used {about['others']:.1%} of the processor")
