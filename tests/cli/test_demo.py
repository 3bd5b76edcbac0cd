"""`ptncn demo`: what it writes and prints, and how it stops."""

import json
import os
import signal
import subprocess
import sys

import pytest
from PIL import Image
from typer.testing import CliRunner

from ptncn.cli import app

runner = CliRunner()


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A short demo: its folder and its output."""
    out = tmp_path_factory.mktemp("demo") / "new" / "folder"
    result = runner.invoke(app, ["demo", "--quick", "--out", str(out)])
    assert result.exit_code == 0, result.output
    return out, result.output


def test_it_writes_a_page_a_film_figures_and_a_record(finished):
    out, _ = finished
    strips = [f"change-{part}.png" for part in (1, 2, 3)]
    expected = [*strips, "curves.png", "demo.json", "evaluations.png", "film.gif", "index.html", "surprise.png"]
    assert sorted(path.name for path in out.iterdir()) == expected
    with Image.open(out / "film.gif") as film:
        assert film.n_frames > 60
    assert (out / "index.html").read_text().startswith("<!doctype html>")


def test_the_record_has_the_command_and_the_versions(finished):
    record = json.loads((finished[0] / "demo.json").read_text())
    assert record["command"] == "ptncn demo --seed 0 --quick"
    assert {"torch", "ptncn", "python"} <= set(record["versions"])
    assert record["stream"] == ["digits", "letters", "shapes", "digits"]
    assert record["seconds"] > 0


def test_it_prints_what_happens_and_then_the_url_of_the_page(finished):
    out, output = finished
    plain = " ".join(output.split())
    assert "without any signal" in plain
    for part in ("digits", "letters", "shapes", "digits again"):
        assert part in plain
    assert "repeating the last frame" in plain
    lines = [line.strip() for line in output.rstrip().splitlines()]
    assert (out / "index.html").resolve().as_uri() in lines
    assert lines[-1] == "ptncn live"


def test_a_folder_that_cannot_be_created_gives_a_one_line_error(tmp_path):
    (tmp_path / "file").write_text("in the way")
    result = runner.invoke(app, ["demo", "--quick", "--out", str(tmp_path / "file")])
    assert result.exit_code == 1
    assert result.stderr.startswith(f"Error: cannot write to {tmp_path / 'file'}")
    assert len(result.stderr.strip().splitlines()) == 1


def test_it_can_be_interrupted_and_leaves_nothing_behind(tmp_path):
    command = [sys.executable, "-m", "ptncn", "demo", "--out", str(tmp_path / "out")]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a shell's background jobs ignore it
    ) as demo:
        demo.stdout.readline()  # it has begun
        demo.send_signal(signal.SIGINT)
        _, errors = demo.communicate(timeout=1200)
    assert demo.returncode == 130
    assert errors == "Stopped. Nothing was written.\n"
    assert not list((tmp_path / "out").iterdir())
