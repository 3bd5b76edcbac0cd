"""The stability page shows its records, and how far each run ended above its best."""

from typing import Any

from unlearning import RECORDS
from unlearning_page import PAGE, make_page, step_size, table

OPTIONS = {"optimizer": "adam", "lr": 0.004, "schedule": None}


def run(*errors: float, **changed: Any) -> dict[str, Any]:
    norms = [{"W1": 2.0 + i, "E1": 1.0} for i in range(len(errors))]
    rows = [
        {"epoch": i, "valid": {"bpc": e}, "norms": n} for i, (e, n) in enumerate(zip(errors, norms, strict=True), 1)
    ]
    return {"data": "text", "epochs": 5, "options": OPTIONS, "rows": rows, **changed}


def test_the_page_is_that_of_the_records() -> None:
    assert PAGE.read_text(encoding="utf-8") == make_page(RECORDS), "python benchmarks/unlearning.py page"


def test_a_run_that_got_worse_is_above_its_best() -> None:
    *_, row = table("text", {"worse": run(2.0, 1.6, 1.68)}).splitlines()
    assert row == "| `worse` | adam, 0.004, constant | 3 of 5 | 1.600 | 1.680 | 5.00 % | 2.0 → 4.0 | 1.0 → 1.0 |"


def test_falling_step_sizes_are_described() -> None:
    root = {**OPTIONS, "schedule": {"kind": "root", "steps": 100, "final": 0.0}}
    assert step_size(run(1.0, options=root)) == "adam, 0.004 / √(1 + updates / 100)"
    assert step_size(run(1.0, falls_to=0.05)) == "adam, 0.004 falling to 0.05 of itself"
