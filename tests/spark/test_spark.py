"""Spark says of each key what one process says, to the last digit, and goes on where it stopped."""

from __future__ import annotations

import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
import readings

PROGRAM = Path(__file__).parents[2] / "examples" / "spark_forecast.py"

needs_spark = pytest.mark.skipif(
    find_spec("pyspark") is None or shutil.which("java") is None,
    reason="needs pyspark and Java 17: make test-spark",
)


def run(folder: Path, *more: str) -> None:
    places = [str(folder / name) for name in ("in", "out", "checkpoint")]
    done = subprocess.run([sys.executable, str(PROGRAM), *places, *more], capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stderr[-2000:]


@needs_spark
def test_forecasts_equal_those_of_one_process_to_the_last_digit_also_after_a_restart(tmp_path):
    readings.write(tmp_path / "all", devices=5, rows=60, files=4, seed=1)
    (tmp_path / "in").mkdir()
    for part in ("000[01].csv", "000[23].csv"):
        for path in (tmp_path / "all").glob(part):
            shutil.copy2(path, tmp_path / "in")
        run(tmp_path, "--horizon", "2")
    expected, said = readings.expected(tmp_path / "in", 2), readings.said(tmp_path / "out")
    assert len(said) == len(expected) == 300
    assert dict(said) == expected


def test_a_missing_java_is_one_line(monkeypatch, tmp_path):
    session = pytest.importorskip("ptncn.spark.session")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(OSError, match=r"^ptncn.spark: expected Java 17 or later in JAVA_HOME=.*, found none$"):
        session.check_java()


def test_missing_packages_are_one_line(monkeypatch):
    from ptncn.spark import session

    monkeypatch.setattr(session, "PACKAGES", {"pyspark": "no_such_module", "pandas": "no.such.module"})
    with pytest.raises(
        ImportError, match=r"^ptncn.spark: pyspark, pandas not installed; try: pip install 'ptncn\[spark\]'$"
    ):
        session.check_packages()
