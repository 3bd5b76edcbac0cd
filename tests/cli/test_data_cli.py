"""`ptncn data`: what it prints, writes and returns."""

import gzip
import json

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from ptncn.cli.data import app
from ptncn.data import DATASETS

runner = CliRunner()


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("PTNCN_DATA", str(tmp_path / "cache"))
    return tmp_path / "cache"


def run(*arguments, exit_code=0):
    result = runner.invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == exit_code, result.output
    return result.output


def fails(*arguments, exit_code=1):
    """The one line of an error."""
    result = runner.invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == exit_code, result.output
    assert result.exception is None or isinstance(result.exception, SystemExit)
    lines = result.stderr.strip().splitlines()
    assert "Traceback" not in result.stderr
    assert len(lines) == 1
    return lines[0]


@pytest.fixture
def wrong_file(cache):
    path = cache / "mnist/train-images-idx3-ubyte.gz"
    path.parent.mkdir(parents=True)
    path.write_bytes(gzip.compress(b"not MNIST"))
    return path


class TestList:
    def test_it_names_every_dataset_and_what_is_embedded(self):
        output = run("list")
        for name in [*DATASETS, "digits", "letters", "shapes", "python-reference", "noisy-cosine"]:
            assert name in output
        assert output.count("not there") == len([each for each in DATASETS.values() if each.files])

    def test_json_can_be_read_by_other_programs(self, cache, wrong_file):
        rows = {row["name"]: row for row in json.loads(run("list", "--json"))}
        assert rows["mnist"]["state"] == "wrong: train-images-idx3-ubyte.gz"
        assert rows["mnist"]["bytes"] == wrong_file.stat().st_size
        assert rows["ptb"] == {
            "name": "ptb",
            "about": DATASETS["ptb"].about,
            "licence": "research use only",
            "where": str(cache / "ptb"),
            "bytes": 0,
            "state": "not there",
        }
        assert rows["digits"]["state"] == "embedded"


class TestVerify:
    def test_an_empty_cache_is_not_an_error(self):
        assert run("verify").startswith("nothing to verify")

    def test_a_requested_dataset_must_exist(self):
        assert "ptncn data fetch ptb" in run("verify", "ptb", exit_code=1)

    def test_a_wrong_file_is_named(self, wrong_file):
        output = run("verify", exit_code=1)
        assert f"{wrong_file}: the content has SHA-256" in output
        assert output.count("missing; ptncn data fetch mnist") == 3

    def test_an_unknown_name_lists_the_known_ones(self):
        assert "choose one of: mnist, notmnist" in fails("verify", "imagenet")


class TestFetch:
    def test_an_unknown_name_lists_the_known_ones(self):
        assert "unknown dataset to download 'letters'; choose one of: mnist" in fails("fetch", "letters")

    def test_a_wrong_file_in_the_cache_is_not_changed(self, wrong_file):
        before = wrong_file.read_bytes()
        assert f"{wrong_file}: the content has SHA-256" in fails("fetch", "mnist")
        assert wrong_file.read_bytes() == before

    def test_a_cache_that_cannot_be_written(self, cache):
        cache.write_text("in the way")
        assert "cannot be written" in fails("fetch", "mnist")

    def test_without_a_name_the_usage_is_shown(self):
        result = runner.invoke(app, ["fetch"])
        assert result.exit_code == 2
        assert "Missing argument" in result.stderr


class TestShow:
    def test_images_become_an_animated_picture(self, tmp_path):
        run("show", "shapes", "--out", tmp_path / "x.gif", "--count", 3)
        with Image.open(tmp_path / "x.gif") as picture:
            assert picture.n_frames == 20
            assert np.asarray(picture.convert("L")).max() > 200

    def test_images_become_a_filmstrip_with_a_row_for_each_sequence(self, tmp_path):
        run("show", "digits", "--out", tmp_path / "x.png", "--count", 2, "--objects", 1, "--split", "test")
        with Image.open(tmp_path / "x.png") as picture:
            width, height = picture.size
        assert width / height == pytest.approx(20 / 2, rel=0.05)

    def test_the_picture_is_named_after_the_dataset_by_default(self, tmp_path):
        assert "letters.gif" in run("show", "letters")
        assert (tmp_path / "letters.gif").exists()

    def test_a_stream_becomes_a_curve(self, tmp_path):
        run("show", "noisy-cosine", "--out", tmp_path / "x.png")
        assert (tmp_path / "x.png").stat().st_size > 5_000

    def test_text_is_printed(self):
        assert len(run("show", "python-reference", "--count", 3).splitlines()) == 3

    def test_user_defined_arrays_and_videos_can_be_shown(self, tmp_path):
        np.save(tmp_path / "mine.npy", np.zeros((2, 5, 8, 9), np.uint8))
        run("show", tmp_path / "mine.npy", "--out", tmp_path / "a.gif")
        run("show", tmp_path / "a.gif", "--out", tmp_path / "b.png")
        assert (tmp_path / "b.png").exists()

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["mnist"], "ptncn data fetch mnist"),
            (["nonsense"], "nonsense: neither a dataset"),
            (["shapes", "--out", "x.mp4"], r"x.mp4: pictures are written as .gif or .png"),
            (["shapes", "--out", "gone/x.gif"], "gone"),
            (["shapes", "--split", "dev"], "unknown split of shapes 'dev'"),
            (["python-reference", "--out", "x.gif"], "is text"),
            (["python-reference", "--split", "train+valid"], "train+valid"),
            (["noisy-cosine", "--out", "x.gif"], "cannot be drawn as .gif"),
        ],
    )
    def test_what_cannot_be_shown_gives_a_one_line_error(self, tmp_path, arguments, message):
        before = sorted(tmp_path.rglob("*"))
        assert message in fails("show", *arguments)
        assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("command", ["list", "fetch", "verify", "show"])
def test_help_teaches_with_an_example(command):
    assert f"Example: ptncn data {command}" in run(command, "--help")
