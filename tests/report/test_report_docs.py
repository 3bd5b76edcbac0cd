"""docs/results is made from the records and never edited."""

import io
import re
from pathlib import Path

import matplotlib
import numpy as np
import pytest
from PIL import Image, ImageSequence

from ptncn.cli.report import DEFAULT
from ptncn.report.pages import make_pages, write_markdown
from ptncn.report.sources import gather

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs/results"
COMMAND = "ptncn report --docs docs/results"


@pytest.fixture(scope="module")
def fresh(tmp_path_factory):
    """The pages made from the current records."""
    out = tmp_path_factory.mktemp("docs") / "results"
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        sources = gather([place for place in DEFAULT if place.exists()])
        write_markdown(list(make_pages(sources)), out, unreadable=sources.unreadable, command=COMMAND)
    return out


def files(folder, *endings):
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.suffix in endings}


def test_there_is_a_page_for_each_table_and_no_other_file_but_the_plan(fresh):
    kinds = (".md", ".svg", ".png", ".gif")
    assert files(DOCS, *kinds) - {"queue.md"} == files(fresh, *kinds), COMMAND


def test_pages_agree_with_the_records(fresh):
    for name in files(fresh, ".md"):
        assert (DOCS / name).read_text(encoding="utf-8") == (fresh / name).read_text(encoding="utf-8"), COMMAND


def test_drawings_agree_with_the_records(fresh):
    pinned = re.search(r"^matplotlib==(.*)$", (ROOT / "constraints.txt").read_text(), re.MULTILINE)[1]
    if matplotlib.__version__ != pinned:
        pytest.skip(f"other versions than {pinned} draw other lines")
    for name in files(fresh, ".svg"):
        assert (DOCS / name).read_bytes() == (fresh / name).read_bytes(), COMMAND


def test_films_agree_with_the_records(fresh):
    for name in files(fresh, ".png", ".gif"):
        ours, made = (pixels((folder / name).read_bytes()) for folder in (DOCS, fresh))
        assert ours.shape == made.shape, COMMAND
        assert np.abs(ours - made).mean() < 1, COMMAND


def pixels(picture):
    return np.stack(
        [np.asarray(frame.convert("L"), float) for frame in ImageSequence.Iterator(Image.open(io.BytesIO(picture)))]
    )


def test_links_are_valid():
    for page in DOCS.glob("*.md"):
        for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            assert target.startswith("https://") or (page.parent / target).exists(), f"{page.name}: {target}"


def test_the_figures_are_small_enough_for_a_repository():
    assert sum(path.stat().st_size for path in (DOCS / "figures").iterdir()) < 3_000_000
