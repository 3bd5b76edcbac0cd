"""Get started and the tutorials run from top to bottom: Python and commands, in an empty folder, without data."""

import re
import shlex
import types
from pathlib import Path

import pytest

from ptncn.cli import app
from ptncn.learners.registry import LEARNERS

DOCS = Path(__file__).resolve().parents[1] / "docs"
PAGES = [DOCS / "get-started.md", *sorted((DOCS / "tutorials").glob("*.md"))]
BLOCK = re.compile(r"^```(python|sh)\n(.*?)^```", re.DOTALL | re.MULTILINE)


@pytest.fixture
def module(tmp_path, monkeypatch):
    """A module for the code of a page, in an empty folder; learners that it registers are removed."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PTNCN_DATA", str(tmp_path / "cache"))
    (tmp_path / "feed.csv").write_text("load\n" + "".join(f"{(t % 7) / 7}\n" for t in range(60)))
    module = types.ModuleType("tutorial")
    monkeypatch.setitem(__import__("sys").modules, "tutorial", module)
    known = set(LEARNERS)
    yield module
    for name in set(LEARNERS) - known:
        LEARNERS.remove(name)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_tutorial_runs_from_top_to_bottom(page, module, capfd):
    blocks = BLOCK.findall(page.read_text(encoding="utf-8"))
    assert any(language == "python" for language, _ in blocks)
    for language, text in blocks:
        if language == "python":
            exec(compile(text, page.name, "exec"), vars(module))
            continue
        for line in text.splitlines():
            if line.startswith("ptncn "):
                failed = app(shlex.split(line, comments=True)[1:], standalone_mode=False)
                assert not failed, f"{line}\n{capfd.readouterr()}"


def test_a_user_defined_learner_can_be_made_by_name_and_restored(module):
    text = (DOCS / "tutorials/learner.md").read_text(encoding="utf-8")
    for language, block in BLOCK.findall(text)[:2]:
        assert language == "python"
        exec(compile(block, "learner.md", "exec"), vars(module))
    import torch

    from ptncn import make

    learner = make("moving-average", input_size=2, output="gaussian", rate=0.5)
    learner.step(torch.tensor([[2.0, 4.0]]), learner.begin(1))
    again = make(learner.registry_name, **learner.options())
    again.restore(learner.snapshot())
    torch.testing.assert_close(again.predict(again.begin(1)), torch.tensor([[1.0, 2.0]]))
