"""Run a module of the benchmark in a separate process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

BENCHMARKS = Path(__file__).resolve().parents[1]


def run_module(module: str, *arguments: str, timeout: float | None = None) -> dict[str, Any]:
    """The JSON object on the last line of its output; raises RuntimeError with the last line if it fails."""
    command = [sys.executable, "-m", module, *arguments]
    path = os.pathsep.join(filter(None, [str(BENCHMARKS), os.environ.get("PYTHONPATH")]))
    environment = {**os.environ, "PYTHONPATH": path}
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=timeout, env=environment)
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        raise RuntimeError(f"{' '.join(command[1:])} failed: {lines[-1][:200]}")
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer
