"""Sections of the page for the extras; a section is empty if the record does not have its extra."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

HELPS = 0.95
"""An option helps if a step takes at most this share of the default time."""


def markdown_table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """
    >>> print(*markdown_table(("case", "ms"), [("read", "2.3")]), sep="\\n")
    | case | ms |
    |---|---|
    | read | 2.3 |
    """
    return [_line(headings), "|" + "---|" * len(headings), *map(_line, rows)]


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def memory(record: dict[str, Any]) -> list[str]:
    if "memory" not in record:
        return []
    lengths = [
        (f"`{each['what']}`, {each['shape']}", f"{each['steps']:,}", f"{each['peak'] / 1e6:.1f}")
        for each in record["memory"]["lengths"]
    ]
    peaks = [
        (
            f"`{each['what']}`, {each['shape']}, batch {each['batch']}",
            f"{each['held'] / 1e6:.1f}",
            f"{each['peak'] / 1e6:.1f}",
            f"{each['peak'] / each['held']:.2f}",
        )
        for each in record["memory"]["peaks"]
    ]
    return [
        "## Memory",
        "",
        "Peak resident memory of a separate process, in addition to what it used before the learner was made.",
        "",
        *markdown_table(("learner", "steps in the sequence", "peak, MB"), lengths),
        "",
        *markdown_table(("learner", "weights and optimiser state, MB", "peak, MB", "ratio"), peaks),
    ]


def growth(record: dict[str, Any]) -> list[str]:
    if "growth" not in record:
        return []
    times = record["growth"]
    return [
        "## Growth",
        "",
        "Milliseconds per learning step (`ptncn-sgd`).",
        "",
        *_growing("units, n-2xn at batch 20", times["units"]),
        "",
        f"For large n the time grows as n to the power {times['exponent_units']:.2f}.",
        "",
        *_growing("layers, of 500 units at batch 20", times["layers"]),
        "",
        f"A straight line through these has R² = {times['layers_r2']:.4f}.",
        "",
        *_growing("batch, 1000-2x1000", times["batch"]),
    ]


def _growing(what: str, times: dict[str, float]) -> list[str]:
    return markdown_table((what, *times), [("ms", *(f"{ms:.3f}" for ms in times.values()))])


def long_runs(record: dict[str, Any]) -> list[str]:
    runs = [
        (
            f"`{each['what']}`, {each['shape']}",
            f"{each['steps']:,}",
            f"{1000 * each['first_ms']:.1f}",
            f"{1000 * each['last_ms']:.1f}",
            f"{each['denormals']:,} of {each['numbers']:,}",
        )
        for each in record.get("long", [])
    ]
    lines = []
    if runs:
        headings = ("network", "steps", "µs per step, first tenth", "last tenth", "denormal numbers")
        silence = (
            "In the second half all observations are 0, so every trace decays. Blocks in the last tenth are timed in "
            "turn with blocks of a fresh network."
        )
        lines += ["## Long runs", "", silence, "", *markdown_table(headings, runs)]
    if "generator" in record:
        data = record["generator"]
        lines += [*([""] if lines else []), "## Data", ""]
        lines += [
            f"A batch of bouncing video, {data['frames']} frames, takes {data['generate_ms']:.2f} ms to generate "
            f"and {data['learn_ms']:.0f} ms to learn from: generating data takes {data['share']:.2%} of a training run."
        ]
    return lines


def options(record: dict[str, Any]) -> list[str]:
    rows_of_options = [*record.get("options", []), *record.get("trace-memory", [])]
    if not rows_of_options:
        return []
    rows = []
    for each in rows_of_options:
        where = f"{each['shape']}, batch {each['batch']}: `{each['of']}`"
        if "failed" in each:
            rows.append((each["option"], where, "", "", each["failed"]))
        else:
            ratio = each["ms"] / each["plain_ms"]
            verdict = "" if each["option"].startswith("memory") else ", helps" if ratio <= HELPS else ", does not help"
            milliseconds = f"{each['plain_ms']:.3f}", f"{each['ms']:.3f}"
            rows.append((each["option"], where, *milliseconds, f"{ratio:.2f} ×{verdict}"))
    headings = ("option", "where", "default, ms", "with the option, ms", "effect")
    return ["## Options", "", "Other settings, and their effect on this machine.", "", *markdown_table(headings, rows)]


def profiles(record: dict[str, Any]) -> list[str]:
    measured = [each for each in record.get("profile", []) if each]
    if not measured:
        return []
    rows = [
        (f"{each['shape']}, batch {each['batch']}", f"{each['ms']:.3f}", *(f"{s:.1%}" for s in each["shares"].values()))
        for each in measured
    ]
    return [
        "## Where the time goes",
        "",
        "Shares of a `ptncn-sgd` step, by the kernel's own clock. The rest includes deferred updates (batch 1, large "
        "networks), errors, displacements, copies of states, and the interpreter.",
        "",
        *markdown_table(("network", "ms", *measured[0]["shares"]), rows),
    ]
