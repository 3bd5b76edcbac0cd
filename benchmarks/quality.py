"""The table in docs/choices.md about optimisers and credit, from the records of `text.py` and `video.py`.

python benchmarks/quality.py
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from statistics import fmean
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RECORDS = ROOT / "results/learners"
PAGE = ROOT / "docs/choices.md"
PLACE = re.compile(r"(<!-- quality:.*?-->\n).*?(<!-- end of quality -->)", re.DOTALL)
TEXT = {
    "text-best": "the preset: Adam, traced credit",
    "text-immediate": "immediate credit",
    "text-adafactor": "Adafactor",
}
VIDEO = {
    "video": "the preset: Adam",
    "video-adafactor": "Adafactor",
    "video-rmsprop": "RMSprop with a constant step, weights from 0.025",
}


def recorded(names: dict[str, str]) -> dict[str, str]:
    return {name: what for name, what in names.items() if (RECORDS / f"{name}.json").is_file()}


def load(name: str) -> dict[str, Any]:
    record: dict[str, Any] = json.loads((RECORDS / f"{name}.json").read_text(encoding="utf-8"))
    return record


def text_row(name: str, what: str) -> str:
    record = load(name)
    last = record["curve"][-1]
    return f"| {what} | {last['valid_bpc']:.3f} | `{record['command']}` |"


def video_row(name: str, what: str) -> str:
    record = load(name)
    rows = record["rows"]
    cells = []
    for split in ("valid", "test"):
        if all(split in row for row in rows):
            cells.append(" / ".join(f"{fmean(row[split][metric] for row in rows):.2f}" for metric in ("ce", "se")))
        else:
            cells.append("")
    return f"| {what} | {len(rows)} | {' | '.join(cells)} | `{record['command']}` |"


def table() -> str:
    """Markdown: text, then video."""
    text = "text, 600 units, memory 128, 0.6 million characters", "bits per character, validation", "command"
    video = "bouncing digits, 3 × 500 units, 2,000 videos", "seeds", "CE / SE, validation", "CE / SE, test", "command"
    return "\n".join(
        [
            f"| {' | '.join(text)} |",
            "|---" * len(text) + "|",
            *(text_row(name, what) for name, what in recorded(TEXT).items()),
            "",
            f"| {' | '.join(video)} |",
            "|---" * len(video) + "|",
            *(video_row(name, what) for name, what in recorded(VIDEO).items()),
        ]
    )


def main() -> None:
    text = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(PLACE.sub(lambda found: f"{found[1]}{table()}\n{found[2]}", text), encoding="utf-8")


if __name__ == "__main__":
    main()
