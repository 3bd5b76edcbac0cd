"""Forecasts from a checkpoint, and broken checkpoints."""

import csv
import json

import pytest
from command import app
from feeds import SMALL, sines
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from ptncn import CheckpointError
from ptncn.streaming import Stream, StreamError
from ptncn.streaming.stream import forecast_from


def saved(path, **options):
    rows = [{"a": a, "b": b, "c": "xy"[i % 2]} for i, (a, b) in enumerate(sines(300).tolist())]
    stream = Stream(rows, SMALL, categorical=["c"], slots=3, **options)
    for _ in stream:
        pass
    stream.save(path)
    return stream


def test_it_equals_the_forecast_of_the_stream(tmp_path):
    stream = saved(tmp_path / "c")
    assert forecast_from(tmp_path / "c", 7).rows == stream.forecast(7).rows


def test_the_command_writes_tables_and_a_picture_and_only_reads_the_checkpoint(tmp_path):
    saved(tmp_path / "c")
    before = (tmp_path / "c").read_bytes()
    files = [tmp_path / name for name in ("f.csv", "f.jsonl", "f.png", "f.svg")]
    outs = [part for file in files for part in ("-o", str(file))]
    result = CliRunner().invoke(app, ["forecast", str(tmp_path / "c"), "--horizon", "5", *outs])
    assert result.exit_code == 0, result.output
    with open(files[0], newline="") as table:
        rows = list(csv.DictReader(table))
    assert [row["step"] for row in rows] == list("12345")
    lines = [json.loads(line) for line in files[1].read_text().splitlines()]
    assert float(rows[2]["a"]) == pytest.approx(lines[2]["a"])
    assert {row["c"] for row in rows} <= {"x", "y", "other"}
    assert files[2].read_bytes().startswith(b"\x89PNG")
    assert b"<svg" in files[3].read_bytes()
    assert (tmp_path / "c").read_bytes() == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere"], "nowhere: no such checkpoint"),
        (["c", "-o", "f.xls"], "f.xls: expected a name that ends in"),
        (["c", "--format", "xml"], "unknown output format 'xml'"),
        (["text"], "text: not a checkpoint"),
    ],
)
def test_bad_arguments_give_one_line_errors(tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    saved("c")
    (tmp_path / "text").write_text("hello")
    result = CliRunner().invoke(app, ["forecast", *arguments])
    assert result.exit_code == 1
    assert message in result.stderr
    assert len(result.stderr.splitlines()) == 1


@pytest.fixture(scope="module")
def content(tmp_path_factory):
    path = tmp_path_factory.mktemp("whole") / "c"
    saved(path)
    return path.read_bytes()


class TestBrokenCheckpoints:
    """A damaged file either loads unchanged or gives an error that names it. Nothing in it is executed."""

    def check(self, path, content, rows=None):
        path.write_bytes(content)
        for use in (lambda: forecast_from(path, 2).rows, lambda: Stream(sines(3), SMALL).load(path)):
            try:
                got = use()
            except (CheckpointError, StreamError) as error:
                got = str(error)
            assert got == rows or str(path) in got or "source: ends before" in got

    @given(at=st.integers(0, 10**6), flip=st.integers(1, 255))
    @settings(max_examples=40, deadline=None)
    def test_a_flipped_byte(self, content, tmp_path_factory, at, flip):
        at %= len(content)
        broken = content[:at] + bytes([content[at] ^ flip]) + content[at + 1 :]
        whole = tmp_path_factory.mktemp("whole") / "c"
        whole.write_bytes(content)
        # bytes that only name the version that wrote the file may change
        self.check(tmp_path_factory.mktemp("flip") / "c", broken, forecast_from(whole, 2).rows)

    @given(length=st.integers(0, 10**6))
    @settings(max_examples=20, deadline=None)
    def test_cut_short(self, content, tmp_path_factory, length):
        self.check(tmp_path_factory.mktemp("cut") / "c", content[: length % len(content)])

    @given(noise=st.binary(max_size=300))
    @settings(max_examples=20, deadline=None)
    def test_any_bytes(self, tmp_path_factory, noise):
        self.check(tmp_path_factory.mktemp("noise") / "c", noise)
