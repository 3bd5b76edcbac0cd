"""`ptncn bench` from end to end, on networks that take no time."""

import json
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner, Result

from ptncn.bench.contestants import ALL, QUICK
from ptncn.bench.run import EXTRAS, make_plan
from ptncn.bench.shapes import SHAPES
from ptncn.commands.bench import bench

TINY = ["--shape", "6-2x5@3", "--shape", "6-1x5@1", "--seconds", "0.01"]


def _run(*arguments: str) -> Result:
    app = typer.Typer()
    app.command()(bench)
    return CliRunner().invoke(app, list(arguments))


def _json(*arguments: str) -> dict[str, Any]:
    result = _run("--json", *arguments)
    assert result.exit_code == 0, result.output
    record: dict[str, Any] = json.loads(result.stdout)
    return record


def test_the_record_has_rows_with_ratios(tmp_path: Path) -> None:
    out = tmp_path / "deep" / "record.json"
    record = _json("--quick", *TINY, "--out", str(out))
    assert json.loads(out.read_text()) == record
    assert {row["what"] for row in record["rows"]} == set(QUICK)
    for row in record["rows"]:
        limit = next(
            other for other in record["rows"] if [other[k] for k in ("shape", "what")] == [row["shape"], row["limit"]]
        )
        assert row["ratio"] == pytest.approx(row["ms"] / limit["ms"])
        assert row["iqr"] >= 0
        assert row["samples"] >= 3
    assert {(row["shape"], row["batch"]) for row in record["rows"]} == {("6-2x5", 3), ("6-1x5", 1)}
    assert {"cpu", "cores", "torch", "threads", "load", "others", "idle", "gflops"} <= set(record["machine"])


def test_one_contestant_brings_its_limit_along() -> None:
    record = _json("--what", "ptncn-eval", "--what", "gru-uoro", *TINY)
    assert [row["what"] for row in record["rows"]][:4] == ["products-eval", "products", "ptncn-eval", "gru-uoro"]


def test_an_extra_can_be_asked_for_alone() -> None:
    record = _json("--what", "profile", *TINY)
    assert record["rows"] == []
    assert [each["shape"] for each in record["profile"]] == ["6-2x5", "6-1x5"]


def test_tables_are_printed() -> None:
    result = _run("--what", "ptncn-sgd", *TINY)
    assert result.exit_code == 0
    assert "6-2x5, batch 3" in result.stdout
    assert "ptncn-sgd" in result.stdout


def test_everything_is_measured_unless_something_is_asked_for() -> None:
    plan = make_plan(quick=False, seconds=None)
    assert (plan.shapes, plan.whats, plan.extras) == (SHAPES, ALL, EXTRAS)
    assert not make_plan(quick=True, seconds=None).extras


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--shape", "big"], "'big'"),
        (["--what", "lstm-bttp"], "did you mean 'lstm-bptt'"),
        (["--page", "no.json"], "no.json"),
    ],
)
def test_a_mistake_is_one_line(arguments: list[str], words: str) -> None:
    result = _run(*arguments)
    assert result.exit_code == 1
    assert words in result.stderr
    assert "Traceback" not in result.stderr
