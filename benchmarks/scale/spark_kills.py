"""Kill a Spark query with SIGKILL at random moments and start it again from its checkpoint: is anything lost or twice?

    python benchmarks/scale/spark_kills.py --kills 20

The program is examples/spark_forecast.py; what is killed is its whole process group: Python, the JVM and its workers.
In the end the output is compared with that of one process over all files, row by row, to the last digit.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import readings
from launch import ROOT, write

PROGRAM = ROOT / "examples" / "spark_forecast.py"


def start(folder: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, str(PROGRAM), *(str(folder / name) for name in ("in", "out", "checkpoint"))]
    return subprocess.Popen(command, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def commits(folder: Path) -> int:
    """Batches that the query has committed."""
    return len([path for path in (folder / "checkpoint" / "commits").glob("*") if path.name.isdigit()])


def time_to_commit(folder: Path) -> float:
    """Seconds from the start of a query in an empty folder to its first commit; it is then killed."""
    began, query = time.monotonic(), start(folder)
    while not commits(folder):
        if query.poll() is not None:
            raise SystemExit((query.stderr.read() if query.stderr else b"").decode()[-2000:])
        time.sleep(0.05)
    kill(query)
    return time.monotonic() - began


def kill(query: subprocess.Popen[bytes]) -> None:
    os.killpg(query.pid, signal.SIGKILL)
    query.communicate()


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
        usual = time_to_commit(folder)
        for name in ("out", "checkpoint"):
            shutil.rmtree(folder / name)
        while len(rounds) < arguments.kills and commits(folder) < arguments.files:
            query, delay = start(folder), chance.uniform(0.4, 1.6) * usual
            before = commits(folder)
            try:
                query.wait(delay)
            except subprocess.TimeoutExpired:
                kill(query)
                rounds.append({"seconds": delay, "commits_before": before, "commits_after": commits(folder)})
                print(rounds[-1], flush=True)
        last = start(folder)
        errors = last.communicate()[1]
        if last.returncode:
            raise SystemExit(errors.decode()[-2000:])
        expected, said = readings.expected(folder / "in", 2), readings.said(folder / "out")
    found = dict(said)
    record = {
        "kills": len(rounds),
        "rows": len(expected),
        "lost": len(expected.keys() - found.keys()),
        "twice": len(said) - len(found),
        "different": sum(found[row] != expected[row] for row in found.keys() & expected.keys()),
    }
    print(record)
    write("spark-kills", {**record, "seed": arguments.seed, "first_commit_seconds": usual, "rounds": rounds})


if __name__ == "__main__":
    main()
