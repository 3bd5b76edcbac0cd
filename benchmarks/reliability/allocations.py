"""Check for leaks: memory allocated by the C allocator and by Python while the default learner takes steps.

The resident memory of a process includes free memory that the allocator keeps, so this script records both. It does so
after each block of steps with a new learner and a checkpoint, as in the run of ten million steps. Requires glibc.
"""

from __future__ import annotations

import ctypes
import gc
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
from common import MEMORY, parser, record
from endurance import BLOCK, COLUMNS, FRESH, feed, take

import ptncn
from ptncn.streaming import default_learner
from ptncn.system import resident_memory

FIELDS = ["arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost"]


class Mallinfo(ctypes.Structure):
    """`struct mallinfo2` of glibc."""

    _fields_ = [(name, ctypes.c_size_t) for name in FIELDS]


def measure(steps: int) -> dict[str, Any]:
    library = ctypes.CDLL(None)
    library.mallinfo2.restype = Mallinfo
    gc.collect()
    info = library.mallinfo2()
    return {
        "steps": steps,
        "allocated_megabytes": round((info.uordblks + info.hblkhd) / 1e6, 3),
        "free_megabytes": round(info.fordblks / 1e6, 3),
        "resident_megabytes": round(resident_memory() / 1e6, 1),
        "python_blocks": sys.getallocatedblocks(),
    }


def main() -> None:
    options = parser(__doc__, 1_000_000).parse_args()
    torch.set_num_threads(1)
    started, points = time.time(), []
    learner = default_learner(COLUMNS)
    state = learner.begin(1)
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as folder:
        for start in range(0, options.count, BLOCK):
            xs = feed(start, BLOCK, options.seed)
            take(learner, state, xs)
            young = default_learner(COLUMNS)
            take(young, young.begin(1), xs[:FRESH])
            ptncn.save(Path(folder) / "learner.ckpt", learner, state)
            points.append(measure(start + BLOCK))
    record("allocations", options, {"points": points}, started)


if __name__ == "__main__":
    main()
