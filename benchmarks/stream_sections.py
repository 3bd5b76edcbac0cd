"""Sections of `docs/streams-results.md` about forecasts at several horizons and about anomaly scores."""

from __future__ import annotations

import statistics
from typing import Any

import numpy as np

Record = dict[str, Any]
NEAR = 1.03


def ahead(record: Record) -> list[str]:
    """A table for each horizon: mean absolute errors, the best in bold, with standard errors."""
    results = record["results"]
    names = list(results["copy"])
    complete = [model for model in results if all(name in results[model] for name in names)]
    lines = [
        "## Forecasts 1, 12 and 24 steps ahead",
        "",
        "`python benchmarks/forecasts.py`: mean absolute errors, each forecast being made before what it is about was "
        "seen; the best in bold. ± is the standard error, from means over twenty parts of a stream. `ptncn` is the "
        "default of a stream, the same on all of them; `no network` is its forecaster without the network's states; "
        "`lags` is ridge regression on 48 lags, refitted as it goes. Models that are not here yet are in the "
        "table above, one step ahead. The forecaster's first settings were chosen while looking at these streams, the "
        "later ones on synthetic series; the rivals have default settings on ETT and exchange. Its rank here is an "
        "optimistic one. "
        f"{_verdict(results, names, complete)}",
        "",
    ]
    for horizon in ("1", "12", "24"):
        lines += [f"### {horizon} ahead", "", f"| | {' | '.join(names)} |", "|---" * (len(names) + 1) + "|"]
        best = {name: min(results[model][name][horizon]["mae"] for model in complete) for name in names}
        for model in complete:
            cells = [_cell(results[model][name][horizon], best[name]) for name in names]
            lines.append(f"| `{model}` | {' | '.join(cells)} |")
        lines.append("")
    return lines


def _cell(found: Record, best: float) -> str:
    error = statistics.stdev(found["blocks"]) / len(found["blocks"]) ** 0.5
    text = f"{found['mae']:.3g} ± {error:.1g}"
    return f"**{text}**" if found["mae"] == best else text


def _verdict(results: Record, names: list[str], complete: list[str]) -> str:
    ours = "ptncn" if "ptncn" in complete else "no network"
    rivals = [model for model in complete if model not in ("ptncn", "no network")]
    cells = [(name, horizon) for name in names for horizon in ("1", "12", "24")]

    def ratio(name: str, horizon: str, among: list[str]) -> float:
        best = min(results[model][name][horizon]["mae"] for model in among)
        return float(results[ours][name][horizon]["mae"] / best)

    near = sum(ratio(*cell, rivals) <= NEAR for cell in cells)
    worst = max(cells, key=lambda cell: ratio(*cell, ["copy", "season"]))
    return (
        f"`{ours}` is the best or within 3 % of the best rival in {near} of {len(cells)} cells; against the better of "
        f"copying and the value a season ago it is never worse than by a factor of "
        f"{ratio(*worst, ['copy', 'season']):.2f} ({worst[0]}, {worst[1]} ahead)."
    )


def anomalies(record: Record) -> list[str]:
    families = record["planted"]
    files = "58 files in the manner of the Numenta Anomaly Benchmark"
    lines = [
        "## Anomaly scores",
        "",
        f"`{record['command']}`. Each corpus has {files}: loads, requests, prices, temperatures, demand, traffic, "
        "mentions and artificial days, drawn at random, with planted anomalies. Each file goes through `ptncn stream` "
        "with its defaults. Scores are those of that benchmark's standard profile: 0 is a silent detector, 100 a "
        "perfect one, with one threshold for all files. Settings were chosen on the first family with the seeds "
        f"{', '.join(map(str, record['chosen_on']))}, and on an earlier generator; nothing was chosen on the second "
        "family. Real labelled streams of these kinds have not been tried.",
        "",
    ]
    for family, planted in families.items():
        count = len(next(iter(planted.values())))
        lines += [
            f"| {family} | {' | '.join(f'corpus {seed + 1}' for seed in range(count))} | mean |",
            "|---" * (count + 2) + "|",
        ]
        for name, scores in planted.items():
            lines.append(f"| {name} | {' | '.join(f'{x:.1f}' for x in scores)} | {np.mean(scores):.1f} |")
        lines.append("")
    lines += [
        "`copy` is the same score with the last value in place of the forecaster; the rows below it change one thing "
        "each.",
        "",
        "Alarms a row as a share of the rate asked for, over the files of the last corpus of the first family. A "
        "constant file has none.",
        "",
        "| rate, counted by | least | median | most |",
        "|---|---|---|---|",
    ]
    for name, shares in record["alarm_rates"].items():
        counted = [x for x in shares if x > 0]
        lines.append(f"| {name} | {min(counted):.2f} | {statistics.median(counted):.2f} | {max(counted):.2f} |")
    if record["areas"]:
        detectors = list(next(iter(record["areas"].values())))
        lines += [
            "",
            "SKAB and MGAB: the area under the ROC curve over rows. Their labels cover whole intervals; a score that "
            "speaks at the beginning of an event has to miss most rows of them.",
            "",
            f"| | {' | '.join(detectors)} |",
            "|---" * (len(detectors) + 1) + "|",
        ]
        for name, row in record["areas"].items():
            best = max(row.values())
            cells = [f"**{x:.2f}**" if x == best else f"{x:.2f}" for x in row.values()]
            lines.append(f"| {name} | {' | '.join(cells)} |")
    return [*lines, ""]
