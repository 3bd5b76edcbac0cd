"""The page of choices has the table of the record; the script runs."""

import json
from pathlib import Path

import pytest

import teaching

ROOT = Path(__file__).parents[2]


def test_the_page_has_the_table_of_the_record() -> None:
    record = json.loads((ROOT / "results/learners/teaching.json").read_text())
    page = (ROOT / "docs/choices.md").read_text()
    assert teaching.table(record) in page
    assert record["command"] in page


@pytest.mark.parametrize("row", teaching.variants()[:6:2], ids=lambda row: f"{row['activation']} {row['teaching']}")
def test_a_network_follows_the_cosine(row: dict) -> None:
    assert teaching.error(row["options"], seed=0, steps=300) < 0.5
