"""The reliability page agrees with its records."""

import json
from pathlib import Path

import pytest

from reliability.page import page, read_records

ROOT = Path(__file__).resolve().parents[2]


def test_the_page_is_made_from_the_records():
    assert (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8") == page(read_records())


@pytest.mark.parametrize("name", sorted(read_records()))
def test_every_record_names_its_command_and_commit(name):
    record = read_records()[name]
    assert f"--seed {record['seed']} --count {record['count']}" in record["command"]
    assert (ROOT / record["command"].split()[1]).is_file()
    assert len(record["commit"]) == 10


def test_a_failure_shows_on_the_page():
    record = json.loads((ROOT / "results" / "reliability" / "full-disk.json").read_text(encoding="utf-8"))
    assert "valid after 49 of them" in page({"full-disk": {**record, "checkpoint_good": 49}})
