"""The page of choices has the table of optimisers and credit from the records."""

from pathlib import Path

import quality


def test_the_page_has_the_table_of_the_records() -> None:
    page = (Path(__file__).parents[2] / "docs/choices.md").read_text(encoding="utf-8")
    assert quality.table() in page, "python benchmarks/quality.py"
