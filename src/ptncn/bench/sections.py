"""The parts of the page about what is measured beside the times of a step; each is empty where nothing was."""

from __future__ import annotations

from typing import Any

from ptncn.bench.tabulate import table

HELPS = 0.95
"""An option is worth having where a step takes at most this share of the time."""


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
        "Peak of the resident memory of a process of its own, above what it had before the learner was made.",
        "",
        *table(("learner", "steps of the sequence", "peak, MB"), lengths),
        "",
        *table(("learner", "weights and optimiser state, MB", "peak, MB", "ratio"), peaks),
    ]


def growth(record: dict[str, Any]) -> list[str]:
    if "growth" not in record:
        return []
    found = record["growth"]
    return [
        "## Growth",
        "",
        "Milliseconds of a learning step (`ptncn-sgd`).",
        "",
        *_growing("units, n-2xn at batch 20", found["units"]),
        "",
        f"At large n the time grows with n to the power {found['exponent_units']:.2f}.",
        "",
        *_growing("layers, of 500 units at batch 20", found["layers"]),
        "",
        f"A straight line through these has R² = {found['layers_r2']:.4f}.",
        "",
        *_growing("batch, 1000-2x1000", found["batch"]),
    ]


def _growing(what: str, times: dict[str, float]) -> list[str]:
    return table((what, *times), [("ms", *(f"{ms:.3f}" for ms in times.values()))])


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
        headings = ("network", "steps", "µs a step, first tenth", "last tenth", "denormal numbers")
        silence = (
            "In the second half all observations are 0: whatever can fade, fades. Blocks of the last tenth are timed "
            "in turn with blocks of a second network in its first."
        )
        lines += ["## Long runs", "", silence, "", *table(headings, runs)]
    if "generator" in record:
        data = record["generator"]
        lines += [*([""] if lines else []), "## Data", ""]
        lines += [
            f"A batch of bouncing video, {data['frames']} frames, takes {data['generate_ms']:.2f} ms to make and "
            f"{data['learn_ms']:.0f} ms to learn from: data are {data['share']:.2%} of a training run."
        ]
    return lines


def options(record: dict[str, Any]) -> list[str]:
    if "options" not in record:
        return []
    rows = []
    for each in record["options"]:
        where = f"{each['shape']}, batch {each['batch']}: `{each['of']}`"
        if "failed" in each:
            rows.append((each["option"], where, "", "", each["failed"]))
        else:
            ratio = each["ms"] / each["plain_ms"]
            verdict = f"{ratio:.2f} ×, {'helps' if ratio <= HELPS else 'does not help'}"
            rows.append((each["option"], where, f"{each['plain_ms']:.3f}", f"{each['ms']:.3f}", verdict))
    headings = ("option", "where", "default, ms", "with it, ms", "effect")
    return ["## Options", "", "What else could be switched on, and what it does here.", "", *table(headings, rows)]


def profiles(record: dict[str, Any]) -> list[str]:
    found = [each for each in record.get("profile", []) if each]
    if not found:
        return []
    rows = [
        (f"{each['shape']}, batch {each['batch']}", f"{each['ms']:.3f}", *(f"{s:.1%}" for s in each["shares"].values()))
        for each in found
    ]
    return [
        "## Where the time goes",
        "",
        "Shares in a step of `ptncn-sgd`, by the kernel's own clock. Updates that are written later, as at batch 1 of "
        "large networks, are in the rest, as are errors, displacements, the copying of states, and the interpreter.",
        "",
        *table(("network", "ms", *found[0]["shares"]), rows),
    ]
