"""The page shows the record."""

import json
from pathlib import Path

import example_record
import pytest

from speed.page import FIGURE, PAGE, make_addition, make_page, write_page
from speed.roofline import point, roofline
from speed.shapes import Shape

ROOT = Path(__file__).parents[2]
RECORDS = sorted((ROOT / "results" / "bench").glob("*.json"))


@pytest.mark.skipif(not RECORDS, reason="no record of the benchmark is committed")
def test_the_page_shows_the_records() -> None:
    full, *later = ((json.loads(file.read_text()), file.name) for file in RECORDS)
    expected = "\n".join([make_page(*full), *(make_addition(*each) for each in later)])
    assert (ROOT / "docs" / PAGE).read_text() == expected, "run: python benchmarks/step.py --page results/bench/*.json"
    assert (ROOT / "docs" / FIGURE).is_file()


def test_every_part_of_a_record_is_on_the_page() -> None:
    page = make_page(example_record.record(), "made-up.json")
    for words in (
        "results/bench/made-up.json",
        "| `ptncn-sgd` | 11.000 | 0.100 | 91 | 1.10 × products |",
        "`lstm-rtrl` is left out: it needs 3.26 TB.",
        "| `lstm-bptt`, 49-2x1000 | 5,000 | 900.0 |",
        "n to the power 2.00",
        "50.0 | 51.0 | 0 of 4,000",
        "generating data takes 0.60% of a training run",
        "0.50 ×, helps",
        "4.50 ×, does not help",
        "no compiler",
        "| 8-2x32, batch 1 | 0.100 | 50.0% | 50.0% |",
    ):
        assert words in page
    assert "not idle" not in page


def test_missed_targets_come_first() -> None:
    page = make_page(example_record.record(), "made-up.json")
    assert page.rindex("**missed**") < page.index("| met |")


def test_a_busy_machine_is_called_out() -> None:
    record = example_record.record()
    record["machine"] |= {"load": 3.0, "others": 0.4, "idle": False}
    page = make_page(record, "made-up.json")
    assert "**Warning: the machine was not idle: the load average was 3.0" in page
    assert "other processes used 40% of the cores" in page


def test_a_record_of_rows_alone_makes_a_page() -> None:
    full = example_record.record()
    part = {name: full[name] for name in ("machine", "rows", "skipped", "targets", "seconds")}
    assert "## Memory" not in make_page(part, "made-up.json")


def test_a_later_record_adds_a_section(tmp_path: Path) -> None:
    full = example_record.record()
    parts = {name: full[name] for name in ("machine", "rows", "skipped", "targets", "options", "seconds")}
    for name, record in {"1.json": full, "2.json": {"command": "python benchmarks/step.py", **parts}}.items():
        (tmp_path / name).write_text(json.dumps(record))
    first, _, second = write_page([tmp_path / "1.json", tmp_path / "2.json"], tmp_path).read_text().partition("2.json")
    assert "## Growth" in first
    assert "### Options" in second
    assert "#### 4096-3x1000, batch 20" in second


def test_the_roofline_counts_necessary_operations_and_bytes() -> None:
    shape = Shape.parse("10-1x5@2")
    weights = {"R": 75, "W": 50, "E": 50}
    assert shape.weights == weights
    at, speed = point(example_record.row(shape, "ptncn-sgd", 1.0), learn=True)
    flops = 2 * 2 * (175 + 125)
    assert at == flops / (4 * 175 + 8 * 125)
    assert speed == flops / 1e6


def test_the_figure_is_the_same_each_time() -> None:
    first, second = roofline(example_record.record()), roofline(example_record.record())
    assert first == second
    assert first.startswith(b"<?xml")


def test_page_and_figure_are_written(tmp_path: Path) -> None:
    (tmp_path / "made-up.json").write_text(json.dumps(example_record.record()))
    page = write_page([tmp_path / "made-up.json"], tmp_path / "docs")
    assert page.read_text() == make_page(example_record.record(), "made-up.json")
    assert (tmp_path / "docs" / FIGURE).is_file()


@pytest.mark.parametrize("content", ["{", "{}", "[]"])
def test_a_file_that_is_not_a_record_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "other.json").write_text(content)
    with pytest.raises(ValueError, match=r"other\.json is not a record"):
        write_page([tmp_path / "other.json"], tmp_path)
