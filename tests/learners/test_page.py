"""The pages about learners show the numbers and commands of the records."""

import json
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", ["tasks", "rivals"])
def test_the_page_has_the_command_of_the_record(name):
    record = json.loads((ROOT / f"results/learners/{name}.json").read_text())
    assert record["command"] in (ROOT / "docs/learners.md").read_text()


def test_the_page_about_learning_forward_has_the_rivals_of_the_record():
    record = json.loads((ROOT / "results/gradient/rivals.json").read_text())
    page = (ROOT / "docs/forward-mode.md").read_text()
    assert record["command"] in page
    section = page[page.index("**Recent rules") :].splitlines()
    rows = [line for line in section if line.startswith("| ")][1:]
    for row, result in zip(rows, record["while_learning"], strict=False):
        cosine = f"{result['cosine']:.3f} ± {result['cosine_sd_over_seeds']:.3f}"
        assert row.startswith(f"| {result['kind']}")
        assert row.endswith(f"| {cosine} | {result['norm_ratio']:.2f} |")
