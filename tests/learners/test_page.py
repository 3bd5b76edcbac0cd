"""The page about the learners shows the numbers of the record."""

import json
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", ["tasks", "rivals"])
def test_every_row_of_the_page_is_that_of_the_record(name):
    record = json.loads((ROOT / f"results/learners/{name}.json").read_text())
    page = (ROOT / "docs/learners.md").read_text()
    assert record["command"] in page
    for name, errors in record["errors"].items():
        row = f"| `{name}` | {errors['sines']:.3f} | {errors['letters']:.2f} | {errors['digits']:.1f} |"
        assert row in page
