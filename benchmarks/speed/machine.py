"""The machine that a benchmark ran on, and whether the machine was idle."""

from __future__ import annotations

import os
import platform
import subprocess
import time
from datetime import date
from pathlib import Path
from typing import Any

import psutil
import torch

import ptncn
from ptncn import kernels
from ptncn.system import busy_seconds

MAX_LOAD = 0.5
"""Highest load average at the start for which a machine counts as idle."""
MAX_OTHERS = 0.05
"""Largest share of the cores that other processes may use during the run."""


class BackgroundLoad:
    """The share of all cores that other processes use, from the creation of this object on.

    >>> 0.0 <= BackgroundLoad().share() <= 1.0
    True
    """

    def __init__(self) -> None:
        self._start, self._busy, self._own = time.perf_counter(), busy_seconds(), _own_seconds()

    def share(self) -> float:
        others = (busy_seconds() - self._busy) - (_own_seconds() - self._own)
        available = (time.perf_counter() - self._start) * (os.cpu_count() or 1)
        return min(1.0, max(0.0, others / max(available, 1e-9)))


def _own_seconds() -> float:
    """Processor time of this process and of its finished children."""
    return sum(os.times()[:4])


def describe_machine(load: float) -> dict[str, Any]:
    """Hardware and versions; `load` is the load average before the start."""
    return {
        "cpu": _processor(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "torch": torch.__version__,
        "ptncn": ptncn.__version__,
        "compiled_kernel": kernels.load() is not None,
        "date": date.today().isoformat(),
        "load": round(load, 2),
        "others": None,
    }


def load_average() -> float:
    """Load average of the last minute."""
    return psutil.getloadavg()[0]


def is_idle(machine: dict[str, Any]) -> bool:
    return bool(machine["load"] <= MAX_LOAD and (machine["others"] or 0.0) <= MAX_OTHERS)


def warning(machine: dict[str, Any]) -> str | None:
    """Why the times of this run are not reliable; None if the machine was idle."""
    if is_idle(machine):
        return None
    others = machine["others"]
    during = "" if others is None else f", and other processes used {others:.0%} of the cores during the run"
    return (
        f"the machine was not idle: the load average was {machine['load']} before the start{during} (limits: "
        f"{MAX_LOAD} and {MAX_OTHERS:.0%}). The times are not reliable; the ratios are somewhat more so"
    )


def _processor() -> str:
    listing = Path("/proc/cpuinfo")
    if listing.exists():
        for line in listing.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    if platform.system() == "Darwin":
        query = ["sysctl", "-n", "machdep.cpu.brand_string"]
        return subprocess.run(query, capture_output=True, text=True, check=False).stdout.strip() or "unknown"
    return platform.processor() or "unknown"
