"""`python benchmarks/step.py` from end to end, on tiny networks."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import step
from speed.cases import ALL, QUICK
from speed.shapes import SHAPES

TINY = ["--shape", "6-2x5@3", "--shape", "6-1x5@1", "--seconds", "0.01"]


@pytest.fixture
def run_json(capsys: pytest.CaptureFixture[str]) -> Callable[..., dict[str, Any]]:
    def run(*arguments: str) -> dict[str, Any]:
        assert step.main(["--json", *TINY, *arguments]) == 0
        record: dict[str, Any] = json.loads(capsys.readouterr().out)
        return record

    return run


def test_the_record_has_rows_with_ratios(tmp_path: Path, run_json: Callable[..., dict[str, Any]]) -> None:
    out = tmp_path / "deep" / "record.json"
    record = run_json("--quick", "--out", str(out))
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


def test_the_limit_of_a_case_is_timed_too(run_json: Callable[..., dict[str, Any]]) -> None:
    record = run_json("--case", "ptncn-eval", "--case", "gru-uoro")
    assert [row["what"] for row in record["rows"]][:4] == ["products-eval", "products", "ptncn-eval", "gru-uoro"]


def test_an_extra_can_be_measured_alone(run_json: Callable[..., dict[str, Any]]) -> None:
    record = run_json("--case", "profile")
    assert record["rows"] == []
    assert [each["shape"] for each in record["profile"]] == ["6-2x5", "6-1x5"]


def test_tables_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert step.main(["--case", "ptncn-sgd", *TINY]) == 0
    printed = capsys.readouterr().out
    assert "6-2x5, batch 3" in printed
    assert "ptncn-sgd" in printed


def test_the_default_is_every_case_and_every_extra() -> None:
    plan = step.make_plan(quick=False, seconds=None)
    assert (plan.shapes, plan.cases, plan.extras) == (SHAPES, ALL, step.EXTRAS)
    assert not step.make_plan(quick=True, seconds=None).extras


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--shape", "big"], "'big'"),
        (["--case", "lstm-bttp"], "did you mean 'lstm-bptt'"),
        (["--page", "no.json"], "no.json"),
    ],
)
def test_a_mistake_is_reported_without_a_traceback(
    arguments: list[str], expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert step.main(arguments) == 1
    message = capsys.readouterr().err
    assert expected in message
    assert "Traceback" not in message
