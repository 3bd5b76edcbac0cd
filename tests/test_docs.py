"""The documentation is correct: its links, tables, examples and commands."""

import ast
import dataclasses
import doctest
import importlib
import pkgutil
import re
import shlex
import sys
from pathlib import Path

import pytest

import ptncn
from ptncn.cli import app
from ptncn.learners import LEARNERS, Entry
from ptncn.network import Config

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "docs"))
from _tables import BLOCK, TABLES, fill  # noqa: E402

PACKAGE = ROOT / "src/ptncn"
CHOICES = ROOT / "docs/choices.md"
README = ROOT / "README.md"
PAGES = [README, ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
CODE_LINK = re.compile(r"\[`([^`]+)`\]\(([^)#]+\.(?:py|c|h|inc))\)")
MODULES = [
    name
    for name in ["ptncn", *(info.name for info in pkgutil.walk_packages(ptncn.__path__, "ptncn."))]
    if not name.startswith("ptncn.data")  # tests/data tests its own page
]


@pytest.fixture
def working_directory(tmp_path, monkeypatch):
    """An empty folder, and no data."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PTNCN_DATA", str(tmp_path / "cache"))
    return tmp_path


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_linked_code_occurs_in_the_linked_file(page):
    for quoted, target in CODE_LINK.findall(page.read_text(encoding="utf-8")):
        source = (page.parent / target).resolve()
        names_it = source.as_posix().endswith(quoted)
        assert names_it or quoted.split(".")[-1] in source.read_text(encoding="utf-8"), f"{quoted!r} in {target}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_to_files_are_valid(page):
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
        assert target.startswith("https://") or (page.parent / target).exists(), target


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_tables_made_from_registries_and_records_are_current(page):
    text = page.read_text(encoding="utf-8")
    assert fill(text) == text, "python docs/_tables.py"


@pytest.mark.parametrize("page", sorted((ROOT / "docs").rglob("*.md")), ids=lambda page: page.name)
def test_a_list_follows_a_blank_line_as_the_site_requires(page):
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    assert not re.findall(r"^(?![ #]|- |\* |\d+\. ).+\n(?:- |\* |\d+\. ).*", text, re.MULTILINE)


def test_every_table_is_on_a_page():
    on_pages = {match[1] for page in PAGES for match in BLOCK.findall(page.read_text(encoding="utf-8"))}
    assert on_pages == set(TABLES)


def test_the_site_lists_a_new_learner():
    LEARNERS.add("newcomer", Entry("package:Newcomer", "a new rule", "online", "B·n"))
    try:
        page = fill((ROOT / "docs/learners.md").read_text(encoding="utf-8"))
    finally:
        LEARNERS.remove("newcomer")
    assert "| `newcomer` | a new rule | at each step | B·n |" in page


def test_every_option_is_on_the_page_of_choices():
    prose = BLOCK.sub("", CHOICES.read_text(encoding="utf-8"))
    for option in dataclasses.fields(Config):
        assert re.search(rf"`{option.name}[`=]", prose), option.name
    assert [int(number) for number in re.findall(r"^\| (\d+) \|", prose, re.MULTILINE)] == list(range(1, 15))


def imported_parts(path: Path) -> set[str]:
    """The parts of the package that a module imports when it is loaded, and not only for its types."""
    packages = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "ptncn":
            inside = (node.module or "").split(".")[1:]
            packages |= {inside[0]} if inside else {alias.name for alias in node.names}
    return packages - {"__version__"}


def test_imports_follow_the_architecture_page():
    text = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    table = text[text.index("| package |") :].split("\n\n")[0]
    rows = [[re.findall(r"`([a-z_]+)(?:\.py|/)?`", cell) for cell in row.split("|")] for row in table.splitlines()[2:]]
    anywhere = set(rows[0][1])
    described = {part for row in rows for part in row[1]}
    for _, parts, _, allowed, _ in rows[:-1]:  # the command line may import anything
        for part in parts:
            source = PACKAGE / part
            for path in source.rglob("*.py") if source.is_dir() else [source.with_suffix(".py")]:
                extra = imported_parts(path) - {part, *allowed, *anywhere}
                assert not extra, f"{path.relative_to(ROOT)} imports {extra}"
    built = {path.stem for path in PACKAGE.glob("*.py")} | {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert described <= built, "docs/architecture.md describes what is not there"


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # examples may leave a file open
@pytest.mark.usefixtures("working_directory")
@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings_run(name):
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        pytest.skip(f"an extra is not installed: {error.name}")
    assert doctest.testmod(module, optionflags=doctest.ELLIPSIS).failed == 0


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


@pytest.mark.usefixtures("working_directory")
def test_the_python_of_the_readme_runs_from_top_to_bottom():
    names: dict[str, object] = {}
    code = blocks(README, "python")
    assert code
    for block in code:
        assert len(block.splitlines()) <= 15
        exec(compile(block, "README.md", "exec"), names)


def commands(page: Path) -> list[str]:
    """The lines of its shell blocks that call ptncn; comments are left out."""
    lines = [line.split("  #")[0].strip() for block in blocks(page, "sh") for line in block.splitlines()]
    return [line for line in lines if line.startswith("ptncn ")]


def test_the_commands_of_the_readme_run(working_directory, capfd, monkeypatch):
    """In their order, in an empty folder; nothing is downloaded. A live page does not end by itself: its server is left
    out, its options are not."""
    monkeypatch.setattr("ptncn.live.Server.run", lambda server: server._socket.close())

    (working_directory / "feed.csv").write_text("time,load\n" + "".join(f"{t},{(t % 7) / 7}\n" for t in range(60)))
    lines = commands(README)
    assert lines
    for line in lines:
        failed = app(shlex.split(line)[1:], standalone_mode=False)
        assert not failed, f"{line}\n{capfd.readouterr()}"
    for written in ("predictions.csv", "feed.ckpt"):
        assert (working_directory / written).stat().st_size > 0


def test_the_make_targets_of_the_readme_exist():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"`?make ([a-z]+)", README.read_text(encoding="utf-8")):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


def test_the_citation_has_the_version_of_the_package():
    assert f"\nversion: {ptncn.__version__}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
