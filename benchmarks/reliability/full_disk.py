"""Fill the disk at random moments of `ptncn stream`: no good file may be lost, and the run must continue afterwards.

The disk is a tmpfs of 32 megabytes, so this runs as root on Linux. With so many forecasts, lines are formatted and
written in the background.
"""

from __future__ import annotations

import random
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from common import Command, parser, record, warm_up, write_feed

from ptncn.streaming.storage import BlobError, unpack

ROWS = 3_000


@contextmanager
def small_disk(where: Path) -> Iterator[Path]:
    where.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=32m", "tmpfs", where], check=True)
    try:
        yield where
    finally:
        subprocess.run(["umount", "-l", where], check=True)


def fill(disk: Path) -> None:
    """Fill the remaining space."""
    with (disk / "ballast").open("ab", buffering=0) as file:
        for size in (65_536, 4_096, 1):
            try:
                while True:
                    file.write(b"\0" * size)
            except OSError:
                continue


def stream(feed: Path, disk: Path) -> list[object]:
    every = ("--checkpoint", disk / "c.ckpt", "--checkpoint-every", 0.01, "--hidden", 8, "--resume")
    return ["stream", feed, "--out", disk / "out.csv", "--horizon", 24, "--on-error", "skip", *every]


def attempt(feed: Path, disk: Path, moment: float, whole: bytes) -> dict[str, Any] | None:
    """The files after the disk was full, and after space was available again; None if the run had ended before."""
    log = feed.with_name("log")
    process = Command(stream(feed, disk), log)
    if process.wait(moment) is not None:
        return None
    fill(disk)
    code = process.wait()
    said = process.said()
    checkpoint = disk / "c.ckpt"
    good = True
    if checkpoint.exists():
        try:
            unpack(checkpoint.read_bytes())
        except BlobError:
            good = False
    prefix = not (disk / "out.csv").exists() or whole.startswith((disk / "out.csv").read_bytes())
    (disk / "ballast").unlink()
    again = Command(stream(feed, disk), log)
    same = again.wait() == 0 and (disk / "out.csv").read_bytes() == whole
    tracebacks = "Traceback" in said
    return {"code": code, "good": good, "prefix": prefix, "same": same, "traceback": tracebacks, "said": said[-300:]}


def main() -> None:
    options = parser(__doc__, 50).parse_args()
    warm_up()
    rng, started, results = random.Random(options.seed), time.time(), []
    with tempfile.TemporaryDirectory() as temporary:
        feed = Path(temporary) / "feed.csv"
        write_feed(feed, ROWS, options.seed)
        with small_disk(Path(temporary) / "whole") as disk:
            begun = time.monotonic()
            if Command(stream(feed, disk), feed.with_name("log")).wait() != 0:
                raise RuntimeError(feed.with_name("log").read_text())
            seconds, whole = time.monotonic() - begun, (disk / "out.csv").read_bytes()
        index = 0
        while len(results) < options.count:
            index += 1
            with small_disk(Path(temporary) / str(index)) as disk:
                result = attempt(feed, disk, rng.uniform(0, seconds), whole)
            if result is None:
                seconds *= 0.95
                continue
            results.append(result)
            print(len(results), {key: value for key, value in result.items() if key != "said"}, flush=True)
    summary = {
        "moments": len(results),
        "noticed": sum(result["code"] != 0 for result in results),
        "checkpoint_good": sum(result["good"] for result in results),
        "output_a_prefix": sum(result["prefix"] for result in results),
        "continued_identically": sum(result["same"] for result in results),
        "tracebacks": sum(result["traceback"] for result in results),
        "problems": [each for each in results if not (each["good"] and each["prefix"] and each["same"])],
        "said": sorted({result["said"].strip().rpartition("\n")[2].rpartition(": ")[2] for result in results}),
    }
    record("full-disk", options, summary, started)


if __name__ == "__main__":
    main()
