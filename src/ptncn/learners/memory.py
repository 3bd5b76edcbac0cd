"""How much memory there is, and sizes in words."""

from __future__ import annotations

import os
from pathlib import Path

MEMINFO = Path("/proc/meminfo")
CGROUP = Path("/sys/fs/cgroup")


def available_memory() -> int:
    """Bytes that this process could still have, by what the system and its container say."""
    system = _of_the_system()
    try:
        limit, used = (int((CGROUP / name).read_text()) for name in ("memory.max", "memory.current"))
    except (OSError, ValueError):  # no container, or "max": one without a limit
        return system
    return min(system, max(0, limit - used))


def _of_the_system() -> int:
    if MEMINFO.exists():
        for line in MEMINFO.read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def in_words(size: float) -> str:
    """
    >>> in_words(163_104_000_000)
    '163 GB'
    >>> in_words(4_096)
    '4.10 kB'
    """
    units = iter(("bytes", "kB", "MB", "GB", "TB", "PB"))
    unit = next(units)
    while size >= 999.5 and unit != "PB":
        size, unit = size / 1000, next(units)
    digits = 0 if unit == "bytes" or size >= 99.95 else 1 if size >= 9.995 else 2
    return f"{size:,.{digits}f} {unit}"
