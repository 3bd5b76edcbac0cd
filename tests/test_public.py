"""`import ptncn`: what it exports, and that it is quick."""

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import ptncn


@pytest.mark.parametrize(
    "name", ["PTNCN", "Config", "make", "learners", "run", "evaluate", "Stream", "save", "load", "__version__"]
)
def test_the_top_level_exports_what_a_user_needs(name):
    assert name in ptncn.__all__
    assert name in dir(ptncn)
    assert getattr(ptncn, name) is not None


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="has no attribute 'Ptncn'"):
        _ = ptncn.Ptncn


def test_importing_it_imports_neither_torch_nor_any_of_its_parts():
    code = "import sys, ptncn; print([name for name in sys.modules if name.startswith(('ptncn.', 'torch', 'numpy'))])"
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert output == "[]\n"


def test_listing_learners_does_not_import_torch():
    code = "import sys, ptncn; ptncn.learners.names(); print('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"


ROOT = Path(__file__).resolve().parents[1]
LEARNING = (
    *("learner.py", "records.py", "training.py", "distributions.py", "registry.py", "system.py"),
    *("checkpoint", "kernels", "updates", "network", "learners", "metrics", "streaming"),
)


def imported_at_load(path):
    """The packages that a module imports when it is loaded."""
    packages = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Import):
            packages |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            packages.add((node.module or "").partition(".")[0])
    return packages - {"ptncn", ""} - set(sys.stdlib_module_names)


def test_learning_needs_the_required_packages_alone():
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    required = {re.match(r"[a-z0-9]+", line)[0] for line in declared}
    for part in LEARNING:
        source = ROOT / "src/ptncn" / part
        files = list(source.rglob("*.py")) if source.is_dir() else [source.with_suffix(".py")]
        assert files
        for path in files:
            assert imported_at_load(path) <= required, path
