"""Predict the time of a step on N ranks from the computing time of one rank and the cost of an exchange.

    python benchmarks/scale/steps.py links   # measures; needs an otherwise idle machine
    python benchmarks/scale/model.py         # compares, and writes its part of the page and the plot

`simulate.py` simulates the ranks: when they compute, send and wait. Computing is timed without exchanges, one rank at a
time; how much ranks slow each other down is timed with all ranks computing at once. Messages are timed without
computing. None of these measurements comes from the runs that are predicted.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
from launch import RESULTS, ROOT
from scipy.optimize import least_squares, nnls
from simulate import Network, simulated
from steps import REPEATS

PAGE, PLOT = ROOT / "docs" / "scale.md", ROOT / "docs" / "figures" / "scale.svg"
BEGIN, END = "<!-- model: benchmarks/scale/model.py -->", "<!-- end of model -->"
LAYERS = 4


@dataclass(frozen=True)
class Cost:
    """The cost of an exchange: `latency` in seconds, and seconds per byte."""

    latency: float
    a_byte: float

    def __call__(self, size: float) -> float:
        return self.latency + size * self.a_byte

    @classmethod
    def fit(cls, points: list[list[float]]) -> Cost:
        """A fit by least squares of relative errors, without negative values."""
        size, seconds = np.array(points).T
        coefficients, _ = nnls(np.stack([1 / seconds, size / seconds], 1), np.ones(len(seconds)))
        return cls(*map(float, coefficients))


def exchanging(ranks: int, count: int, size: float) -> list[list[Any]]:
    """The programs of ranks that exchange `count` messages with one another, `REPEATS` times."""
    programs = []
    for rank in range(ranks):
        peers, program = [peer for peer in range(ranks) if peer != rank], []
        for turn in range(REPEATS):
            numbers = range(turn * count, (turn + 1) * count)
            program += [["send", number, [[peer, size] for peer in peers]] for number in numbers]
            program += [["wait", [[peer, number] for peer in peers for number in numbers]]]
        programs.append(program)
    return programs


def network_of(run: dict[str, Any], cores: int) -> Network:
    """The network with which the simulation best reproduces the times of exchanges without computing.

    The work of a core comes from measured processor time. For messages it is measured after a pause, because in a step,
    too, the caches hold other data by then; what a byte costs the kernel and other programs is added. For sleeping it
    is the additional time of the smallest exchange if ranks sleep.
    """
    ranks = run["ranks"]
    count, size, seconds, used, asleep = np.median([rank["exchanges"] for rank in run["by_rank"]], 0).T
    messages = count * (ranks - 1)
    parts = np.stack([messages, messages * size], 1)
    message, byte = map(float, nnls(parts / used[:, None], np.ones(len(used)))[0])
    byte += float(np.median([rank["forwarding"] for rank in run["by_rank"]]))
    wait = max(0.0, float(asleep[0] - used[0])) if ranks > cores else 0.0  # otherwise they poll
    programs = [exchanging(ranks, int(n), float(b)) for n, b in zip(count, size, strict=True)]

    def network(micro: np.ndarray) -> Network:
        return Network(wait, message, byte, micro[0] * 1e-6, micro[1] * 1e-6, run["burst"])

    def errors(micro: np.ndarray) -> np.ndarray:
        taken = [max(simulated(program, network(micro), cores=cores)) / REPEATS for program in programs]
        return np.log(np.array(taken) / seconds)

    start = [1e6 * float(seconds[0]), max(1e-4, 1e6 * float((seconds[-1] - seconds[0]) / (size[-1] * (ranks - 1))))]
    return network(least_squares(errors, start, bounds=(0, np.inf), x_scale=start, diff_step=0.05, max_nfev=30).x)


def repeated(program: list[list[Any]], steps: int) -> list[list[Any]]:
    """The program for this many steps; messages of different steps have different numbers."""
    most = max(operation[1] for operation in program if operation[0] == "send")
    out = []
    for step in range(steps):
        for kind, *rest in program:
            if kind == "send":
                out.append([kind, rest[0] + step * most, rest[1]])
            elif kind == "wait":
                out.append([kind, [[peer, number + step * most] for peer, number in rest[0]]])
            else:
                out.append([kind, *rest])
    return out


def predicted(run: dict[str, Any], kind: str, network: Network, cores: int) -> float:
    """The predicted seconds of a step in a measured run, from all measurements except that run."""
    steps, frames = [rank["steps"][kind] for rank in run["by_rank"]], run["by_rank"][0]["frames"]
    alone = [sum(operation[1] for operation in step["program"] if operation[0] == "compute") for step in steps]
    slowdown = [max(1.0, step["busy"] / own) for step, own in zip(steps, alone, strict=True)]
    programs = [repeated(step["program"], frames) for step in steps]
    return max(simulated(programs, network, cores=cores, slowdown=slowdown)) / frames


def comparison(record: dict[str, Any]) -> list[tuple[str, int, str, float, float]]:
    """Link, ranks, kind, measured and predicted seconds."""
    rows = []
    for run in record["runs"].values():
        network = network_of(run, record["cores"])
        for kind in run["by_rank"][0]["steps"]:
            seconds = max(rank["steps"][kind]["seconds"] for rank in run["by_rank"])
            rows.append((run["link"], run["ranks"], kind, seconds, predicted(run, kind, network, record["cores"])))
    return rows


def features(units: int, rows: int, size: int) -> list[float]:
    """The work of a rank: a constant; products; reading and writing its weights; and the work for each unit and row."""
    weights = LAYERS * 5 * units**2 / size
    return [1.0, weights * rows, weights, LAYERS * units * rows]


@dataclass(frozen=True)
class Model:
    """Seconds of a step by width, batch, ranks and network, for networks of four layers."""

    alone: np.ndarray
    units: np.ndarray
    layers: np.ndarray
    work: Cost
    """Seconds of the processor for an exchange."""

    @classmethod
    def fit(cls, record: dict[str, Any]) -> Model:
        rows = record["grid"]
        parts = [cls._fit([row for row in rows if row["kind"] == kind]) for kind in ("alone", "units", "layers")]
        exchanges = record["runs"]["loopback, 2 ranks"]["by_rank"][0]["exchanges"]
        single = [[size, seconds] for count, size, seconds, *_ in exchanges if count == 1]
        return cls(*parts, work=Cost.fit(single))

    @staticmethod
    def _fit(rows: list[dict[str, Any]]) -> np.ndarray:
        seconds = np.array([row["seconds"] for row in rows])
        matrix = np.array([features(row["units"], row["rows"], row["size"]) for row in rows])
        coefficients: np.ndarray = nnls(matrix / seconds[:, None], np.ones(len(seconds)))[0]
        return coefficients

    def one(self, units: int, rows: int) -> float:
        return float(self.alone @ features(units, rows, 1))

    def exchange(self, messages: int, size: float, link: Cost) -> float:
        """Seconds of an exchange of `size` bytes with each of some ranks, without overlap with computing."""
        return link.latency + messages * (self.work(size) + size * link.a_byte)

    def by_units(self, units: int, rows: int, ranks: int, link: Cost) -> float:
        """Four exchanges: observations, drives, predictions and errors."""
        share = 4.0 * units * rows / ranks
        exchanged = sum(self.exchange(ranks - 1, count * share, link) for count in (1, LAYERS, LAYERS, LAYERS))
        return float(self.units @ features(units, rows, ranks)) + (exchanged if ranks > 1 else 0.0)

    def by_layers(self, units: int, rows: int, link: Cost) -> float:
        """One layer per rank; states go up, predictions go down, and corrected states go both ways."""
        size = 4.0 * units * rows
        exchanged = sum(self.exchange(messages, size, link) for messages in (1, 1, 2))
        return float(self.layers @ features(units, rows, LAYERS)) + exchanged

    def dense(self, units: int, rows: int, ranks: int, link: Cost) -> float:
        """Each rank has its own rows, and a ring does a dense all-reduce of all gradients."""
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
    """The smallest width at which two ranks (four for layers) take less time than one for the same batch."""
    for units in WIDTHS:
        shared = model.by_units(units, rows, 2, link) if kind == "units" else model.by_layers(units, rows, link)
        if shared < model.one(units, rows):
            return f"{units:,}"
    return "never"


def most_ranks(model: Model, units: int, rows: int, link: Cost) -> str:
    """The largest number of ranks, with `rows` rows each, at which the efficiency is at least one half."""
    fit = [
        n
        for n in (2**i for i in range(1, 11))
        if model.one(units, rows) >= model.by_units(units, rows * n, n, link) / 2
    ]
    return f"{max(fit):,}" if fit else "none"


def page(record: dict[str, Any]) -> str:
    rows, model = comparison(record), Model.fit(record)
    errors = [abs(prediction / seconds - 1) for *_, seconds, prediction in rows]
    close = sum(error <= 0.15 for error in errors)
    lines = [
        f"{close} of {len(rows)} runs are predicted within 15 %; median error {np.median(errors):.0%}, largest "
        f"{max(errors):.0%}. Other programs used at most "
        f"{max(run['others'] for run in record['runs'].values()):.1%} of the processor during a measurement "
        f"([record](../results/scale/links.json)).",
        "",
    ]
    lines += ["| network | ranks | kind | measured, ms | predicted, ms | error |", "|---|---|---|---|---|---|"]
    for link, ranks, kind, seconds, prediction in rows:
        cells = [
            link,
            str(ranks),
            kind,
            f"{seconds * 1e3:.2f}",
            f"{prediction * 1e3:.2f}",
            f"{prediction / seconds - 1:+.0%}",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    lines += [
        "",
        "Smallest width at which several ranks take less time than one process for the same batch, with four layers:",
        "",
    ]
    batches = (1, 20, 100)
    head = [f"{kind}, batch {batch}" for kind in ("2 ranks by units", "4 ranks by layers") for batch in batches]
    lines += [f"| network | {' | '.join(head)} |", "|---" * (len(head) + 1) + "|"]
    for name, link in NETWORKS.items():
        cells = [smallest_width(model, kind, batch, link) for kind in ("units", "layers") for batch in batches]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    lines += [
        "",
        "Largest number of ranks, split by units with 20 rows each, at an efficiency of at least one half:",
        "",
    ]
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
