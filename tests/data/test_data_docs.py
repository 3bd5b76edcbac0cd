"""The examples in docstrings and docs/data.md run."""

import doctest
import importlib
import pkgutil
from pathlib import Path

import pytest

import ptncn.data

MODULES = ["ptncn.data", *(info.name for info in pkgutil.walk_packages(ptncn.data.__path__, "ptncn.data."))]


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name, tmp_path, monkeypatch):
    monkeypatch.setenv("PTNCN_DATA", str(tmp_path))
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def test_the_examples_of_the_page_run(tmp_path, monkeypatch):
    monkeypatch.setenv("PTNCN_DATA", str(tmp_path))
    page = Path(__file__).parents[2] / "docs" / "data.md"
    result = doctest.testfile(str(page), module_relative=False)
    assert result.attempted > 10
    assert result.failed == 0
