"""A custom dataset, experiment and stream format: one file and one line each, then available everywhere."""

import importlib
import json
import sys

import pytest

from commands import call
from ptncn.data import DATASETS
from ptncn.experiments import EXPERIMENTS
from ptncn.records import read_record
from ptncn.streaming.formats import FORMATS

MODULE = """
import numpy as np

from ptncn.data import ArraySequences, Dataset
from ptncn.experiments.config import VIDEO
from ptncn.experiments.experiment import Experiment, Row
from ptncn.experiments.experiment import LEARNING_CURVES, PageSpec
from ptncn.experiments.runner import train_and_test


def load(dataset, split):
    seed = dataset.splits.index(split)
    walks = np.random.default_rng(seed).normal(size=(40, 12, 3)).cumsum(1)
    return ArraySequences(f"walks/{split}", walks.astype(np.float32))


WALKS = Dataset(name="walks", label="random walks", about="40 random walks in space", kind="other", load=load)

SLOW = Row("ptncn", {"lr": 0.001}, "P-TNCN, slow")

EXPERIMENT = Experiment(
    name="walking",
    about="who follows a random walk?",
    rows={"walks": ("ptncn", "slow", "copy")},
    variants={"slow": SLOW},
    config=lambda data, scale: VIDEO[scale],
    seeds={"smoke": 1, "laptop": 1, "paper": 1},
    run=train_and_test,
    cells=lambda record: {"test_se": {record.data: record.metrics["test"]["se"]}},
    trains=lambda spec: [spec],
    compared_by=("test", "se"),
    page=PageSpec(
        title="Random walks",
        question="Who follows a random walk?",
        metrics=("**SE**: squared error.",),
        metric_labels={"test_se": "test SE"},
        errors=lambda metric, column: ("test", "se"),
        figures=(LEARNING_CURVES,),
    ),
)
"""


@pytest.fixture
def extended(tmp_path, monkeypatch):
    monkeypatch.setenv("PTNCN_DATA", str(tmp_path / "empty"))
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "walking_about.py").write_text(MODULE)
    module = importlib.import_module("walking_about")
    DATASETS.add("walks", module.WALKS)
    EXPERIMENTS.add("walking", module.EXPERIMENT)
    yield tmp_path
    DATASETS.remove("walks")
    EXPERIMENTS.remove("walking")
    del sys.modules["walking_about"]


def run(*arguments):
    return call(*arguments).stdout


def test_a_dataset_and_an_experiment_added_at_run_time_go_through_every_command(extended):
    listed = {row["name"]: row for row in json.loads(run("data", "list", "--json"))}
    assert listed["walks"]["about"] == "40 random walks in space"
    run("data", "show", "walks", "--out", "walks.png")
    assert (extended / "walks.png").stat().st_size > 1_000

    tested = json.loads(run("train", "gru-bptt", "walks", "--units", "4", "--sequences", "40", "--json"))
    assert tested["se"] > 0
    assert json.loads(run("eval", "trained/network.safetensors", "walks", "--json")) == pytest.approx(tested)

    cells = json.loads(run("reproduce", "walking", "--scale", "smoke", "--json"))
    assert set(cells["test_se"]) == {"ptncn", "slow", "copy"}
    record = read_record("results/smoke/walking/slow-walks-0.json")
    assert record.learner["lr"] == 0.001
    assert record.command == "ptncn reproduce walking --scale smoke --learners slow --data walks --seeds 1"

    run("report", "results/smoke", "--out", "report")
    page = (extended / "report/index.html").read_text()
    for words in ("Random walks", "Who follows a random walk?", "test SE", "random walks", "P-TNCN, slow"):
        assert words in page


LOGFMT = """
from ptncn.streaming.formats import Format
from ptncn.streaming.sources import IterableSource


def read(file):
    with open(file.path) as lines:
        rows = [dict(pair.split("=") for pair in line.split()) for line in lines]
    return IterableSource(rows, file.path)


class Writer:
    def header(self, table):
        return ""

    def lines(self, table):
        rows = zip(*(field.values for field in table), strict=True)
        names = [field.name for field in table]
        return "".join(" ".join(f"{n}={v}" for n, v in zip(names, row, strict=True)) + "\\n" for row in rows)


FORMAT = Format("names and values", (".logfmt",), read, Writer)
"""


@pytest.fixture
def logfmt(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "logfmt_format.py").write_text(LOGFMT)
    FORMATS.add("logfmt", importlib.import_module("logfmt_format").FORMAT)
    yield tmp_path
    FORMATS.remove("logfmt")
    del sys.modules["logfmt_format"]


def fields(path):
    return [dict(pair.split("=") for pair in line.split(" ")) for line in path.read_text().splitlines()]


def test_a_stream_format_added_at_run_time_is_read_written_resumed_and_forecast_into(logfmt):
    rows = [f"load={t % 4} heat={t % 3}.5" for t in range(40)]
    (logfmt / "whole.logfmt").write_text("\n".join(rows))
    run("stream", "whole.logfmt", "--out", "whole-out.logfmt", "--quiet")
    assert [row["load"] for row in fields(logfmt / "whole-out.logfmt")] == [f"{t % 4}.0" for t in range(40)]

    feed = logfmt / "feed.logfmt"
    feed.write_text("\n".join(rows[:25]))
    run("stream", "feed.logfmt", "--out", "out.logfmt", "--checkpoint", "feed.ckpt", "--quiet")
    feed.write_text("\n".join(rows))
    run("stream", "feed.logfmt", "--out", "out.logfmt", "--checkpoint", "feed.ckpt", "--resume", "--quiet")
    assert (logfmt / "out.logfmt").read_text() == (logfmt / "whole-out.logfmt").read_text()

    run("forecast", "feed.ckpt", "--horizon", "3", "--out", "ahead.logfmt")
    assert len(fields(logfmt / "ahead.logfmt")) == 3
    assert "parquet, logfmt" in call("stream", "feed.logfmt", "--input-format", "xml", exit_code=1).stderr
