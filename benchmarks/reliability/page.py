"""Write docs/reliability.md from the records in results/reliability."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
TITLES = {
    "asan": "Sanitizers",
    "walk": "A random walk",
    "divergence": "Kernel and PyTorch at a large step size",
    "inputs": "Damaged files",
    "bits": "Every bit of a checkpoint",
    "kills": "Kills",
    "full-disk": "A full disk",
    "two-writers": "Two processes on one checkpoint",
    "endurance": "Ten million steps",
    "allocations": "Memory while learning",
}
INTRO = """# Reliability

Campaigns that search for crashes, lost files and wrong answers. Each number comes from a record in
`results/reliability`, and each record names its command, seed and commit. This page is made by
`python benchmarks/reliability/page.py`.
"""


def page(records: dict[str, dict[str, Any]]) -> str:
    parts = [INTRO]
    for name, title in TITLES.items():
        if name in records:
            record = records[name]
            note = f"`{record['command']}`, at commit {record['commit']}, {record['date']}."
            parts.append(f"## {title}\n\n{WRITERS[name](record)}\n\n{note}\n")
    return "\n".join(parts)


def _asan(record: dict[str, Any]) -> str:
    libraries = ", ".join(record.get("libraries", ["step"]))
    return (
        f"Compiled code ({libraries}) under the address and undefined-behaviour sanitizers: of the tests in "
        f"{', '.join(f'`{test}`' for test in record['tests'])}, {record.get('passed', 0):,} passed, "
        f"{record.get('failed', 0)} failed, {record.get('reports', 0)} findings."
    )


def _walk(record: dict[str, Any]) -> str:
    calls = sum(count for name, count in record["calls"].items() if name not in ("kernel", "pytorch"))
    sanitized = "" if record["sanitizers"] == "none" else ", with the kernel under the sanitizers"
    rebound = "parameters and moments" if "rebind_moments" in record["calls"] else "parameters"
    return (
        f"{record['sequences']:,} of {record['count']:,} random sequences, {calls:,} calls{sanitized}: sizes, batches, "
        f"masks, threads, precisions, saving and loading, copies, rebound {rebound}, malformed arguments. Two networks "
        f"made each call, one with the kernel and one in PyTorch. Sequences that crashed or gave different results: "
        f"{len(record['failures'])}."
    )


def _divergence(record: dict[str, Any]) -> str:
    steps = next(iter(record["optimizers"].values()))["kernel"]
    heads = [f"{who}, {number} steps" for number in steps for who in ("kernel", "last bit")]
    rows = ["| optimiser | one step | " + " | ".join(heads) + " |", "|---" + "|--:" * (1 + len(heads)) + "|"]
    for name, own in record["optimizers"].items():
        values = [own["one_step"], *(own[who][number] for number in steps for who in ("kernel", "nudged"))]
        rows.append(f"| {name} | " + " | ".join(f"{value:.0e}" for value in values) + " |")
    return (
        f"At a step size of {record['lr']} the weights of kernel and PyTorch drift apart with some optimisers. A "
        "single step from the same weights agrees (“one step” is the largest difference of any step), but the dynamics "
        "amplify rounding errors. A network in PyTorch whose initial weights differ by a unit in the last place (last "
        "bit) drifts apart at the same rate, so the difference is not the kernel's. Double precision; "
        "differences of weights, relative to 1 + the largest weight.\n\n" + "\n".join(rows) + _precisions(record)
    )


def _precisions(record: dict[str, Any]) -> str:
    own = record.get("precisions")
    if own is None:
        return ""
    steps = list(own["float32"]["kernel"])
    heads = [f"{number} steps" for number in steps]
    rows = [
        "| precision | apart from PyTorch | " + " | ".join(heads) + f" | largest at {steps[-1]} | growth per step |"
    ]
    rows.append("|---|---" + "|--:" * (len(heads) + 2) + "|")
    for precision in ("float32", "float64"):
        for who, name in (("kernel", "kernel"), ("nudged", "last bit")):
            part = own[precision]
            values = [*part[who].values(), part[f"{who}_largest"]]
            numbers = " | ".join(f"{value:.0e}" for value in values)
            rows.append(f"| {precision} | {name} | {numbers} | {part[f'{who}_growth']:.2f} |")
    return (
        f"\n\n{own['optimizer'].capitalize()} in both precisions, {own['seeds']} seeds (geometric means). A difference "
        "grows by about the same factor per step whether it began in the kernel or in the last bit, and whether it "
        "began at the rounding of single or of double precision.\n\n" + "\n".join(rows)
    )


def _inputs(record: dict[str, Any]) -> str:
    rows = ["| reader | inputs | accepted | refused | accepted wrongly | crashed | at commit |"]
    rows.append("|---" + "|--:" * 5 + "|---|")
    for name, own in record["readers"].items():
        numbers = (own[key] for key in ("inputs", "accepted", "refused", "wrong", "crashed"))
        rows.append(
            f"| {name} | " + " | ".join(f"{number:,}" for number in numbers) + f" | {', '.join(own['commits'])} |"
        )
    events = sum(bool(finding.get("events")) for finding in record["findings"])
    return (
        f"{record['inputs']:,} damaged files were given to the readers. A reader may refuse a file or a line, or "
        "accept it if an independent reader gets the same values from the same bytes. An audit hook looked for "
        f"attempts to execute, send or write anything: {events} events.\n\n" + "\n".join(rows)
    )


def _bits(record: dict[str, Any]) -> str:
    flips, size, refused = record["flips"], record["bytes"], record["refused"]
    return f"Of {flips:,} files with one bit flipped ({size:,} bytes each), {refused:,} were refused."


def _kills(record: dict[str, Any]) -> str:
    rows = ["| command | kills | identical continuations | before the first checkpoint |", "|---|--:|--:|--:|"]
    for name in ("stream", "train", "reproduce"):
        if name in record:
            own = record[name]
            rows.append(f"| {name} | {own['kills']} | {own['identical']} | {own['before_a_checkpoint']} |")
    return (
        "SIGKILL at a random moment, then `--resume`. A continuation is identical if every file that the command "
        "writes has the same bytes as without a kill, except for the times and memory in records.\n\n" + "\n".join(rows)
    )


def _full_disk(record: dict[str, Any]) -> str:
    return (
        f"The disk was full at {record['moments']} random moments of `ptncn stream`. The checkpoint was valid after "
        f"{record['checkpoint_good']} of them, and the output was correct up to its end after "
        f"{record['output_a_prefix']}. Once space was free again, {record['continued_identically']} runs continued to "
        "the same bytes."
    )


def _two_writers(record: dict[str, Any]) -> str:
    savers, streams = record["savers"], record["streams"]
    whole = savers["of_the_first"] + savers["of_the_second"]
    return (
        f"While two processes kept saving to one path, {whole} of {savers['loads']} loads by a third were "
        f"complete. Of {streams['pairs']} second `ptncn stream` processes on a checkpoint in use, "
        f"{streams['second_refused']} were refused, and {streams['first_undisturbed']} of the first processes ended "
        "with the same bytes as without a second one."
    )


def _endurance(record: dict[str, Any]) -> str:
    return (
        f"{record['steps']:,} learning steps at the default settings of `ptncn stream`, with a new regime every "
        f"250,000. All weights finite: {'yes' if record['finite'] else 'no'}. Time per step in the last tenth relative "
        f"to the first, each measured against a fresh learner: {record['slow_down']}. Median memory: "
        f"{record['megabytes_first_tenth']:.0f} MB in the first tenth, "
        f"{record['megabytes_last_tenth']:.0f} MB in the last. "
        f"Squared error: {record['mse_first_tenth']} in the first tenth, {record['mse_last_tenth']} in the last."
    )


def _allocations(record: dict[str, Any]) -> str:
    points = record["points"][1:]  # the first steps fill caches
    first, last = points[0], points[-1]
    kept, resident = ([each[f"{name}_megabytes"] for each in points] for name in ("free", "resident"))
    return (
        "Resident memory also counts free memory that the C allocator keeps. In the same loop, "
        f"from {first['steps']:,} to {last['steps']:,} steps, allocated memory went from "
        f"{first['allocated_megabytes']:.2f} to {last['allocated_megabytes']:.2f} MB and Python's blocks from "
        f"{first['python_blocks']:,} to {last['python_blocks']:,}, while free memory kept by the allocator varied "
        f"between {min(kept):.0f} and {max(kept):.0f} MB, and resident memory with it between {min(resident):.0f} and "
        f"{max(resident):.0f} MB: fragmentation, not a leak."
    )


WRITERS = {
    "asan": _asan,
    "walk": _walk,
    "divergence": _divergence,
    "inputs": _inputs,
    "bits": _bits,
    "kills": _kills,
    "full-disk": _full_disk,
    "two-writers": _two_writers,
    "endurance": _endurance,
    "allocations": _allocations,
}


def read_records() -> dict[str, dict[str, Any]]:
    folder = ROOT / "results" / "reliability"
    return {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.json"))}


if __name__ == "__main__":
    (ROOT / "docs" / "reliability.md").write_text(page(read_records()), encoding="utf-8")
