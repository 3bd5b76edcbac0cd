"""Make docs/stability.md and its figures from the records of benchmarks/unlearning.py and one of `ptncn reproduce`."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ptncn.records import read_record
from ptncn.report.model import canvas, for_page, legend_below, save, theme

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs/stability.md"
FIGURES = ROOT / "docs/figures"
REPRODUCED = ROOT / "results/paper/prediction/ptncn-best-mnist-0.json"
ENDURANCE = "rls"
METRICS = {"video": ("ce", "CE, nats per frame", 2), "text": ("bpc", "bits per character", 3)}
TITLES = {
    "video": "## Bouncing digits: 3 × 1,000 units, 10,000 videos, 500 for validation",
    "text": "## Penn Treebank: 600 units with a memory of 128, all validation sentences",
}
INTRODUCTION = """# Stability

Does a network get worse if it keeps training? `python benchmarks/unlearning.py run NAME` trains one and records the validation error and the largest singular value of each matrix after every epoch; `python benchmarks/unlearning.py page` generates this page from the records in [results/stability](../results/stability).

With the paper's rules, the weights learn from the correction of the state, β E e. As W and E grow, this displacement leaves the range in which φ is nearly linear, saturated units move in one direction only, and the validation error rises again. A small displacement (`teaching="small"`, in the preset `best`) does not grow with E, and if output biases start at the mean observation (`output_bias="mean"`), no direction of W₁ has to act as a bias. On text, the preset uses units that are bounded on both sides (`relu6`). Unbounded units (`relu`) are as good at first, but with a constant step size V grows until some sentences make the states diverge: in epochs 4 and 5 of `text-constant-relu`, the training error is thousands of bits.

With bounded units and a constant step size, two runs ended the fifth epoch 1.65 % (`text-constant-large`, 0.0004) and 1.03 % (`text-constant-mean`, 0.0001) above their best, although the training error still fell. A single batch causes this: the last but one of that epoch, with the 18 longest sentences of its bucket, up to 518 characters. Because an update is the mean over the batch, each of its rows counts almost three times as much as in a batch of 50, and the last hundred steps come from a single sentence. Ten batches later the damage is gone. Adam is insensitive to the overall size of updates, but not to the size of one update relative to the last thousand. The preset for text therefore sums over rows (`reduction="sum"`), so that a row has the same weight in a batch of any size. With it, a constant step size of 0.0001 (`text-constant`) lowers the error in every epoch.

[Choices](choices.md) has both options.
"""  # noqa: E501

Record = dict[str, Any]


def load(folder: Path) -> dict[str, Record]:
    """Every record of a training; `video-falling` may also be the run behind the table of results."""
    records = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.json"))}
    records = {name: record for name, record in records.items() if "rows" in record}
    if "video-falling" not in records and REPRODUCED.is_file():
        records["video-falling"] = reproduced(asdict(read_record(REPRODUCED)))
    return records


def reproduced(record: Record) -> Record:
    """A record of `ptncn reproduce` in the format of this benchmark, without norms."""
    rows = [{"epoch": i, "valid": errors} for i, errors in enumerate(record["metrics"]["valid_by_epoch"], start=1)]
    used = record["config"]["run_config"]
    note = (
        f"`video-falling` is the run behind the table of results: it uses {used['valid']:,} validation videos and also "
        f"lowers the step size linearly to {used['decay']:g} of its initial value. Its norms were not recorded."
    )
    same = {"command": record["command"], "options": record["learner"]}
    return {"data": "video", "epochs": len(rows), "rows": rows, "note": note, **same}


def step_size(record: Record) -> str:
    """The step size and its schedule, in words."""
    options, schedule = record["options"], record["options"]["schedule"]
    start = f"{options['optimizer']}, {options['lr']:g}"
    if schedule is None and record.get("falls_to", 1.0) == 1.0:
        return f"{start}, constant"
    if schedule is None:
        return f"{start} falling to {record['falls_to']:g} of itself"
    if schedule["kind"] == "root":
        return f"{start} / √(1 + updates / {schedule['steps']})"
    return f"{start} falling to {schedule['final']:g} of itself"


def draw(kind: str, records: dict[str, Record]) -> None:
    metric, label, _ = METRICS[kind]
    measured = {name: record for name, record in records.items() if "norms" in record["rows"][0]}
    with theme():
        figure, axes = canvas(width=7.2, ncols=2)
        for name, record in records.items():
            epochs = [row["epoch"] for row in record["rows"]]
            axes[0].plot(epochs, [row["valid"][metric] for row in record["rows"]], marker="o", label=name)
            if name in measured:
                color = axes[0].lines[-1].get_color()
                for matrix, style in (("W1", "-"), ("E1", ":")):
                    axes[1].plot(epochs, [row["norms"][matrix] for row in record["rows"]], style, color=color)
        axes[0].set(xlabel="epochs", ylabel=label, title="validation error")
        axes[1].set(xlabel="epochs", ylabel="largest singular value", title="W₁ (solid), E₁ (dotted)", ylim=(0, None))
        legend_below(figure, axes[0])
        picture = save(figure, f"stability-{kind}")
    (FIGURES / f"stability-{kind}.svg").write_bytes(for_page(picture.svg))


def table(kind: str, records: dict[str, Record]) -> str:
    metric, label, places = METRICS[kind]
    lines = [
        f"| run | step size | epochs | best ({label}) | last | above its best | W₁, first → last | E₁, first → last |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, record in records.items():
        rows = record["rows"]
        errors = [row["valid"][metric] for row in rows]
        above = 100 * (errors[-1] / min(errors) - 1)
        cells = [f"`{name}`", step_size(record), f"{len(rows)} of {record['epochs']}"]
        cells += [f"{min(errors):.{places}f}", f"{errors[-1]:.{places}f}", f"{above:.2f} %"]
        cells += [_course(rows, matrix) for matrix in ("W1", "E1")]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _course(rows: list[Record], matrix: str) -> str:
    if "norms" not in rows[0]:
        return "not recorded"
    return f"{rows[0]['norms'][matrix]:.1f} → {rows[-1]['norms'][matrix]:.1f}"


def by_epoch(kind: str, records: dict[str, Record]) -> str:
    metric, _, places = METRICS[kind]
    longest = max(len(record["rows"]) for record in records.values())
    lines = [f"| epoch | {' | '.join(map(str, range(1, longest + 1)))} |", f"|---|{'---|' * longest}"]
    for name, record in records.items():
        errors = [f"{row['valid'][metric]:.{places}f}" for row in record["rows"]]
        lines.append(f"| `{name}` | {' | '.join(errors + [''] * (longest - len(errors)))} |")
    return "\n".join(lines)


def odd_batch(folder: Path) -> str:
    """The effect of one small batch of long sentences, if recorded."""
    path = folder / "odd-batch.json"
    if not path.is_file():
        return ""
    record = json.loads(path.read_text(encoding="utf-8"))
    batch, more = record["reductions"][0], record["more_batches"]
    lines = [f"| `reduction` | before | after it | {more} normal batches later |", "|---|---|---|---|"]
    for row in record["reductions"]:
        lines.append(f"| `{row['reduction']}` | {row['before']:.3f} | {row['after']:.3f} | {row['after_more']:.3f} |")
    return f"""### One small batch of long sentences

