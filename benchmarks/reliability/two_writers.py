"""Two processes on one checkpoint: `stream` refuses the second, and a file saved by both is always complete."""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path
from typing import Any

from common import Command, parser, record, warm_up, write_feed

import ptncn
from ptncn.learners import make

LOADS = 300
"""Number of loads while two other processes save."""


def streams(count: int, seed: int, folder: Path) -> dict[str, int]:
    """Start a second `stream` while the first holds the checkpoint."""
    feed = folder / "feed.csv"
    write_feed(feed, 30_000, seed)
    counts = {"pairs": 0, "second_refused": 0, "first_undisturbed": 0}
    whole = b""
    while counts["pairs"] < count:
        own = folder / f"{time.monotonic_ns()}"
        own.mkdir()
        options = ("--on-error", "skip", "--hidden", 8, "--checkpoint", own / "c.ckpt", "--checkpoint-every", 0.02)
        command = ["stream", feed, "--out", own / "out.csv", *options]
        first = Command(command, own / "first")
        while not (own / "c.ckpt.lock").exists() and first.poll() is None:
            time.sleep(0.001)
        second = Command(command, own / "second")
        late = second.wait() == 0 or "exists already" in second.said() or first.wait() is None
        if not whole:
            alone = own / "alone"
            alone.mkdir()
            if Command([*command[:3], alone / "out.csv", *options[:4]], own / "log").wait() != 0:
                raise RuntimeError((own / "log").read_text())
            whole = (alone / "out.csv").read_bytes()
        if late:  # the first ended before the second started
            continue
        counts["pairs"] += 1
        counts["second_refused"] += second.code == 1 and "is writing this checkpoint already" in second.said()
        counts["first_undisturbed"] += first.code == 0 and (own / "out.csv").read_bytes() == whole
    return counts


def savers(seed: int, folder: Path) -> dict[str, int]:
    """Two processes save to one path while a third loads from it."""
    path = folder / "shared.ckpt"
    learners = [make("ptncn", input_size=3, hidden_size=[4], seed=own) for own in (1, 2)]
    ptncn.save(path, learners[0])
    children = [_save(path, learner) for learner in learners]
    seen = [ptncn.load(path).learner.seed for _ in range(LOADS)]
    (folder / "enough").touch()
    codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    return {
        "loads": LOADS,
        "of_the_first": seen.count(1),
        "of_the_second": seen.count(2),
        "writers_that_failed": sum(code != 0 for code in codes),
        "left_over": len(list(folder.glob(".*.part"))),
    }


def _save(path: Path, learner: Any) -> int:
    child = os.fork()
    if child == 0:
        code = 1
        try:
            while not path.with_name("enough").exists():
                ptncn.save(path, learner)
            code = 0
        finally:
            os._exit(code)
    return child


def main() -> None:
    options = parser(__doc__, 50).parse_args()
    warm_up()
    started = time.time()
    with tempfile.TemporaryDirectory() as folder:
        results = {
            "savers": savers(options.seed, Path(folder)),
            "streams": streams(options.count, options.seed, Path(folder)),
        }
    record("two-writers", options, results, started)


if __name__ == "__main__":
    main()
