"""The mutation script is current: each of its texts occurs exactly once, and its tests exist."""

import pytest

from mutants import MUTANTS, PACKAGE, ROOT, Mutant


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.why)
def test_each_mutant_applies_to_the_current_package(mutant):
    text = (PACKAGE / mutant.file).read_text(encoding="utf-8")
    changed = mutant.apply(text)
    assert changed != text
    if mutant.file.endswith(".py"):
        compile(changed, mutant.file, "exec")
    assert (ROOT / mutant.tests[0]).is_file()


def test_no_two_mutants_are_the_same():
    assert len({mutant.why for mutant in MUTANTS}) == len(MUTANTS)
    assert len({(mutant.file, mutant.old, mutant.new) for mutant in MUTANTS}) == len(MUTANTS)


@pytest.mark.parametrize("text", ["nothing of the kind", "x = 1; x = 1"])
def test_a_text_that_does_not_occur_exactly_once_is_an_error(text):
    with pytest.raises(ValueError, match=r"a\.py contains 'x = 1' [02] times, not once"):
        Mutant("why", "a.py", "x = 1", "x = 2", ()).apply(text)
