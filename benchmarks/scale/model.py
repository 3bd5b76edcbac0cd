"""What a step costs on N ranks, from what one rank computes and what an exchange takes.

    python benchmarks/scale/steps.py links   # measures, alone on the machine
    python benchmarks/scale/model.py         # compares, and writes its part of the page and the plot

A rank computes, sends, computes on, and waits for what the others sent. Its computing is timed without exchanges, on
as many ranks at once as there are cores; ranks that share a core take turns. An exchange of b bytes costs α + b / β,
from exchanges without computing. What it costs on loopback is work of the processor and adds up; what a slower network
adds to that goes on while the rank computes, and only what is left of it at the wait is waited for.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
from launch import RESULTS, ROOT
from scipy.optimize import nnls

PAGE, PLOT = ROOT / "docs" / "scale.md", ROOT / "docs" / "figures" / "scale.svg"
BEGIN, END = "<!-- model: benchmarks/scale/model.py -->", "<!-- end of model -->"
LAYERS = 4


@dataclass(frozen=True)
class Cost:
    """Of an exchange: `latency` in seconds, and seconds a byte."""

    latency: float
    a_byte: float

    def __call__(self, size: float) -> float:
        return self.latency + size * self.a_byte

    @classmethod
    def fit(cls, points: list[list[float]]) -> Cost:
        """Least squares of relative errors, without negative values."""
        size, seconds = np.array(points).T
        found, _ = nnls(np.stack([1 / seconds, size / seconds], 1), np.ones(len(seconds)))
        return cls(*map(float, found))


def simulated(step: dict[str, Any], turns: int, work: Cost, link: Cost, one_way: bool) -> float:
    """Seconds of a step of one rank: `work` of the processor for an exchange, and `link`, which goes on beside it.

    `one_way`: of three exchanges, the first goes only up and the second only down, with half of the bytes of the third.
    """
    late = free = 0.0
    first = min(number for _, _, number in step["exchanges"])
    arrivals: dict[int, float] = {}
    for at, whole, number in step["exchanges"]:
        size = whole / 2 if one_way and (number - first) % 3 < 2 else whole
        if size:
            late += size * work.a_byte
            free = max(free, at * turns + late) + size * link.a_byte
            arrivals[number] = free + link.latency
        else:
            late += work.latency
            late += max(0.0, arrivals.get(number, 0.0) - (at * turns + late))
    return float(step["dry_seconds"] * turns + late)


def predicted(record: dict[str, Any], run: dict[str, Any], kind: str) -> float:
    """Seconds of a step of a measured run, from everything but that step."""
    what, turns = "pass" if kind == "layers" else "gather", -(-run["ranks"] // record["cores"])
    loopback = record["runs"][f"loopback, {run['ranks']} ranks"]
    work, whole = (Cost.fit(each["by_rank"][0]["exchanges"][what]) for each in (loopback, run))
    link = Cost(max(0.0, whole.latency - work.latency), max(0.0, whole.a_byte - work.a_byte))
    one_way = kind == "layers" and run["ranks"] > 2
    return max(simulated(rank["steps"][kind], turns, work, link, one_way) for rank in run["by_rank"])


def comparison(record: dict[str, Any]) -> list[tuple[str, int, str, float, float]]:
    """Link, ranks, kind, measured and predicted seconds."""
    return [
        (
            run["link"],
            run["ranks"],
            kind,
            max(r["steps"][kind]["seconds"] for r in run["by_rank"]),
            predicted(record, run, kind),
        )
        for run in record["runs"].values()
        for kind in run["by_rank"][0]["steps"]
    ]


def features(units: int, rows: int, size: int) -> list[float]:
    """What a rank does: something; products; reading and writing its weights; what is done for each unit and row."""
    weights = LAYERS * 5 * units**2 / size
    return [1.0, weights * rows, weights, LAYERS * units * rows]


@dataclass(frozen=True)
class Model:
    """Seconds of a step by width, batch, ranks and network, for networks of four layers."""

    alone: np.ndarray
    units: np.ndarray
    layers: np.ndarray
    work: Cost
    """Of the processor, for an exchange."""

    @classmethod
    def fit(cls, record: dict[str, Any]) -> Model:
        rows = record["grid"]
        parts = [cls._fit([row for row in rows if row["kind"] == kind]) for kind in ("alone", "units", "layers")]
        return cls(*parts, work=Cost.fit(record["runs"]["loopback, 2 ranks"]["by_rank"][0]["exchanges"]["gather"]))

    @staticmethod
    def _fit(rows: list[dict[str, Any]]) -> np.ndarray:
        seconds = np.array([row["seconds"] for row in rows])
        matrix = np.array([features(row["units"], row["rows"], row["size"]) for row in rows])
        found: np.ndarray = nnls(matrix / seconds[:, None], np.ones(len(seconds)))[0]
        return found

    def one(self, units: int, rows: int) -> float:
        return float(self.alone @ features(units, rows, 1))

    def exchange(self, messages: int, size: float, link: Cost) -> float:
        """Of `size` bytes with each of some ranks, nothing of which is hidden behind computing."""
        return link.latency + messages * (self.work(size) + size * link.a_byte)

    def by_units(self, units: int, rows: int, ranks: int, link: Cost) -> float:
        """Four exchanges: observations, drives, predictions and errors."""
        share = 4.0 * units * rows / ranks
        exchanged = sum(self.exchange(ranks - 1, count * share, link) for count in (1, LAYERS, LAYERS, LAYERS))
        return float(self.units @ features(units, rows, ranks)) + (exchanged if ranks > 1 else 0.0)

    def by_layers(self, units: int, rows: int, link: Cost) -> float:
        """One layer a rank, as many ranks as layers; states go up, predictions down, corrected states both ways."""
        size = 4.0 * units * rows
        exchanged = sum(self.exchange(messages, size, link) for messages in (1, 1, 2))
        return float(self.layers @ features(units, rows, LAYERS)) + exchanged

    def dense(self, units: int, rows: int, ranks: int, link: Cost) -> float:
        """Each rank its own rows, and a dense all-reduce of all gradients in a ring."""
        share = 4.0 * LAYERS * 5 * units**2 / ranks
        return self.one(units, rows // ranks) + 2 * (ranks - 1) * self.exchange(1, share, link)


NETWORKS = {
    "100 Gbit/s, 10 µs": Cost(10e-6, 8 / 100e9),
    "10 Gbit/s, 50 µs": Cost(50e-6, 8 / 10e9),
    "1 Gbit/s, 200 µs": Cost(200e-6, 8 / 1e9),
    "100 Mbit/s, 5 ms": Cost(5e-3, 8 / 100e6),
}
WIDTHS = [2**i for i in range(5, 15)]


def smallest_width(model: Model, kind: str, rows: int, link: Cost) -> str:
    """From which width on two ranks (layers: four) take less time than one for the same batch."""
    for units in WIDTHS:
        shared = model.by_units(units, rows, 2, link) if kind == "units" else model.by_layers(units, rows, link)
        if shared < model.one(units, rows):
            return f"{units:,}"
    return "never"


def most_ranks(model: Model, units: int, rows: int, link: Cost) -> str:
    """Up to how many ranks, each with `rows` of its own, the efficiency is at least one half."""
    fit = [
        n
        for n in (2**i for i in range(1, 11))
        if model.one(units, rows) >= model.by_units(units, rows * n, n, link) / 2
    ]
    return f"{max(fit):,}" if fit else "none"


def page(record: dict[str, Any]) -> str:
    rows, model = comparison(record), Model.fit(record)
    errors = [abs(guess / seconds - 1) for *_, seconds, guess in rows]
    close = sum(error <= 0.15 for error in errors)
    lines = [
        f"{close} of {len(rows)} runs are predicted within 15 %; median error {np.median(errors):.0%}, largest "
        f"{max(errors):.0%}. Other programs had {record['others']:.0%} of the processor during the measurement "
        f"([record](../results/scale/links.json)).",
        "",
    ]
    lines += ["| network | ranks | kind | measured, ms | predicted, ms | error |", "|---|---|---|---|---|---|"]
    for link, ranks, kind, seconds, guess in rows:
        cells = [link, str(ranks), kind, f"{seconds * 1e3:.2f}", f"{guess * 1e3:.2f}", f"{guess / seconds - 1:+.0%}"]
        lines.append(f"| {' | '.join(cells)} |")
    lines += ["", "From which width on it pays, for four layers (the same batch in less time than one process):", ""]
    batches = (1, 20, 100)
    head = [f"{kind}, batch {batch}" for kind in ("2 ranks by units", "4 ranks by layers") for batch in batches]
    lines += [f"| network | {' | '.join(head)} |", "|---" * (len(head) + 1) + "|"]
    for name, link in NETWORKS.items():
        cells = [smallest_width(model, kind, batch, link) for kind in ("units", "layers") for batch in batches]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    lines += ["", "Most ranks by units at an efficiency of one half or better, with 20 rows each:", ""]
    widths = (500, 1000, 4000)
    lines += [f"| network | {' | '.join(f'{width:,} units' for width in widths)} |", "|---" * (len(widths) + 1) + "|"]
    for name, link in NETWORKS.items():
        lines.append(f"| {name} | {' | '.join(most_ranks(model, width, 20, link) for width in widths)} |")
    return "\n".join([*lines, "", "![Efficiency by ranks](figures/scale.svg)"])


def plot(model: Model) -> None:
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "ptncn"
    from matplotlib import pyplot as plt

    counts = [2**i for i in range(11)]
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), sharey=True, layout="constrained")
    for axis, units in zip(axes, (1000, 4000), strict=True):
        for number, (name, link) in enumerate(NETWORKS.items()):
            alone = model.one(units, 20)
            axis.plot(
                counts, [alone / model.by_units(units, 20 * n, n, link) for n in counts], f"C{number}-", label=name
            )
            axis.plot(counts, [alone / model.dense(units, 20 * n, n, link) for n in counts], f"C{number}:")
        axis.set(xscale="log", xlabel="ranks", title=f"4 × {units:,} units, 20 rows a rank", ylim=(0, None))
    axes[0].set_ylabel("efficiency (dotted: dense all-reduce)")
    axes[0].legend(fontsize=8)
    PLOT.parent.mkdir(exist_ok=True)
    figure.savefig(PLOT, metadata={"Date": None})


def main() -> None:
    record = json.loads((RESULTS / "links.json").read_text())
    text = page(record)
    plot(Model.fit(record))
    before, rest = PAGE.read_text().split(BEGIN)
    PAGE.write_text(f"{before}{BEGIN}\n\n{text}\n\n{END}{rest.split(END)[1]}")
    print(text)


if __name__ == "__main__":
    main()
