"""What a run was measured on, and whether it had the machine to itself."""

from __future__ import annotations

import os
import platform
from datetime import date
from pathlib import Path
from typing import Any

import torch

import ptncn
from ptncn import kernels

BUSY = 0.5
"""Load average above which the machine has something else to do."""
COMPANY = 0.05
"""Share of the cores that others may take during the run."""


def describe_machine(load: float) -> dict[str, Any]:
    """`load` is the load average before the start; whoever knows what others did since then adds it as "others"."""
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
    """Of the last minute; 0 where the system does not keep it."""
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0


def warning(machine: dict[str, Any]) -> str | None:
    if is_idle(machine):
        return None
    others = machine["others"]
    during = "" if others is None else f", and others took {others:.0%} of the cores during the run"
    return (
        f"the machine was not idle: the load average was {machine['load']} before the start{during}. Up to {BUSY} and "
        f"{COMPANY:.0%} would be right. These times say little; ratios between them a little more"
    )


def is_idle(machine: dict[str, Any]) -> bool:
    return bool(machine["load"] <= BUSY and (machine["others"] or 0.0) <= COMPANY)


def _processor() -> str:
    listing = Path("/proc/cpuinfo")
    if listing.exists():
        for line in listing.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or "unknown"
