"""Drift on the command line: a switch is reported soon, and the actions take effect, even after a kill."""

import csv
import signal
import time

import numpy as np
import pytest
from feeds import finish, run_here, start, write_csv

from ptncn.streaming import Stream
from ptncn.streaming.storage import read_checkpoint

pytest.importorskip("river")

SWITCH, LENGTH, USUAL = 900, 1200, 1e-3
COMMAND = ("--learner", "ptncn", "--hidden", "8", "--lr", str(USUAL), "--drift", "adwin")


@pytest.fixture(scope="module")
def feed(tmp_path_factory):
    """A noisy wave that becomes faster and noisier at its 900th row."""
    noise, t = np.random.default_rng(1).normal(size=LENGTH), np.arange(LENGTH)
    wave = np.where(t < SWITCH, np.sin(t / 5) + 0.1 * noise, np.sin(t / 2) + 0.5 * noise)
    return write_csv(tmp_path_factory.mktemp("feed") / "x.csv", wave[:, None])


def drifts(out):
    with open(out) as file:
        return [int(row["index"]) for row in csv.DictReader(file) if row["drift"] == "1"]


def test_a_switch_is_reported_within_100_rows_without_false_reports(feed, tmp_path):
    run_here("stream", feed, "-o", tmp_path / "o.csv", *COMMAND)
    reported = drifts(tmp_path / "o.csv")
    assert SWITCH < reported[0] < SWITCH + 100


def saved_lr(path):
    """The step size of the learner in a checkpoint."""
    tree = read_checkpoint(path)
    stream = Stream(**tree["options"])
    stream._load_tree(tree)
    return stream.learner.lr


def lr_after(feed, tmp_path, rows, *options):
    """The learner's step size after this many rows."""
    with open(feed) as file:
        (tmp_path / "part.csv").write_text("".join(file.readlines()[: rows + 1]))
    for old in ("c.ckpt", "part.out.csv"):
        (tmp_path / old).unlink(missing_ok=True)
    arguments = ("-o", tmp_path / "part.out.csv", "--checkpoint", tmp_path / "c.ckpt")
    run_here("stream", tmp_path / "part.csv", *arguments, *COMMAND, *options)
    return saved_lr(tmp_path / "c.ckpt")


def test_the_step_size_rises_at_a_drift_and_returns(feed, tmp_path):
    options = ("--drift-action", "raise-lr", "--drift-factor", "3", "--drift-steps", "20")
    run_here("stream", feed, "-o", tmp_path / "o.csv", *COMMAND, *options)
    first, *later = drifts(tmp_path / "o.csv")
    last = next((one for one, two in zip([first, *later], [*later, LENGTH], strict=True) if two - one > 20), first)
    assert lr_after(feed, tmp_path, first, *options) == USUAL
    assert lr_after(feed, tmp_path, first + 1, *options) == pytest.approx(3 * USUAL)
    assert lr_after(feed, tmp_path, last + 20, *options) == pytest.approx(3 * USUAL)
    assert lr_after(feed, tmp_path, last + 21, *options) == USUAL


def test_a_raised_step_size_survives_a_kill_and_returns(feed, tmp_path):
    options = (*COMMAND, "--drift-action", "raise-lr", "--drift-steps", "60")
    run_here("stream", feed, "-o", tmp_path / "whole.csv", *options)
    whole, out = (tmp_path / "whole.csv").read_bytes(), tmp_path / "o.csv"
    reported = drifts(tmp_path / "whole.csv")
    size = whole.index(b"\n%d," % (reported[0] + 30))  # in the middle of the 60
    again = ("stream", feed, "-o", out, *options)
    again += ("--checkpoint", tmp_path / "c", "--checkpoint-every", 0.01, "--resume")
    process = start(*again)
    while process.poll() is None and not (out.exists() and out.stat().st_size > size):
        time.sleep(0.001)
    process.send_signal(signal.SIGKILL)
    finish(process)
    run_here(*again)
    assert out.read_bytes() == whole
    assert saved_lr(tmp_path / "c") == (USUAL if reported[-1] + 60 < LENGTH else 5 * USUAL)


def test_a_drift_writes_a_checkpoint_at_once(feed, tmp_path, monkeypatch):
    seen = []

    def save(self, path, extra):
        seen.append(self.stats.observations)

    monkeypatch.setattr("ptncn.streaming.stream.Stream.save", save)
    options = ("--drift-action", "checkpoint", "--checkpoint", tmp_path / "c", "--checkpoint-every", 1e6)
    run_here("stream", feed, "-o", tmp_path / "o.csv", *COMMAND, *options)
    assert seen == [*(at + 1 for at in drifts(tmp_path / "o.csv")), LENGTH]
