"""Kill `stream`, `train` and `reproduce` with SIGKILL at random moments; each continuation must give the same bytes."""

from __future__ import annotations

import json
import random
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from common import Command, parser, record, warm_up, write_feed

TIMES = ("started", "finished", "seconds", "peak_memory", "command")
"""Fields of a record about when and how it was run, not about its results."""


def stream(folder: Path) -> list[object]:
    """With so many forecasts, lines are formatted and written in the background."""
    every = ("--checkpoint", folder / "c.ckpt", "--checkpoint-every", 0.02, "--hidden", 8)
    wide = ("--out", folder / "out.csv", "--horizon", 24)
    return ["stream", folder.parent / "feed.csv", *wide, "--on-error", "skip", *every]


def train(folder: Path) -> list[object]:
    sizes = ("--units", 8, "--sequences", 10, "--epochs", 2, "--batch-size", 5, "--canvas", 28)
    return ["train", "ptncn", "digits", *sizes, *_folders(folder)]


def reproduce(folder: Path) -> list[object]:
    chosen = ("--scale", "smoke", "--learners", "ptncn,esn-rls", "--data", "mnist", "--seeds", 1, "--epochs", 2)
    return ["reproduce", "prediction", *chosen, *_folders(folder)]


def _folders(folder: Path) -> tuple[object, ...]:
    return ("--out", folder / "out", "--runs", folder / "runs", "--checkpoint-every", 0)


COMMANDS: dict[str, Callable[[Path], list[object]]] = {"stream": stream, "train": train, "reproduce": reproduce}


def outcome(folder: Path) -> dict[str, bytes]:
    """All results of a command, without intermediate checkpoints and without the times in records."""
    contents = {}
    for path in sorted(folder.rglob("*")):
        inside = path.relative_to(folder)
        if path.is_file() and inside.parts[0] not in ("runs", "c.ckpt", "log"):
            contents[str(inside)] = _without_times(path) if path.suffix == ".json" else path.read_bytes()
    return contents


def _without_times(path: Path) -> bytes:
    tree = {key: value for key, value in json.loads(path.read_bytes()).items() if key not in TIMES}
    return json.dumps(tree, sort_keys=True).encode()


def campaign(name: str, count: int, seed: int, where: Path) -> Iterator[dict[str, Any]]:
    """Kill the command until `count` kills have hit a running process; yields intermediate results."""
    rng = random.Random(f"{seed}:{name}")
    folder = where / "whole"
    folder.mkdir()
    started = time.monotonic()
    if Command(COMMANDS[name](folder), folder / "log").wait() != 0:
        raise RuntimeError((folder / "log").read_text())
    seconds, whole = time.monotonic() - started, outcome(folder)
    summary: dict[str, Any] = {"kills": 0, "identical": 0, "before_a_checkpoint": 0, "left_over": 0, "problems": []}
    while summary["kills"] < count:
        shutil.rmtree(folder)
        folder.mkdir()
        process, moment = Command(COMMANDS[name](folder), folder / "log"), rng.uniform(0, seconds)
        if process.wait(moment) is not None or not process.kill():
            seconds *= 0.95  # it ended before the signal
            continue
        summary["kills"] += 1
        summary["before_a_checkpoint"] += not (_checkpoints(folder) or _finished(folder))
        summary["left_over"] += len(list(folder.rglob(".*.part")))
        again = Command([*COMMANDS[name](folder), "--resume"], folder / "log")
        same = again.wait() == 0 and _same(outcome(folder), whole)
        summary["identical"] += same
        if not same:
            summary["problems"].append({"kill": summary["kills"], "moment": moment, "said": again.said()[-2000:]})
        if summary["kills"] % 10 == 0 or summary["kills"] == count:
            yield summary


def _checkpoints(folder: Path) -> list[Path]:
    return [*folder.rglob("*.ckpt"), *folder.rglob("*.safetensors")]


def _finished(folder: Path) -> bool:
    """Whether a run of the experiment is complete: its checkpoints are gone, and `--resume` skips it."""
    return any(json.loads(path.read_bytes())["status"] == "finished" for path in folder.rglob("*.json"))


def _same(one: dict[str, bytes], other: dict[str, bytes]) -> bool:
    return {name: data for name, data in one.items() if not name.endswith(".part")} == other


def main() -> None:
    arguments = parser(__doc__, 100)
    arguments.add_argument("--commands", default=",".join(COMMANDS), help="the commands to test")
    options = arguments.parse_args()
    warm_up()
    started = time.time()
    results: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as temporary:
        for name in options.commands.split(","):
            where = Path(temporary) / name
            where.mkdir()
            write_feed(where / "feed.csv", 8_000, options.seed)
            for so_far in campaign(name, options.count, options.seed, where):
                results[name] = so_far
                record("kills", options, results, started)


if __name__ == "__main__":
    main()
