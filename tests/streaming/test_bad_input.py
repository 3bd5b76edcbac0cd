"""Bad input on the command line: clear errors with the line, --on-error, and nothing lost."""

import errno
import json
import os
import subprocess
import sys
import time

import pytest
from command import app
from feeds import COMMAND, finish, run_here, sines, start, write_csv
from typer.testing import CliRunner

from ptncn.streaming import default_learner
from ptncn.streaming.output import Output, OutputError

GOOD = ["time,a,b", *(f"t{index},{index}.5,{-index}" for index in range(10))]
COPY = ("--learner", "copy")


@pytest.fixture
def run(tmp_path):
    """Run the command on lines or bytes; return its exit code, output as dicts, messages and folder."""

    def run(content, *arguments, name="x.csv"):
        if isinstance(content, list):
            content = "\n".join(content).encode() + b"\n"
        (tmp_path / name).write_bytes(content)
        out = tmp_path / "out.jsonl"
        result = CliRunner().invoke(app, ["stream", str(tmp_path / name), "-o", str(out), *COPY, *arguments])
        lines = [json.loads(line) for line in out.read_text().splitlines()] if out.exists() else []
        assert result.exception is None or isinstance(result.exception, SystemExit)
        return result.exit_code, lines, result.stderr

    return run


BAD = {
    "malformed": (b'"t5"x,1,2', "line 7: not CSV"),
    "too few fields": (b"t5,1", "line 7: 2 fields; the header names 3"),
    "text for a number": (b"t5,1,warm", "line 7: column 'b' holds 'warm' where a number was expected"),
    "infinity": (b"t5,inf,1", "line 7: column 'a' holds 'inf', which is not a finite number"),
    "not UTF-8": (b"t5,1,\xff", "line 7: byte 6 of the line, 0xff, is not UTF-8"),
    "too long": (b"t5," + b"1" * 5000 + b",2", "line 7: longer than 2,000 bytes"),
    "another header": (b"time,a,c", "line 8: the columns changed: 'b' vanished and 'c' appeared"),
}


@pytest.mark.parametrize("kind", BAD)
class TestEachBadLine:
    def feed(self, kind):
        lines = [line.encode() for line in GOOD]
        return b"\n".join([*lines[:6], BAD[kind][0], *lines[6:]]) + b"\n"

    def test_stop(self, run, tmp_path, kind):
        code, lines, messages = run(self.feed(kind), "--max-line", "2000", "--checkpoint", str(tmp_path / "c"))
        assert code == 1
        assert BAD[kind][1] in messages
        assert len(lines) == 5  # every line accepted before it was written
        code, lines, _ = run(GOOD, "--max-line", "2000", "--checkpoint", str(tmp_path / "c"), "--resume")
        assert code == 0  # the checkpoint is good: once the file is fixed, the stream continues
        assert [line["index"] for line in lines] == list(range(10))

    def test_skip(self, run, kind):
        code, lines, messages = run(self.feed(kind), "--max-line", "2000", "--on-error", "skip")
        assert code == 0
        assert f"{BAD[kind][1]}" in messages
        assert "(skipped)" in messages
        assert [line["timestamp"] for line in lines] == [f"t{i}" for i in range(5 if "header" in kind else 10)]

    def test_mask(self, run, kind):
        code, lines, messages = run(self.feed(kind), "--max-line", "2000", "--on-error", "mask")
        assert code == 0
        assert BAD[kind][1] in messages
        assert "(masked)" in messages
        assert len(lines) == (10 if "header" in kind else 11)
        assert None in lines[5]["observed"].values()
        assert lines[5]["predicted"] is not None


def test_columns_that_vanish_may_be_masked(run):
    code, lines, _ = run([*GOOD[:6], "time,c,a", *(f"t{i},0,{i}.5" for i in range(5))], "--columns-change", "mask")
    assert code == 0
    assert lines[-1]["observed"] == {"a": 4.5, "b": None}
    assert lines[-1]["predicted"]["b"] is not None


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"", "empty"), (b"a,b\n", "expected at least one observation"), (b"a,b\nx,y\n", "no column with numbers")],
)
def test_a_file_without_observations(run, content, message):
    code, lines, messages = run(content)
    assert code == 1
    assert message in messages
    assert not lines


