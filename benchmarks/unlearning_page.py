"""docs/stability.md and its figure, from the records of benchmarks/unlearning.py."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ptncn.report.drawing import canvas, finish, legend_below, rules

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs/stability.md"
FIGURES = ROOT / "docs/figures"
METRICS = {"video": ("ce", "CE, nats a frame"), "text": ("bpc", "bits a character")}
INTRODUCTION = """# Stability

Does a network that trains on and on unlearn? `python benchmarks/unlearning.py run NAME` trains one, and records the validation error and the largest singular value of each matrix after every epoch; `python benchmarks/unlearning.py page` makes this page from the records in `results/stability/`.

With the paper's coupling the displacement that teaches is the correction of the state, β E e. As W and E grow it leaves the range where φ is nearly linear, saturated units are displaced one way only, and the validation error rises again. A small displacement (`teaching="small"`, preset `best`) does not grow with E, and output biases that begin at the mean observation (`output_bias="mean"`) leave no direction of W₁ to play their part.
"""  # noqa: E501


def load(records: Path) -> dict[str, dict[str, Any]]:
    return {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(records.glob("*.json"))}


def draw(kind: str, records: dict[str, dict[str, Any]]) -> None:
    metric, label = METRICS[kind]
    with rules():
        figure, (left, right) = canvas(width=7.2, ncols=2)
        for name, record in records.items():
            epochs = [row["epoch"] for row in record["rows"]]
            left.plot(epochs, [row["valid"][metric] for row in record["rows"]], marker="o", label=name)
            right.plot(epochs, [row["norms"]["W1"] for row in record["rows"]], marker="o", label=name)
        left.set(xlabel="epochs", ylabel=label, title="validation error")
        right.set(xlabel="epochs", ylabel="largest singular value", title="W₁")
        legend_below(figure, left)
        picture = finish(figure, f"stability-{kind}")
    (FIGURES / f"stability-{kind}.svg").write_bytes(picture.svg)


def table(kind: str, records: dict[str, dict[str, Any]]) -> str:
    metric, label = METRICS[kind]
    lines = [
        f"| run | epochs | best ({label}) | last | above its best | W₁, first → last | E₁, first → last |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, record in records.items():
        rows = record["rows"]
        errors, first, last = [row["valid"][metric] for row in rows], rows[0]["norms"], rows[-1]["norms"]
        above = 100 * (errors[-1] / min(errors) - 1)
        lines.append(
            f"| `{name}` | {len(rows)} of {record['epochs']} | {min(errors):.3f} | {errors[-1]:.3f} | {above:.1f} % "
            f"| {first['W1']:.1f} → {last['W1']:.1f} | {first['E1']:.1f} → {last['E1']:.1f} |"
        )
    return "\n".join(lines)


def write_page(folder: Path) -> None:
    records, parts = load(folder), [INTRODUCTION]
    for kind, title in (("video", "Bouncing digits"), ("text", "Penn Treebank")):
        chosen = {name: record for name, record in records.items() if record.get("data") == kind}
        if chosen:
            draw(kind, chosen)
            commands = "\n".join(record["command"] for record in chosen.values())
            picture = f"![validation error and norm of W₁ by epoch](figures/stability-{kind}.svg)"
            parts += [f"## {title}\n", table(kind, chosen) + "\n", picture + "\n", f"```\n{commands}\n```\n"]
    PAGE.write_text("\n".join(parts), encoding="utf-8")
