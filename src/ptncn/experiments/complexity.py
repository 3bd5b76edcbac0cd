"""The complexity table of the appendix: measured time and memory of a step, by units, layers and sequence length."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

import numpy as np
import torch

from ptncn.experiments.experiment import Cells, Experiment, FigureSpec, PageSpec
from ptncn.experiments.run import Interrupted, RunContext, RunSpec
from ptncn.experiments.runner import Result
from ptncn.learners import make
from ptncn.learners.registry import LEARNERS, describe
from ptncn.metrics import Cost
from ptncn.records import Record
from ptncn.system import peak_memory, reset_peak_memory


@dataclass(frozen=True)
class CostConfig:
    units: tuple[int, ...] = (128, 256, 512, 1024)
    """As many inputs as units, so that every matrix is n × n, as in the paper's analysis."""
    cubic_units: tuple[int, ...] = (16, 32, 64, 128)
    """Units of learners of the size classes in `CUBIC`."""
    layers: tuple[int, ...] = (1, 2, 4, 8)
    """Layers of the P-TNCN; the other learners have one."""
    lengths: tuple[int, ...] = (25, 50, 100, 200)
    """Steps of a sequence: the window of TBPTT times powers of two."""
    length: int = 20
    """Steps of a sequence while units or layers vary."""
    width: int = 128
    """Units while layers or the length vary; `cubic_width` for learners that use `cubic_units`."""
    cubic_width: int = 32
    repeats: int = 5
    """Sequences timed after one to warm up; the result is their median."""


CUBIC = ("exact", "factored")
"""Size classes with a state or a step time that grows faster than n²."""

SCALES = {
    "smoke": CostConfig((8, 16), (4, 8), (1, 2), (25, 50), 4, 8, 4, repeats=1),
    "laptop": CostConfig(),
    "paper": CostConfig(repeats=20),
}

PAPER: dict[str, tuple[float, float, float]] = {
    "bptt": (2, 2, 1),
    "tbptt": (2, 2, 1),
    "rtrl": (4, 3, 1),
    "uoro": (2, 2, 1),
    "ptncn": (2, 2, 1),
}
"""For each rule, the exponents of n in the time and memory of a step, and of the length in the time of a sequence."""


def values(spec: RunSpec) -> dict[str, Any]:
    return {**asdict(spec.config), "seed": spec.seed}


def run(spec: RunSpec, context: RunContext) -> Result:
    size = spec.config
    cubic = describe(spec.learner).size_class in CUBIC
    width = size.cubic_width if cubic else size.width
    reset_peak_memory()

    def measure(units: int, length: int, layers: int = 1) -> dict[str, float]:
        if context.stop.requested:
            raise Interrupted(str(spec))
        return _measure(spec, units, length, layers)

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
    if describe(spec.learner).size_class == "layers":
        by_layers = {count: measure(width, size.length, count) for count in size.layers}
        metrics["layers"] = {str(count): value for count, value in by_layers.items()}
        metrics["time_exponent_layers"] = exponent(size.layers, [each["seconds"] for each in by_layers.values()])
    return Result(metrics, peak_memory=peak_memory())


def _measure(spec: RunSpec, units: int, length: int, layers: int) -> dict[str, float]:
    """The cost of learning one sequence of `length` steps of `units` numbers, with the update at its end."""
    hidden: Any = [units] * layers if describe(spec.learner).size_class == "layers" else units
    cost = Cost(make(spec.learner, input_size=units, hidden_size=hidden, seed=spec.seed, **spec.options))
    generator = torch.Generator().manual_seed(spec.seed)
    frames = torch.rand(length, 1, units, generator=generator)
    seconds = []
    for _ in range(spec.config.repeats + 1):
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
    """The exponent of a power law fitted to the larger half of the sizes, where constant costs matter least.

    >>> round(exponent([1, 2, 4, 8], [1.0, 2.0, 16.0, 64.0]), 6)
    2.0
    """
    half = min(len(sizes) // 2, len(sizes) - 2)
    x, y = np.log(sizes[half:]), np.log(np.maximum(values[half:], 1e-12))
    return float(np.polyfit(x, y, 1)[0])


def cells(record: Record) -> Cells:
    names = ("time_exponent_units", "memory_exponent_units", "time_exponent_length", "memory_exponent_length")
    table: Cells = {name: {"": record.metrics[name]} for name in names}
    largest = max(record.metrics["units"], key=int)
    table["ms_a_step"] = {f"{largest} units": record.metrics["units"][largest]["seconds_a_step"] * 1e3}
    if "time_exponent_layers" in record.metrics:
        table["time_exponent_layers"] = {"": record.metrics["time_exponent_layers"]}
    return table


def _paper() -> dict[str, dict[str, dict[str, float]]]:
    known = {name: PAPER[rule] for name in LEARNERS if (rule := name.partition("-")[2] or name) in PAPER}
    table = {
        metric: {name: {"": values[place]} for name, values in known.items()}
        for place, metric in enumerate(("time_exponent_units", "memory_exponent_units", "time_exponent_length"))
    }
    return {**table, "time_exponent_layers": {"ptncn": {"": 1.0}}}


GROWTH = FigureSpec(
    "growth",
    {
        "rows": (
            *("ptncn", "lstm-bptt", "lstm-tbptt", "lstm-sab"),
            *("lstm-uoro", "lstm-kf-rtrl", "lstm-rtrl", "esn-ridge"),
        ),  # one cell per rule keeps the figure readable
        "panels": (
            ("units", "seconds_a_step", "time_exponent_units", "Time of a step by units", "units", "seconds a step"),
            ("units", "bytes", "memory_exponent_units", "Memory by units", "units", "bytes"),
            ("length", "seconds", "time_exponent_length", "Time of a sequence by its length", "steps", "seconds"),
            ("length", "state_bytes", "memory_exponent_length", "Memory of the state by length", "steps", "bytes"),
            ("layers", "seconds", "time_exponent_layers", "Time of a sequence by layers", "layers", "seconds"),
        ),  # what varies, what is measured, the metric of the exponent, the title, and the labels of the axes
    },
)

PAGE = PageSpec(
    title="Appendix: the cost of a step",
    question="How do the time and memory of learning grow with units, layers and the length of a sequence? The paper "
    "gives bounds; here every learner is measured.",
    metrics=(
        "**Exponents** of power laws fitted to the larger half of the sizes. The paper's O(n²) is an exponent of 2. An "
        "exponent at most 0.2 higher still counts as within the bound, because constant costs affect small sizes.",
        "**ms a step**: median time of one learning step at the largest size.",
    ),
    metric_labels={
        "time_exponent_units": "time by units",
        "memory_exponent_units": "memory by units",
        "time_exponent_length": "time by length",
        "memory_exponent_length": "memory of the state by length",
        "time_exponent_layers": "time by layers",
        "ms_a_step": "ms a step",
    },
    choices=(14,),
    unstated=("There are as many inputs as units, so that every matrix is n × n, as in the paper's analysis.",),
    paper_config=lambda record: asdict(SCALES["paper"]),
    bounds=True,
    figures=(GROWTH,),
)

EXPERIMENT = Experiment(
    name="complexity",
    about="appendix: time and memory of a step by units, layers and length",
    rows={"random": tuple(name for name, entry in LEARNERS.items() if entry.size_class != "none")},
    config=lambda data, scale: SCALES[scale],
    seeds={"smoke": 1, "laptop": 1, "paper": 1},
    values=values,
    run=run,
    cells=cells,
    paper=_paper(),
    page=PAGE,
)
