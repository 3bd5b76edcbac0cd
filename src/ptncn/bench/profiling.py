"""Where the time of a step goes: PyTorch's operations, and the interpreter between them."""

from __future__ import annotations

from typing import Any

from torch.profiler import ProfilerActivity, profile

from ptncn.bench.contestants import make_contestant
from ptncn.bench.shapes import Shape
from ptncn.bench.timing import seconds

TOP = 6


def profile_step(shape: Shape, what: str = "ptncn-sgd", units: int = 2) -> dict[str, Any]:
    """Calls a step, and the share of each operation in a step's time; what is left is the interpreter's.

    Shares are those under the profiler, which makes each call some microseconds longer.
    """
    contestant = make_contestant(what, shape)
    contestant.run(contestant.unit)
    steps = max(10, units * contestant.unit)
    with profile(activities=[ProfilerActivity.CPU]) as recording:
        elapsed = seconds(lambda: contestant.run(steps))
    entries = [entry for entry in recording.key_averages() if entry.key.startswith("aten::")]
    entries.sort(key=lambda entry: -entry.self_cpu_time_total)
    inside = sum(entry.self_cpu_time_total for entry in entries) / 1e6
    return {
        "shape": shape.name,
        "batch": shape.batch,
        "what": what,
        "calls": sum(entry.count for entry in entries) / steps,
        "interpreter": max(0.0, 1 - inside / elapsed),
        "operations": [
            {
                "name": entry.key.removeprefix("aten::"),
                "calls": entry.count / steps,
                "share": entry.self_cpu_time_total / 1e6 / elapsed,
            }
            for entry in entries[:TOP]
        ],
    }
