"""Kill ranks of `ptncn train --ranks` at random moments: does the run end with the same bits as an undisturbed one?

    python benchmarks/scale/killed_rank.py --kills 20

Every third time the launcher is killed too; its ranks must then end by themselves, and `--resume` must continue.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from launch import write


class Training:
    """Start `ptncn train` in a separate folder."""

    def __init__(self, folder: Path, data: Path, count: int, seed: int, more: tuple[str, ...] = ()) -> None:
        self.out, self.runs = folder / "out", folder / "runs"
        options = ["--units", "12", "--layers", "2", "--batch-size", "8", "--seed", str(seed), "--ranks", str(count)]
        options += ["--checkpoint-every", "0", "--out", str(self.out), "--runs", str(self.runs), *more]
        self.command = [sys.executable, "-m", "ptncn", "train", "ptncn", str(data), *options]

    def start(self, *more: str, **environment: str) -> subprocess.Popen[str]:
        environment = {**os.environ, "OMP_NUM_THREADS": "1", **environment}
        return subprocess.Popen([*self.command, *more], stderr=subprocess.PIPE, text=True, env=environment)

    def ranks(self, launcher: subprocess.Popen[str]) -> list[psutil.Process]:
        return [child for child in psutil.Process(launcher.pid).children() if "train" in child.cmdline()]

    def wait_for_checkpoint(self, launcher: subprocess.Popen[str]) -> None:
        while launcher.poll() is None and not list(self.runs.rglob("progress.safetensors")):
            time.sleep(0.01)

    def result(self) -> tuple[Any, bytes]:
        """The numbers in the record, and the network."""
        (record,) = self.out.rglob("*.json")
        return json.loads(record.read_text())["metrics"], (self.out / "network.safetensors").read_bytes()


def write_data(path: Path, sequences: int) -> None:
    rng = np.random.default_rng(0)
    np.save(path, rng.random((sequences, 10, 6)).round().astype("float32"))


def kill_one(training: Training, rng: random.Random, *, launcher_too: bool) -> dict[str, Any]:
    """Start a run, kill one rank some time after the first checkpoint, and let the run end."""
    launcher = training.start()
    training.wait_for_checkpoint(launcher)
    delay = rng.uniform(0, 1.5)
    time.sleep(delay)
    if launcher.poll() is not None:
        return {"killed": "nothing, the run had ended", "seconds": delay}
    ranks = training.ranks(launcher)
    killed = rng.choice(ranks) if ranks else None
    if launcher_too:
        launcher.kill()
        left = psutil.wait_procs(ranks, timeout=20)[1]
        launcher.communicate()
        launcher = training.start("--resume")
        errors = launcher.communicate()[1]
        return {
            "killed": "launcher",
            "seconds": delay,
            "ranks_left": len(left),
            "code": launcher.returncode,
            "said": errors,
        }
    if killed is not None and killed.is_running():
        os.kill(killed.pid, signal.SIGKILL)
    errors = launcher.communicate()[1]
    return {"killed": "rank" if killed else "nothing", "seconds": delay, "code": launcher.returncode, "said": errors}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    rng, rounds = random.Random(arguments.seed), []
    with tempfile.TemporaryDirectory() as place:
        data, folder = Path(place) / "data.npy", Path(place) / "run"
        write_data(data, 400)
        sizes = ("--sequences", "240", "--epochs", "3")
        alone = Training(Path(place) / "alone", data, arguments.ranks, arguments.seed, sizes)
        alone.start().communicate()
        expected = alone.result()
        for number in range(arguments.kills):
            training = Training(folder, data, arguments.ranks, arguments.seed, sizes)
            result = kill_one(training, rng, launcher_too=number % 3 == 2)
            result["same"] = training.result() == expected
            rounds.append(result)
            print(json.dumps(result), flush=True)
            shutil.rmtree(folder)
    hit = [result for result in rounds if not result["killed"].startswith("nothing")]
    record = {"ranks": arguments.ranks, "seed": arguments.seed, "kills": len(hit)}
    record |= {"same_bits": sum(result["same"] for result in hit)}
    record |= {"ranks_left": sum(result.get("ranks_left", 0) for result in hit), "rounds": rounds}
    print(f"{record['kills']} kills, same bits after {record['same_bits']}, {record['ranks_left']} ranks left over")
    write("killed-rank", record)


if __name__ == "__main__":
    main()
