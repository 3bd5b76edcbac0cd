"""The appendix's complexity table: measured time and memory of a step against units, layers and length."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

import numpy as np
import torch

from ptncn.experiments.base import Cells, Experiment, Findings, Job
from ptncn.experiments.workshop import Interrupted, Workshop
from ptncn.learners import make
from ptncn.learners.registry import names
from ptncn.metrics import Cost
from ptncn.records import Record
from ptncn.system import peak_memory, reset_peak_memory


@dataclass(frozen=True)
class Config:
    units: tuple[int, ...] = (128, 256, 512, 1024)
    """As many inputs as units, so that every matrix is n × n, as in the paper's analysis."""
    cubic_units: tuple[int, ...] = (16, 32, 64, 128)
    """Of exact RTRL and KF-RTRL, whose state or time grows faster than n²."""
    layers: tuple[int, ...] = (1, 2, 4, 8)
    """Of the P-TNCN; the cells have one."""
    lengths: tuple[int, ...] = (25, 50, 100, 200)
    """Steps of a sequence; powers of two of TBPTT's window."""
    length: int = 20
    """Of a sequence, where units or layers vary."""
    width: int = 128
    """Units, where layers or the length vary; `cubic_width` for those of `cubic_units`."""
    cubic_width: int = 32
    repeats: int = 5
    """The median of so many sequences is taken; one more goes before them."""


SCALES = {
    "smoke": Config((8, 16), (4, 8), (1, 2), (25, 50), 4, 8, 4, repeats=1),
    "laptop": Config(),
    "paper": Config(repeats=20),
}

PAPER: dict[str, tuple[float, float, float]] = {
    "bptt": (2, 2, 1),
    "tbptt": (2, 2, 1),
    "rtrl": (4, 3, 1),
    "uoro": (2, 2, 1),
    "ptncn": (2, 2, 1),
}
"""By rule: exponents of n in the time and the space of a step, and of the length in the time of a sequence."""


def config(job: Job) -> dict[str, Any]:
    return {**asdict(SCALES[job.scale]), "seed": job.seed}


def run(job: Job, workshop: Workshop) -> Findings:
    size = SCALES[job.scale]
    cubic = job.model.endswith("rtrl")
    width = size.cubic_width if cubic else size.width
    reset_peak_memory()

    def measure(units: int, length: int, layers: int = 1) -> dict[str, float]:
        if workshop.stop.requested:
            raise Interrupted(str(job))
        return _measure(job, units, length, layers, size.repeats)

    grid = size.cubic_units if cubic else size.units
    by_units = {n: measure(n, size.length) for n in grid}
    by_length = {length: measure(width, length) for length in size.lengths}
    metrics: dict[str, Any] = {
        "units": {str(n): value for n, value in by_units.items()},
        "length": {str(length): value for length, value in by_length.items()},
        "time_exponent_units": exponent(grid, [each["seconds_a_step"] for each in by_units.values()]),
        "memory_exponent_units": exponent(grid, [each["bytes"] for each in by_units.values()]),
        "time_exponent_length": exponent(size.lengths, [each["seconds"] for each in by_length.values()]),
        "memory_exponent_length": exponent(size.lengths, [each["state_bytes"] for each in by_length.values()]),
    }
    if job.model == "ptncn":
        by_layers = {count: measure(width, size.length, count) for count in size.layers}
        metrics["layers"] = {str(count): value for count, value in by_layers.items()}
        metrics["time_exponent_layers"] = exponent(size.layers, [each["seconds"] for each in by_layers.values()])
    return Findings(metrics, peak_memory=peak_memory())


def _measure(job: Job, units: int, length: int, layers: int, repeats: int) -> dict[str, float]:
    """Of learning from one sequence of `length` steps of `units` numbers, the update at its end included."""
    hidden: Any = [units] * layers if job.model == "ptncn" else units
    cost = Cost(make(job.model, input_size=units, hidden_size=hidden, seed=job.seed))
    chance = torch.Generator().manual_seed(job.seed)
    frames = torch.rand(length, 1, units, generator=chance)
    seconds = []
    for _ in range(repeats + 1):
        cost.reset()
        state = cost.begin(1)
        for x in frames:
            cost.step(x, state)
        cost.end(state)
        seconds.append(cost.compute()["seconds_a_frame"] * length)
    measured = cost.compute()
    typical = median(seconds[1:])
    return {
        "seconds": typical,
        "seconds_a_step": typical / length,
        "state_bytes": measured["state_bytes"],
        "bytes": measured["state_bytes"] + measured["learner_bytes"],
    }


def exponent(sizes: Sequence[int], values: Sequence[float]) -> float:
    """Of the power law through the larger half of the sizes, where what is constant weighs least.

    >>> round(exponent([1, 2, 4, 8], [1.0, 2.0, 16.0, 64.0]), 6)
    2.0
    """
    half = min(len(sizes) // 2, len(sizes) - 2)
    x, y = np.log(sizes[half:]), np.log(np.maximum(values[half:], 1e-12))
    return float(np.polyfit(x, y, 1)[0])


def cells(record: Record) -> Cells:
    wanted = ("time_exponent_units", "memory_exponent_units", "time_exponent_length", "memory_exponent_length")
    table: Cells = {name: {"": record.metrics[name]} for name in wanted}
    largest = max(record.metrics["units"], key=int)
    table["ms_a_step"] = {f"{largest} units": record.metrics["units"][largest]["seconds_a_step"] * 1e3}
    if "time_exponent_layers" in record.metrics:
        table["time_exponent_layers"] = {"": record.metrics["time_exponent_layers"]}
    return table


def _paper() -> dict[str, dict[str, dict[str, float]]]:
    known = {name: PAPER[rule] for name in names() if (rule := name.partition("-")[2] or name) in PAPER}
    table = {
        metric: {name: {"": values[place]} for name, values in known.items()}
        for place, metric in enumerate(("time_exponent_units", "memory_exponent_units", "time_exponent_length"))
    }
    return {**table, "time_exponent_layers": {"ptncn": {"": 1.0}}}


EXPERIMENT = Experiment(
    name="complexity",
    about="appendix: time and memory of a step against units, layers and length, for every learner",
    models={"random": tuple(name for name in names() if name not in ("copy", "mean"))},
    seeds={"smoke": 1, "laptop": 1, "paper": 1},
    config=config,
    run=run,
    cells=cells,
    paper=_paper(),
)