def test_many_bad_lines_do_not_flood_the_terminal(run):
    _, lines, messages = run([*GOOD, *["t,x,1"] * 1000], "--on-error", "skip")
    assert len(lines) == 10
    assert len(messages.splitlines()) == 23
    assert "980 further notices" in messages


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--learner", "lstm"], "unknown learner 'lstm'"),
        (["--hidden", "a"], "--hidden: expected integers"),
        (["--set", "x"], "option 'x': expected NAME=VALUE"),
        (["--alarm-rate", "2"], "alarm_rate: expected a share above 0 and below 1, got 2.0"),
        (["--on-error", "cry"], "on_error: expected one of stop, skip, mask, got 'cry'"),
        (["--target", "moon"], "target: expected one of level, change, both, got 'moon'"),
        (["--drift", "moon"], "unknown drift detector 'moon'"),
        (["--resume"], "--resume: expected --checkpoint FILE"),
        (["--output-format", "xml"], "unknown output format 'xml'"),
        (["--checkpoint-every", "0"], "checkpoint-every: expected a number of seconds above 0"),
    ],
)
def test_bad_options_are_rejected(run, arguments, message):
    code, _, messages = run(GOOD, *arguments)
    assert code == 1
    assert message in messages


def test_an_existing_checkpoint_is_not_overwritten(run, tmp_path):
    assert run(GOOD, "--checkpoint", str(tmp_path / "c"))[0] == 0
    good = (tmp_path / "c").read_bytes()
    code, _, messages = run(GOOD, "--checkpoint", str(tmp_path / "c"))
    assert code == 1
    assert "exists already; --resume continues it" in messages
    assert (tmp_path / "c").read_bytes() == good


def test_the_source_is_not_overwritten(run, tmp_path):
    code, _, messages = run(GOOD, "-o", str(tmp_path / "x.csv"))
    assert code == 1
    assert "cannot be both the source and --out" in messages
    assert (tmp_path / "x.csv").read_text().splitlines() == GOOD


class TestOutput:
    def test_a_full_disk_is_reported_and_the_good_checkpoint_stays(self, tmp_path):
        path = write_csv(tmp_path / "x.csv", sines(50))
        result = CliRunner().invoke(
            app, ["stream", path, "-o", "/dev/full", *COPY, "--checkpoint", str(tmp_path / "c")]
        )
        assert result.exit_code == 1
        assert "/dev/full: cannot be written: No space left on device" in result.stderr
        assert not (tmp_path / "c").exists()  # no line was written, so no checkpoint may count one

    def test_bytes_written_before_the_disk_was_full_are_counted(self, tmp_path, monkeypatch):
        output = Output(str(tmp_path / "o"))
        output.write("abcdef")
        real = os.write

        def half(descriptor, data):
            monkeypatch.setattr(os, "write", full)
            return real(descriptor, bytes(data[:3]))

        def full(descriptor, data):
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr(os, "write", half)
        with pytest.raises(OutputError, match="o: cannot be written: No space left"):
            output.flush()
        assert output.length == 3

    def test_a_closed_pipe_does_not_crash(self, tmp_path):
        path = write_csv(tmp_path / "x.csv", sines(3000))
        with start("stream", path, *COPY, stdout=subprocess.PIPE) as process:
            process.stdout.readline()
            process.stdout.close()
            assert "the output was closed" in process.stderr.read().decode()
        assert process.returncode == 141


def test_standard_input_is_quiet_flushed_at_once_and_resumed_by_skipping(tmp_path):
    command = ("stream", "-", *COPY, "--quiet", "--checkpoint", tmp_path / "c")
    with start(*command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        process.stdin.write(b"a\n1\n2\n")
        process.stdin.flush()
        first = [process.stdout.readline() for _ in range(3)]  # while the pipe is open and silent
        process.terminate()
        assert process.stderr.read() == b""
    assert process.returncode == 143
    done = subprocess.run(
        [sys.executable, COMMAND, *map(str, command), "--resume"],
        input=b"a\n1\n2\n3\n",
        capture_output=True,
        check=True,
    )
    assert first[2].startswith(b"1,3,,2.0,")
    assert done.stdout.startswith(b"2,4,,3.0,")
    assert len(done.stdout.splitlines()) == 1


def test_two_processes_cannot_write_one_checkpoint(tmp_path):
    places = (*COPY, "--checkpoint", tmp_path / "c", "-o", tmp_path / "o")
    with start("stream", "-", *places, stdin=subprocess.PIPE) as holder:
        holder.stdin.write(b"a\n1\n")
        holder.stdin.flush()
        lock = tmp_path / "c.lock"
        while not (lock.exists() and lock.read_text()) and holder.poll() is None:
            time.sleep(0.01)
        messages = run_here("stream", write_csv(tmp_path / "x.csv", sines(3)), *places, code=1)
        assert f"process {holder.pid} is writing this checkpoint already" in messages
        code, messages = finish(holder)
        assert code == 0, messages


def test_a_learner_by_name_with_its_own_options():
    learner = default_learner(3, "ptncn", hidden=(5,), lr=0.5, seed=3, options={"beta": 0.3, "lr": 0.25})
    options = learner.options()
    assert (options["hidden_sizes"], options["lr"], options["beta"], options["seed"]) == ([5], 0.25, 0.3, 3)
