"""The page says what the record says."""

import json
from pathlib import Path

import made_up
import pytest

from ptncn.bench.figures import point, roofline
from ptncn.bench.page import FIGURE, PAGE, make_page, write_page
from ptncn.bench.shapes import Shape

ROOT = Path(__file__).parents[2]
RECORDS = sorted((ROOT / "results" / "bench").glob("*.json"))


@pytest.mark.skipif(not RECORDS, reason="no record of the benchmark is committed")
def test_the_page_is_the_one_of_the_newest_record() -> None:
    expected = make_page(json.loads(RECORDS[-1].read_text()), RECORDS[-1].name)
    assert (ROOT / "docs" / PAGE).read_text() == expected, f"run: ptncn bench --page results/bench/{RECORDS[-1].name}"
    assert (ROOT / "docs" / FIGURE).is_file()


def test_every_part_of_a_record_is_on_the_page() -> None:
    page = make_page(made_up.record(), "made-up.json")
    for words in (
        "results/bench/made-up.json",
        "| `ptncn-sgd` | 11.000 | 0.100 | 91 | 1.10 × products |",
        "`lstm-rtrl` was left out: it needs 3.26 TB.",
        "| `lstm-bptt`, 49-2x1000 | 5,000 | 900.0 |",
        "n to the power 2.00",
        "50.0 | 51.0 | 0 of 4,000",
        "data are 0.60% of a training run",
        "0.50 ×, helps",
        "4.50 ×, does not help",
        "no compiler",
        "| 8-2x32, batch 1 | 0.100 | 50.0% | 50.0% |",
    ):
        assert words in page
    assert "not idle" not in page


def test_missed_targets_come_first() -> None:
    page = make_page(made_up.record(), "made-up.json")
    assert page.rindex("**missed**") < page.index("| met |")


def test_a_busy_machine_is_called_out() -> None:
    record = made_up.record()
    record["machine"] |= {"load": 3.0, "others": 0.4, "idle": False}
    page = make_page(record, "made-up.json")
    assert "**Warning: the machine was not idle: the load average was 3.0" in page
    assert "others took 40% of the cores" in page


def test_a_record_of_rows_alone_makes_a_page() -> None:
    full = made_up.record()
    part = {name: full[name] for name in ("machine", "rows", "skipped", "targets", "seconds")}
    assert "## Memory" not in make_page(part, "made-up.json")


def test_the_roofline_counts_what_has_to_be_done() -> None:
    shape = Shape.parse("10-1x5@2")
    weights = {"R": 75, "W": 50, "E": 50}
    assert shape.weights == weights
    at, speed = point(made_up.row(shape, "ptncn-sgd", 1.0), learn=True)
    flops = 2 * 2 * (175 + 125)
    assert at == flops / (4 * 175 + 8 * 125)
    assert speed == flops / 1e6


def test_the_figure_is_the_same_each_time() -> None:
    first, second = roofline(made_up.record()), roofline(made_up.record())
    assert first == second
    assert first.startswith(b"<?xml")


def test_page_and_figure_are_written(tmp_path: Path) -> None:
    (tmp_path / "made-up.json").write_text(json.dumps(made_up.record()))
    page = write_page(tmp_path / "made-up.json", tmp_path / "docs")
    assert page.read_text() == make_page(made_up.record(), "made-up.json")
    assert (tmp_path / "docs" / FIGURE).is_file()


@pytest.mark.parametrize("content", ["{", "{}", "[]"])
def test_what_is_no_record_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "other.json").write_text(content)
    with pytest.raises(ValueError, match=r"other\.json is not a record"):
        write_page(tmp_path / "other.json", tmp_path)
