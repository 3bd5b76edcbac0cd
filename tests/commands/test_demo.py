"""`ptncn demo`: what it writes and says, and how it ends when it is stopped."""

import io
import os
import re
import signal
import subprocess
import sys

import numpy as np
import pytest
import torch
from PIL import Image
from typer.testing import CliRunner

from ptncn.cli import app
from ptncn.commands import demo
from ptncn.data import bouncing

runner = CliRunner()


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A short demo: its folder and what it said."""
    out = tmp_path_factory.mktemp("demo") / "new" / "folder"
    result = runner.invoke(app, ["demo", "--quick", "--out", str(out)])
    assert result.exit_code == 0, result.output
    return out, " ".join(result.output.split())


def test_it_leaves_a_filmstrip_and_a_film(finished):
    out, _ = finished
    assert sorted(path.name for path in out.iterdir()) == ["film.gif", "filmstrip.png"]
    with Image.open(out / "filmstrip.png") as strip:
        assert strip.width > strip.height > 300
    with Image.open(out / "film.gif") as film:
        assert film.n_frames == 20


def test_it_says_how_large_the_errors_are_and_where_the_pictures_are(finished):
    out, said = finished
    black, copy = bouncing_errors()
    assert float(re.search(r"an all-black frame ([\d.]+)", said)[1]) == pytest.approx(black, abs=0.06)
    assert float(re.search(r"the last frame again ([\d.]+)", said)[1]) == pytest.approx(copy, abs=0.06)
    assert float(re.search(r"the network ([\d.]+)", said)[1]) > 0
    assert "never seen" in said
    assert "filmstrip.png" in said
    assert str(out.name) in said


def bouncing_errors():
    """Of an all-black frame and of the last frame again, on the frames from the second on, in plain NumPy."""
    films = bouncing("digits", "test", size=demo.QUICK.test_films, canvas=demo.CANVAS)
    x = films.frames(range(len(films))).astype(np.float64) / 255  # (T, B, height, width)
    return (x[1:] ** 2).sum((2, 3)).mean(), ((x[1:] - x[:-1]) ** 2).sum((2, 3)).mean()


def test_the_pictures_show_truth_above_prediction():
    truth, prediction = torch.full((4, 1, demo.CANVAS**2), 1.0), torch.full((4, 1, demo.CANVAS**2), 0.5)
    with Image.open(io.BytesIO(demo.filmstrip(truth, prediction))) as picture:
        column = np.asarray(picture)[30:-15, -20]
    assert column[0] == 255
    assert column[-1] == 128
    with Image.open(io.BytesIO(demo.animation(truth, prediction))) as picture:
        assert picture.n_frames >= 1  # equal frames may be one
        column = np.asarray(picture.convert("L"))[:, -20]
    assert column[10] == 255
    assert column[-10] == pytest.approx(128, abs=2)


def test_a_folder_that_cannot_be_made_is_one_line(tmp_path):
    (tmp_path / "file").write_text("in the way")
    result = runner.invoke(app, ["demo", "--quick", "--out", str(tmp_path / "file")])
    assert result.exit_code == 1
    assert result.stderr.startswith(f"Error: {tmp_path / 'file'}: cannot be written")
    assert len(result.stderr.strip().splitlines()) == 1


def test_it_can_be_stopped_and_then_leaves_nothing(tmp_path):
    command = [sys.executable, "-m", "ptncn.cli", "demo", "--out", str(tmp_path / "out")]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment) as demo:
        demo.stdout.readline()  # it has begun
        demo.send_signal(signal.SIGINT)
        _, errors = demo.communicate(timeout=300)
    assert demo.returncode == 130
    assert errors == "Stopped. Nothing was written.\n"
    assert not list((tmp_path / "out").iterdir())
