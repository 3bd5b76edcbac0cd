"""Broken, old and failed records are listed and break nothing; errors take one line."""

import json

import pytest
from made_records import write_plain_record
from typer.testing import CliRunner

from ptncn.cli import app
from ptncn.report.pages import make_pages
from ptncn.report.sources import gather

runner = CliRunner()


def change(file, **fields):
    tree = json.loads(file.read_text())
    file.write_text(json.dumps({key: value for key, value in {**tree, **fields}.items() if value is not ...}))


def report(*arguments):
    return runner.invoke(app, ["report", *map(str, arguments)])


BROKEN = {
    "of an older version": (lambda file: change(file, schema=0), "version 0"),
    "with a missing field": (lambda file: change(file, row=...), "'row' is missing"),
    "with a field of another kind": (lambda file: change(file, seed="one"), "'seed' holds 'one'"),
    "with a field too many": (lambda file: change(file, colour="red"), "no field 'colour'"),
    "cut short": (lambda file: file.write_bytes(file.read_bytes()[:700]), "not a record"),
    "empty": (lambda file: file.write_bytes(b""), "not a record"),
    "of nothing": (lambda file: file.write_text("[]"), "names no experiment"),
    "not text": (lambda file: file.write_bytes(b"\xff\xfe\x00"), "not a record"),
    "of an unknown experiment": (lambda file: change(file, experiment="guess"), "'guess'"),
    "failed": (
        lambda file: change(file, status="failed", notes=["MemoryError: 163 GB"]),
        "failed: MemoryError: 163 GB",
    ),
    "not over": (lambda file: change(file, status="running"), "running: it did not finish"),
    "without its metrics": (lambda file: change(file, metrics={}), "the field 'test' is missing"),
    "with a word for a number": (lambda file: change(file, metrics={"test": {"se": "low"}}), "'low'"),
    "with no number": (lambda file: change(file, metrics={"test": {"se": None}}), "expected a number"),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_record_is_listed_and_all_others_are_shown(kind, tmp_path):
    write_plain_record(tmp_path / "records", se=80.0)
    broken = write_plain_record(tmp_path / "records", row="lstm-bptt")
    corrupt, reason = BROKEN[kind]
    corrupt(broken)
    result = report(tmp_path / "records", "--out", tmp_path / "out")
    assert result.exit_code == 0, result.output
    assert reason in result.stderr
    page = (tmp_path / "out/index.html").read_text()
    assert "lstm-bptt-mnist-0.json" in page
    assert '<td class="number">80.00</td>' in page


@pytest.mark.parametrize(
    "fields",
    [
        {"curve": {"steps": [1, 2]}},
        {"curve": {"metric": "prequential_se", "steps": [1], "faded": ["x"], "changes": []}},
        {"films": {"test": {"truth": "nothing"}}},
        {"films": {"test": {}}},
        {"errors": {"test": {"se": {"dtype": "float32", "shape": [3], "zlib": "!"}}}},
        {"errors": {"test": []}},
        {"config": {"training": "none"}},
        {"config": {"run_config": ["none"]}},
        {"learner": {"sparsity_sign": None}},
        {"versions": {}},
        {"notes": [3]},
        {"datasets": {"test": 1}},
    ],
    ids=str,
)
def test_a_malformed_record_costs_at_most_a_figure(fields, tmp_path):
    write_plain_record(tmp_path, row="lstm-bptt", se=80.0)
    change(write_plain_record(tmp_path, se=70.0), **fields)
    (page,) = make_pages(gather([tmp_path]))
    results = next(each for each in page.section.sections if each.title == "Results")
    assert any("70.00" in row for part in results.parts if hasattr(part, "rows") for row in part.rows)


def test_a_page_with_only_failed_runs_explains_why_it_is_empty(tmp_path):
    change(write_plain_record(tmp_path / "records"), status="failed", notes=["out of luck"])
    assert report(tmp_path / "records", "--out", tmp_path / "out").exit_code == 0
    page = (tmp_path / "out/index.html").read_text()
    assert "No run has finished" in page
    assert "out of luck" in page


def one_line(result):
    assert result.exit_code == 1
    assert isinstance(result.exception, SystemExit)
    (line,) = result.stderr.strip().splitlines()
    assert line.startswith("Error: ")
    return line


def test_a_missing_file_or_folder_is_an_error(tmp_path):
    assert "nowhere: no such file or folder" in one_line(report(tmp_path / "nowhere", "--out", tmp_path / "out"))


def test_a_folder_without_records_is_an_error(tmp_path):
    (tmp_path / "empty").mkdir()
    assert "empty: no records in it" in one_line(report(tmp_path / "empty", "--out", tmp_path / "out"))
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("option", ["--out", "--docs"])
def test_a_folder_that_cannot_be_written_is_an_error(option, tmp_path):
    write_plain_record(tmp_path / "records")
    (tmp_path / "taken").write_text("a file")
    assert "taken" in one_line(report(tmp_path / "records", option, tmp_path / "taken"))


def test_a_single_record_file_is_enough(tmp_path):
    file = write_plain_record(tmp_path)
    assert report(file, "--out", tmp_path / "out").exit_code == 0
    assert (tmp_path / "out/prediction.md").exists()


def test_a_second_report_removes_what_only_the_first_had_and_nothing_else(tmp_path):
    out = tmp_path / "out"
    write_plain_record(tmp_path / "one", scale="paper")
    write_plain_record(tmp_path / "two")
    assert report(tmp_path / "one", tmp_path / "two", "--out", out).exit_code == 0
    (out / "mine.md").write_text("mine")
    (out / "figures").mkdir(exist_ok=True)
    (out / "figures/mine.png").write_text("mine")
    assert report(tmp_path / "two", "--out", out).exit_code == 0
    assert {path.name for path in out.glob("*.md")} == {"README.md", "prediction.md", "mine.md"}
    assert (out / "figures/mine.png").exists()


def test_of_two_records_of_one_run_only_the_later_one_counts(tmp_path):
    write_plain_record(tmp_path / "new", se=70.0, finished="2026-02-01")
    write_plain_record(tmp_path / "old", se=90.0, finished="2026-01-01")
    records = gather([tmp_path, tmp_path / "new"])
    assert [source.record.metrics["test"]["se"] for source in records.sources] == [70.0]
    (line,) = records.unreadable
    assert "old/prediction/ptncn-mnist-0.json: the same run as" in line
