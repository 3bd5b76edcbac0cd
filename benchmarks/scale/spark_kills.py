"""Kill a Spark query with SIGKILL at random moments and restart it from its checkpoint: is any row lost or repeated?

    python benchmarks/scale/spark_kills.py --kills 20

The program is examples/spark_forecast.py; Python, the JVM and its workers are killed.
At the end the output is compared with that of one process over all files, row by row, to the last digit.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import psutil
import readings
from launch import ROOT, write

PROGRAM = ROOT / "examples" / "spark_forecast.py"


def start(folder: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, str(PROGRAM), *(str(folder / name) for name in ("in", "out", "checkpoint"))]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def commits(folder: Path) -> int:
    """Batches that the query has committed."""
    return len([path for path in (folder / "checkpoint" / "commits").glob("*") if path.name.isdigit()])


def run_for_a_while(folder: Path, chance: random.Random) -> dict[str, float] | None:
    """Start the query and kill it: while it starts, or some time after its first, second or third commit.

    Moments are counted in commits, because the speed of the machine varies. None if the query ended first.
    """
    before, query, began = commits(folder), start(folder), time.monotonic()
    more = chance.choice((0, 1, 1, 2, 3))
    while query.poll() is None and commits(folder) < before + more:
        time.sleep(0.01)
    with suppress(subprocess.TimeoutExpired):
        query.wait(chance.uniform(0, 2 if more else 15))
    if query.poll() is not None:
        if query.returncode:
            raise SystemExit(f"the query ended with {query.returncode}")
        return None
    kill(query)
    return {"seconds": time.monotonic() - began, "commits_before": before, "commits_after": commits(folder)}


def kill(query: subprocess.Popen[bytes]) -> None:
    with suppress(psutil.NoSuchProcess):
        process = psutil.Process(query.pid)
        family = [process, *process.children(recursive=True)]
        for each in family:
            with suppress(psutil.NoSuchProcess):
                each.kill()
        psutil.wait_procs(family)
    query.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--files", type=int, default=60)
    parser.add_argument("--devices", type=int, default=8)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    chance, rounds = random.Random(arguments.seed), []
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        readings.write(
            folder / "in",
            devices=arguments.devices,
            rows=5 * arguments.files,
            files=arguments.files,
            seed=arguments.seed,
        )
        while len(rounds) < arguments.kills and (found := run_for_a_while(folder, chance)):
            rounds.append(found)
            print(found, flush=True)
        last = start(folder)
        if last.wait():
            raise SystemExit(f"the last query ended with {last.returncode}")
        expected, said = readings.expected(folder / "in", 2), readings.said(folder / "out")
    by_place = dict(said)
    record = {
        "kills": len(rounds),
        "rows": len(expected),
        "lost": len(expected.keys() - by_place.keys()),
        "twice": len(said) - len(by_place),
        "different": sum(by_place[row] != expected[row] for row in by_place.keys() & expected.keys()),
    }
    print(record)
    write("spark-kills", {**record, "seed": arguments.seed, "rounds": rounds})


if __name__ == "__main__":
    main()