Bits per character on the first {record["validated"]:,} validation sentences. The preset learns {record["characters"]:,} characters, then a batch of {batch["rows"]} sentences of up to {batch["steps"]} characters, then {more} normal batches ([record](../results/stability/odd-batch.json)).

{chr(10).join(lines)}

```
{record["command"]}
```
"""  # noqa: E501


def without_schedule(folder: Path) -> str:
    """The preset on text with its large initial step size kept constant."""
    paths = [folder / f"text-{name}.json" for name in ("no-schedule", "best")]
    if not all(path.is_file() for path in paths):
        return ""
    kept, falling = (json.loads(path.read_text(encoding="utf-8")) for path in paths)
    usual, lr = falling["curve"][-1], kept["network"]["lr"]
    course = ", ".join(f"{row['valid_bpc']:.3f} after {row['characters']:,} characters" for row in kept["curve"])
    return f"""### A constant step that is far too large

`preset="best", schedule=None` keeps the preset's initial step size, {lr:g}, constant. This is forty times too large; the network learns slowly but does not diverge: {course} ({usual["valid_bpc"]:.3f} after {usual["characters"]:,} with the schedule; [record](../results/learners/text-no-schedule.json)).

```
{kept["command"]}
```
"""  # noqa: E501


def endurance(folder: Path) -> str:
    """The result of ten million steps of recursive least squares, if recorded."""
    path = folder / f"{ENDURANCE}.json"
    if not path.is_file():
        return ""
    record = json.loads(path.read_text(encoding="utf-8"))
    return f"""## Recursive least squares

`readout="rls"` with fast forgetting: {record["steps"]:,} steps, forgetting {record["forgetting"]:g}, ridge {record["ridge"]:g}. The features are active, silent, and active in one direction only, in turn. Without a prior that does not fade, P grows by a factor of 1/{record["forgetting"]:g} at every silent step. Here its largest eigenvalue was {record["largest_P"]:.3f} (the prior's is {record["prior_P"]:g}), its largest asymmetry {record["largest_asymmetry"]:.1e}, and no prediction error was above {record["largest_error"]:.1f} ([record](../results/stability/{ENDURANCE}.json)).

```
{record["command"]}
```
"""  # noqa: E501


def by_kind(records: dict[str, Record]) -> dict[str, dict[str, Record]]:
    """The records of each kind of data, without kinds that have none."""
    by_data = {kind: {name: each for name, each in sorted(records.items()) if each["data"] == kind} for kind in TITLES}
    return {kind: chosen for kind, chosen in by_data.items() if chosen}


def make_page(folder: Path) -> str:
    parts = [INTRODUCTION]
    for kind, chosen in by_kind(load(folder)).items():
        notes = " ".join(record["note"] for record in chosen.values() if "note" in record)
        picture = f"![Validation error and norms by epoch](figures/stability-{kind}.svg)"
        commands = "\n".join(record["command"] for record in chosen.values())
        parts += [TITLES[kind], table(kind, chosen), notes, picture, by_epoch(kind, chosen), f"```\n{commands}\n```"]
    parts += [odd_batch(folder), without_schedule(folder.parent / "learners"), endurance(folder)]
    return "\n\n".join(part.strip() for part in parts if part) + "\n"


def write_page(folder: Path) -> None:
    for kind, chosen in by_kind(load(folder)).items():
        draw(kind, chosen)
    PAGE.write_text(make_page(folder), encoding="utf-8")
