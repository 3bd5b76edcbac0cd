"""The mutation script is current: each of its texts occurs exactly once, and its tests exist."""

import subprocess
import sys

import pytest
from _pytest.mark.expression import Expression

from mutants import MUTANTS, PACKAGE, ROOT, Mutant


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.description)
def test_each_mutant_applies_to_the_current_package(mutant):
    text = (PACKAGE / mutant.file).read_text(encoding="utf-8")
    changed = mutant.apply(text)
    assert changed != text
    if mutant.file.endswith(".py"):
        compile(changed, mutant.file, "exec")


def test_each_mutant_selects_at_least_one_test():
    files = sorted({mutant.tests[0] for mutant in MUTANTS})
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
    listed = subprocess.run([*command, *files], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    collected = [line.lower().partition("::") for line in listed.splitlines() if "::" in line]
    for file, *selection in {mutant.tests for mutant in MUTANTS}:
        expression = Expression.compile(selection[-1] if selection else "test")
        names = [name for path, _, name in collected if path == file]
        assert any(expression.evaluate(lambda word, name=name: word.lower() in name) for name in names), (
            file,
            selection,
        )


def test_no_two_mutants_are_the_same():
    assert len({mutant.description for mutant in MUTANTS}) == len(MUTANTS)
    assert len({(mutant.file, mutant.old, mutant.new) for mutant in MUTANTS}) == len(MUTANTS)


@pytest.mark.parametrize("text", ["nothing of the kind", "x = 1; x = 1"])
def test_a_text_that_does_not_occur_exactly_once_is_an_error(text):
    with pytest.raises(ValueError, match=r"a\.py contains 'x = 1' [02] times, not once"):
        Mutant("why", "a.py", "x = 1", "x = 2", ()).apply(text)
