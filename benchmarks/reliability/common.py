"""Shared code: records, and `ptncn` commands in processes that start quickly.

A command runs in a fork of a process that has imported everything, so a hundred starts take seconds.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "results" / "reliability"
MEMORY = Path("/dev/shm")
"""A folder in memory on Linux, where writing many small files takes a tenth of the time that a disk needs."""


def parser(about: str | None, count: int) -> argparse.ArgumentParser:
    """The arguments that every campaign has."""
    arguments = argparse.ArgumentParser(description=about)
    arguments.add_argument("--seed", type=int, default=0, help="seed of all random choices")
    arguments.add_argument("--count", type=int, default=count, help="how many")
    arguments.add_argument("--out", type=Path, default=RESULTS, help="folder for the record")
    return arguments


def record(campaign: str, options: argparse.Namespace, results: dict[str, Any], started: float) -> None:
    """Write the record of a campaign, including the current commit."""
    choices = {key: value for key, value in vars(options).items() if key in ("seed", "count")}
    part = f" --only {options.only}" if getattr(options, "only", None) else ""
    tree = {
        "campaign": campaign,
        "command": f"python benchmarks/reliability/{campaign.replace('-', '_')}.py --seed {options.seed} "
        f"--count {options.count}{part}",
        "commit": commit(),
        **choices,
        "date": datetime.now(UTC).date().isoformat(),
        "seconds": round(time.time() - started, 1),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        **results,
    }
    options.out.mkdir(parents=True, exist_ok=True)
    path = options.out / f"{campaign}.json"
    path.write_text(json.dumps(tree, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(f"{path}: {json.dumps({key: value for key, value in results.items() if not isinstance(value, list)})}")


def commit() -> str:
    done = subprocess.run(["git", "rev-parse", "--short=10", "HEAD"], cwd=ROOT, capture_output=True, text=True)
    changed = subprocess.run(["git", "status", "--short", "src"], cwd=ROOT, capture_output=True, text=True).stdout
    return (done.stdout.strip() or "unknown") + (" with changes" if changed.strip() else "")


class Command:
    """`ptncn` with arguments in a separate process; its output goes to `log`."""

    def __init__(self, arguments: Sequence[object], log: Path) -> None:
        self.log = log
        self.pid = os.fork()
        self.code: int | None = None
        if self.pid == 0:
            _run([str(each) for each in arguments], log)

    def poll(self) -> int | None:
        """The exit code, negative after a signal; None while it runs."""
        if self.code is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.code = os.waitstatus_to_exitcode(status)
        return self.code

    def wait(self, seconds: float = 3600.0) -> int | None:
        """The exit code, or None if the command is still running after this many seconds."""
        end = time.monotonic() + seconds
        while self.poll() is None and time.monotonic() < end:
            time.sleep(0.002)
        return self.code

    def kill(self) -> bool:
        """Kill it with SIGKILL; return whether it was still running."""
        if self.poll() is not None:
            return False
        os.kill(self.pid, signal.SIGKILL)
        self.wait()
        return self.code == -signal.SIGKILL

    def said(self) -> str:
        return self.log.read_text(encoding="utf-8", errors="replace")


def warm_up() -> None:
    """Import what the commands import, without starting a thread."""
    import sklearn.datasets  # noqa: F401
    import torch

    import ptncn.cli.reproduce
    import ptncn.cli.stream
    import ptncn.cli.train  # noqa: F401

    torch.set_num_threads(1)


def _run(arguments: list[str], log: Path) -> None:
    from ptncn.cli import app

    code = 1
    try:
        descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        os.dup2(descriptor, 1)
        os.dup2(descriptor, 2)
        sys.argv = ["ptncn", *arguments]
        app()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
    except BaseException as error:
        print(f"Traceback: {error!r}", file=sys.stderr)
    finally:
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except OSError:
                code = code or 1
        os._exit(code)


def write_feed(path: Path, rows: int, seed: int) -> None:
    """Three sines with noise, a category and some bad lines."""
    import numpy as np

    draw = np.random.default_rng(seed)
    t = np.arange(rows)[:, None]
    values = np.sin(t / np.array([5.0, 11.0, 29.0])) + 0.1 * draw.normal(size=(rows, 3))
    lines = ["a,b,c"]
    for index, row in enumerate(values):
        lines.append(",".join(f"{value:.4f}" for value in row))
        if index % 401 == 400:
            lines.append("not a number,1,2")
    path.write_text("\n".join(lines) + "\n", encoding="ascii")
