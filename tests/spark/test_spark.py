"""Spark gives the same results for each key as one process, to the last digit, and resumes where it stopped."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections import Counter
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import readings

from ptncn.streaming import Stream

PROGRAM = Path(__file__).parents[2] / "examples" / "spark_forecast.py"

needs_spark = pytest.mark.skipif(
    find_spec("pyspark") is None or shutil.which("java") is None,
    reason="needs pyspark and Java 17: make test-spark",
)


def run(folder: Path, *more: str, program: Path = PROGRAM) -> None:
    places = [str(folder / name) for name in ("in", "out", "checkpoint")]
    result = subprocess.run([sys.executable, str(program), *places, *more], capture_output=True, text=True, timeout=500)
    assert result.returncode == 0, result.stderr[-2000:]


@needs_spark
def test_forecasts_equal_those_of_one_process_to_the_last_digit_also_after_a_restart(tmp_path):
    readings.write(tmp_path / "all", devices=5, rows=60, files=4, seed=1)
    (tmp_path / "in").mkdir()
    for part in ("000[01].csv", "000[23].csv"):
        for path in (tmp_path / "all").glob(part):
            shutil.copy2(path, tmp_path / "in")
        run(tmp_path, "--horizon", "2")
    expected, outputs = readings.expected(tmp_path / "in", 2), readings.said(tmp_path / "out")
    assert len(outputs) == len(expected) == 300
    assert dict(outputs) == expected


@needs_spark
def test_each_key_has_its_own_labels_which_equal_those_of_one_process(tmp_path):
    rng, labels = np.random.default_rng(2), ("off", "on", "idle", "fault")
    rows = [
        {
            "time": 60.0 * i,
            "device": f"d{d}",
            "load": float(rng.random()),
            "mode": labels[rng.integers(1 + i // 8)],
        }
        for i in range(30)
        for d in rng.permutation(3).tolist()
    ]
    (tmp_path / "in").mkdir()
    for number in range(3):
        lines = [",".join(map(str, row.values())) for row in rows[30 * number : 30 * (number + 1)]]
        path = tmp_path / "in" / f"{number}.csv"
        path.write_text("\n".join([",".join(rows[0]), *lines]) + "\n")
        os.utime(path, (1e9 + number, 1e9 + number))
    run(tmp_path, program=Path(__file__).with_name("labelled.py"))
    options = {"key": "device", "targets": ("load", "mode"), "categorical": ("mode",), "timestamp": "time"}
    expected, counts = {}, Counter()
    for out in Stream(horizon=2, **options).feed(rows):
        predicted = (
            {} if out.prediction is None else {f"{name}_predicted": out.prediction[name] for name in out.observed}
        )
        ahead = {f"{name}_ahead{h + 1}": out.forecast[h][name] for name in out.observed for h in range(2)}
        expected[out.key, counts[out.key]] = {**out.observed, **predicted, **ahead}
        counts[out.key] += 1
    results = dict(readings.said(tmp_path / "out"))
    assert {place: {name: row[name] for name in expected[place]} for place, row in results.items()} == expected


def test_a_checkpoint_of_another_layout_is_refused_in_one_line():
    from ptncn.spark import reason

    message = """[STREAM_FAILED] Query terminated with exception: [STATE_STORE_KEY_SCHEMA_NOT_COMPATIBLE] Provided key
        schema does not match existing state key schema. Please check number and type of fields."""
    assert reason(RuntimeError(message)) == (
        "checkpoint: states in layout 1 of an earlier version; this version reads layout 2; start a new one"
    )


def test_a_missing_java_gives_a_one_line_error(monkeypatch, tmp_path):
    forecasts = pytest.importorskip("ptncn.spark.forecasts")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(OSError, match=r"^ptncn.spark: expected Java 17 or later in JAVA_HOME=.*, found none$"):
        forecasts.check_java()


def test_missing_packages_give_a_one_line_error(monkeypatch):
    from ptncn.spark import forecasts

    monkeypatch.setattr(forecasts, "PACKAGES", {"pyspark": "no_such_module", "pandas": "no.such.module"})
    with pytest.raises(
        ImportError, match=r"^ptncn.spark: pyspark, pandas not installed; try: pip install 'ptncn\[spark\]'$"
    ):
        forecasts.check_packages()
