"""The page of results shows its records, and the benchmark measures correctly."""

import importlib
import json
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("river")

ROOT = Path(__file__).resolve().parents[2]
SEARCHED = {
    "ptncn": {"optimizer", "beta", "lam", "eps", "weight_std", "error_weight_std"},
    "lstm-tbptt": {"optimizer", "window", "stride"},
    "esn-rls": {"forgetting", "leak_rate", "sr", "input_scaling"},
}
MODULES = ("streams", "stream_page", "stream_alarms", "stream_throughput")


@pytest.fixture(scope="module")
def benchmark():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "benchmarks")
        yield {name: importlib.import_module(name) for name in MODULES}
        for name in MODULES:
            del sys.modules[name]


def test_the_page_shows_the_records(benchmark):
    page = (ROOT / "docs/streams-results.md").read_text(encoding="utf-8")
    assert page == benchmark["stream_page"].page(benchmark["streams"].read), "python benchmarks/streams.py --page"


@pytest.mark.parametrize("stream", ["water flow", "approval + polls", "sines", "Mackey-Glass", "switch"])
def test_the_record_is_of_the_streams_and_grids_of_the_benchmark(benchmark, stream):
    streams = benchmark["streams"]
    record, data = streams.read("comparison"), streams.rows(stream, 0)
    assert record["streams"][stream]["observations"] == len(data)
    assert record["streams"][stream]["last_values"] == pytest.approx([y for _, y in data[-3:]], abs=1e-5)
    assert record["trials"] == dict.fromkeys(streams.MODELS, streams.TRIALS) | {"copy-last": 1}
    for model, row in record["results"].items():
        setting = row[stream]["setting"]
        if model in streams.GRIDS:
            assert setting in json.loads(json.dumps(streams.GRIDS[model]))
        else:
            assert set(setting["options"]) <= SEARCHED[model]


def test_errors_and_recovery_match_a_manual_calculation(benchmark):
    """Copying has an error of 2 on a line of slope 2; recovery ends when the error is back to its former level."""
    streams = benchmark["streams"]
    line = [(None, 2.0 * t) for t in range(10)]
    assert (streams.errors("copy-last", {}, 1, 0, line) == 2).all()
    curve = np.full(3 * streams.REGIME - 1, 0.1)
    curve[streams.REGIME - 1 :][:40] = 1.0
    result = streams.recovery(curve, streams.REGIME)
    assert result["error_before"] == pytest.approx(0.1)
    assert 40 < result["observations"] <= 40 + streams.SMOOTH
    assert streams.recovery(np.linspace(0, 1, len(curve)), streams.REGIME)["observations"] is None


def test_alarms_are_compared_with_planted_anomalies(benchmark):
    alarm = np.zeros(1000, dtype=bool)
    alarm[[100, 101, 300, 500]] = True  # a hit, its echo, and two others
    result = benchmark["stream_alarms"].judge([(alarm, np.array([100, 200]), 50)] * 2)
    assert (result["recall"], result["false_alarms"], result["ordinary"]) == (0.5, 4, 2 * (950 - 12))
    assert result["precision"] == pytest.approx(1 / 3, abs=1e-4)


def test_lines_are_counted_from_file_to_file(benchmark, tmp_path):
    result = benchmark["stream_throughput"].run(2000, tmp_path, [0, 1000])
    assert result["user_seconds"] > 0
    assert [at["lines"] >= mark for at, mark in zip(result["memory"], [0, 1000], strict=False)] == [True] * len(
        result["memory"]
    )
