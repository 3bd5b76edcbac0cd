"""`docs/performance.md`, made from a record and from nothing else."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from ptncn.bench.figures import roofline
from ptncn.bench.machine import warning
from ptncn.bench.sections import growth, long_runs, memory, options, profiles
from ptncn.bench.tabulate import table
from ptncn.files import write_atomically

PAGE, FIGURE = "performance.md", "figures/roofline.svg"


def write_page(record_file: Path, docs: Path) -> Path:
    """Write the page and its figure; the page's path."""
    try:
        record = json.loads(record_file.read_text())
        text, figure = make_page(record, record_file.name), roofline(record)
    except (json.JSONDecodeError, KeyError, TypeError) as error:
        raise ValueError(f"{record_file} is not a record of `ptncn bench`: {error!r}") from error
    (docs / FIGURE).parent.mkdir(parents=True, exist_ok=True)
    write_atomically(docs / FIGURE, figure)
    write_atomically(docs / PAGE, text.encode())
    return docs / PAGE


def make_page(record: dict[str, Any], name: str) -> str:
    """Markdown. `name` is that of the record's file in results/bench."""
    parts: list[Callable[[dict[str, Any]], Iterable[str]]] = [targets, times, roof, memory, growth, long_runs]
    lines = [*head(record, name)]
    for part in [*parts, options, profiles, details]:
        if section := list(part(record)):
            lines += ["", *section]
    return "\n".join(lines) + "\n"


def head(record: dict[str, Any], name: str) -> list[str]:
    machine = record["machine"]
    kernel = "with" if machine["compiled_kernel"] else "without"
    lines = [
        "# Performance",
        "",
        f"Made from [`results/bench/{name}`](../results/bench/{name}):",
        "",
        "```",
        f"ptncn bench --out results/bench/{name}",
        f"ptncn bench --page results/bench/{name}",
        "```",
        "",
        f"{machine['cpu']}, {machine['cores']} cores, {machine['threads']} threads; torch {machine['torch']}, "
        f"ptncn {machine['ptncn']} {kernel} its compiled kernel; {machine['date']}; load average before the start "
        f"{machine['load']}. The run took {record['seconds'] / 60:.1f} minutes.",
    ]
    if (line := warning(machine)) is not None:
        lines += ["", f"**Warning: {line}.**"]
    return lines


def targets(record: dict[str, Any]) -> list[str]:
    if not record["targets"]:
        return []
    met = sum(each["met"] for each in record["targets"])
    rows = [
        (each["target"], each["reached"], "met" if each["met"] else "**missed**")
        for each in sorted(record["targets"], key=lambda each: each["met"])
    ]
    heading = f"{met} of {len(rows)} are met."
    return ["## Targets", "", heading, "", *table(("target", "reached", ""), rows)]


def times(record: dict[str, Any]) -> list[str]:
    lines = ["## Times", "", "Milliseconds a step: median and interquartile range of samples taken in turn."]
    for shape, batch in dict.fromkeys((row["shape"], row["batch"]) for row in record["rows"]):
        rows = [row for row in record["rows"] if (row["shape"], row["batch"]) == (shape, batch)]
        cells: Sequence[Sequence[str]] = [
            (
                f"`{row['what']}`",
                f"{row['ms']:.3f}",
                f"{row['iqr']:.3f}",
                f"{1000 / row['ms']:,.0f}",
                "" if row["limit"] == row["what"] else f"{row['ratio']:.2f} × {row['limit']}",
            )
            for row in rows
        ]
        lines += ["", f"### {shape}, batch {batch}", ""]
        lines += table(("what", "ms", "IQR", "steps a second", "ratio"), cells)
        left_out = [each for each in record["skipped"] if (each["shape"], each["batch"]) == (shape, batch)]
        for each in left_out:
            lines += ["", f"`{each['what']}` was left out: {each['reason']}."]
    return lines if record["rows"] else []


def roof(record: dict[str, Any]) -> list[str]:
    machine = record["machine"]
    ways = ", ".join(f"{way} {ms:.2f}" for way, ms in sorted(machine["read_ms"].items(), key=lambda item: item[1]))
    return [
        "## Roofline",
        "",
        f"![Roofline]({FIGURE})",
        "",
        f"A large matrix product reaches {machine['gflops']:.0f} GFLOP/s, and {machine['read_by']} reads "
        f"{machine['gigabytes_a_second']:.1f} GB/s. Ways to read all weights of the largest network once, in ms: "
        f"{ways}.",
    ]


def details(record: dict[str, Any]) -> list[str]:
    return [
        "## How it is measured",
        "",
        "1. All contestants of a shape are built first and take turns, a sample of about 0.15 s each; those whose "
        "samples take longer sit out rounds. A step's time is that of a sample over its steps.",
        "2. Samples of a network at batch 1 are whole cycles of postponed writing, so that the writing is counted.",
        "3. Unrolling learners are timed over sequences of 20 frames, the update at the end included. `lstm-bptt` "
        "predicts each frame when it comes; `lstm-bptt-whole` gets the sequence at once, as one trains offline.",
        "4. `products` are the matrix products of a step into memory that is there already, and nothing else; "
        "`products-learnt-e` where E learns too, `products-eval` where nothing does. `read` is one pass over as many "
        "bytes as there are weights, by the fastest of the ways above.",
        "5. Observations are dense noise in [0, 1], float32; networks have biases, unit rescaling and max-norm 30, "
        "E fixed unless the name says `transpose` or `temporal`.",
        "6. `textbook` is `ptncn.bench.Textbook`: each matrix apart, dense gradients, every norm at every step. Tests "
        "hold it against the network, and find the same numbers.",
        "7. Learners whose memory or time is out of proportion are left out, with the reason.",
    ]
