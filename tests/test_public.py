"""`import ptncn`: what it gives, and that it stays quick."""

import subprocess
import sys

import pytest

import ptncn


@pytest.mark.parametrize(
    "name", ["PTNCN", "Config", "make", "learners", "run", "evaluate", "Stream", "save", "load", "__version__"]
)
def test_a_user_finds_what_is_needed_at_the_top(name):
    assert name in ptncn.__all__
    assert name in dir(ptncn)
    assert getattr(ptncn, name) is not None


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="has no attribute 'Ptncn'"):
        _ = ptncn.Ptncn


def test_importing_it_imports_neither_torch_nor_any_of_its_parts():
    code = "import sys, ptncn; print([name for name in sys.modules if name.startswith(('ptncn.', 'torch', 'numpy'))])"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said == "[]\n"


def test_listing_learners_does_not_import_torch():
    code = "import sys, ptncn; ptncn.learners.names(); print('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"
