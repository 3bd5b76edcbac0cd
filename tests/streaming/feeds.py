"""Streams with known properties."""

import functools
import subprocess
import sys
from pathlib import Path

import numpy as np
from command import app
from typer.testing import CliRunner

from ptncn.streaming import default_learner

COMMAND = Path(__file__).with_name("command.py")
SMALL = functools.partial(default_learner, hidden=(8,))
COPY = functools.partial(default_learner, name="copy")


def sines(length, columns=2, noise=0.05, seed=0):
    """(length, columns) sines of different periods, with noise."""
    t = np.arange(length)[:, None]
    clean = np.sin(2 * np.pi * t / (20 + 7 * np.arange(columns)) + np.arange(columns))
    return clean + noise * np.random.default_rng(seed).standard_normal((length, columns))


def write_csv(path, rows, names=None, start=0):
    names = names or [f"s{index}" for index in range(rows.shape[1])]
    lines = [",".join(["time", *names])]
    lines += [f"t{start + index}," + ",".join(f"{value:.4f}" for value in row) for index, row in enumerate(rows)]
    Path(path).write_text("\n".join(lines) + "\n")
    return str(path)


def start(*arguments, **options):
    """Start the command in a separate process."""
    return subprocess.Popen([sys.executable, str(COMMAND), *map(str, arguments)], stderr=subprocess.PIPE, **options)


def run_here(*arguments, code=0, **options):
    """Run the command in this process, which is faster; return its messages."""
    result = CliRunner().invoke(app, [*map(str, arguments)], **options)
    assert result.exit_code == code, result.output
    return result.output


def finish(process):
    """Its exit code and messages."""
    _, messages = process.communicate(timeout=250)
    return process.returncode, messages.decode()
