"""The documentation builds without warnings, and its pages load nothing from other hosts."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("mkdocs")
pytest.importorskip("mkdocstrings")
ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    result = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert result.stderr.strip() == ""
    return folder


def test_every_page_of_the_documentation_is_on_the_site(site):
    pages = {path.relative_to(ROOT / "docs").with_suffix("") for path in (ROOT / "docs").rglob("*.md")}
    built = {path.relative_to(site).with_suffix("") for path in site.rglob("*.html")}
    assert {page.parent / "index" if page.name == "README" else page for page in pages} <= built


def test_pages_load_nothing_from_other_hosts(site):
    loaded = re.compile(r'<(?:script|img|link|iframe|source)\b[^>]*\b(?:src|href)="(https?:)?//')
    for page in site.rglob("*.html"):
        assert not loaded.search(page.read_text(encoding="utf-8")), page


def test_the_api_reference_shows_signatures_and_docstrings(site):
    text = (site / "api/network.html").read_text(encoding="utf-8")
    assert 'id="ptncn.network.PTNCN"' in text
    assert "Predicts the next observation of a sequence" in text


def test_examples_in_docstrings_are_shown_as_code(site):
    for page in (site / "api").glob("*.html"):
        assert "<blockquote>" not in page.read_text(encoding="utf-8"), f"{page.name}: an example is shown as a quote"
