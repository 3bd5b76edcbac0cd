"""Chapters as files: the page, Markdown, and the figures of both."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from ptncn.experiments import EXPERIMENTS
from ptncn.files import write_atomically
from ptncn.report.chapter import Chapter
from ptncn.report.html import make_page
from ptncn.report.markdown import make_markdown, plain
from ptncn.report.model import Figure, Part, Points, Section, Table, Text, slug
from ptncn.report.overview import HEADINGS

TITLE = "The paper’s tables and figures, made again"
LEAD = (
    "The Parallel Temporal Neural Coding Network and the models it is compared with: the paper’s numbers, ours beside "
    "them, and an honest mark where we do not reach them. Everything here was made from records by one command."
)
FOLDER = "figures"
MADE = "Made from records by"


def write_report(chapters: Sequence[Chapter], out: Path, *, unreadable: Sequence[str], command: str) -> Path:
    """`index.html`, which stands alone; beside it every table as Markdown and every figure as PNG and SVG."""
    files = _markdown(chapters, unreadable, command, alone=True)
    for picture in (figure.picture for figure in _all_figures(chapter.section for chapter in chapters)):
        for ending, content in (("png", picture.png), ("svg", picture.svg), ("gif", picture.gif)):
            if content is not None:
                files[f"{FOLDER}/{picture.name}.{ending}"] = content
    glance = _glance({f"[{chapter.name}](#{slug(chapter.section.title)})": chapter for chapter in chapters})
    top = [Section("At a glance", glance)] if glance else []
    sections = [*top, *(chapter.section for chapter in chapters), *_left_out(unreadable)]
    files["index.html"] = make_page(TITLE, LEAD, sections, footer=f"Made by `{command}`.").encode()
    _write(out, files)
    return out / "index.html"


def write_markdown(chapters: Sequence[Chapter], out: Path, *, unreadable: Sequence[str], command: str) -> Path:
    """A page a chapter and an overview, `README.md`, with just the figures that they show."""
    _write(out, _markdown(chapters, unreadable, command, alone=False))
    return out / "README.md"


def _markdown(chapters: Sequence[Chapter], unreadable: Sequence[str], command: str, *, alone: bool) -> dict[str, bytes]:
    """By name, every file; pages link to the documentation above them, unless they stand alone."""
    note = f"*{MADE} `{command}`; not to be edited by hand.*"
    files = {}
    sections = {chapter.name: chapter.section if alone else _with_one_film(chapter.section) for chapter in chapters}
    for name, section in sections.items():
        files[f"{name}.md"] = make_markdown(section, figures=FOLDER, note=note, alone=alone).encode()
    for figure in _all_figures(sections.values()):
        name = figure.file_name
        content = {"png": figure.picture.png, "svg": figure.picture.svg, "gif": figure.picture.gif}[name[-3:]]
        assert content is not None
        files[f"{FOLDER}/{name}"] = content
    links = {f"[{chapter.name}]({chapter.name}.md)": chapter for chapter in chapters}
    pages = Points([f"{link}: {chapter.section.title}" for link, chapter in links.items()])
    overview = Section(TITLE, [Text(LEAD), pages, *_glance(links)], _left_out(unreadable))
    return {**files, "README.md": make_markdown(overview, note=note).encode()}


def _glance(chapters: Mapping[str, Chapter]) -> list[Part]:
    """Where the paper's network stands, by a link to each chapter; nothing, if the paper has no numbers."""
    rows = [[link, *row] for link, chapter in chapters.items() for row in chapter.standings]
    if not rows:
        return []
    caption = (
        "The network of the paper in every table: its number, ours, and its place among the models that both have. "
        "▲ is not reached, ● reached, ◇ lower than the paper’s, but on other data than the paper’s."
    )
    return [Table(caption, HEADINGS, rows)]


def _left_out(unreadable: Sequence[str]) -> list[Section]:
    return [Section("Files that were left out", [Points([plain(line) for line in unreadable])])] if unreadable else []


def _all_figures(sections: Iterable[Section]) -> list[Figure]:
    return [part for section in sections for part in section.all_parts() if isinstance(part, Figure)]


def _with_one_film(section: Section) -> Section:
    """Films are by far the largest files: a page of the documentation has one, and strips of all."""
    films = [figure for figure in _all_figures([section]) if figure.picture.gif is not None][1:]

    def keep(some: Section) -> Section:
        return Section(some.title, [part for part in some.parts if part not in films], [*map(keep, some.sections)])

    return keep(section)


def _write(out: Path, files: Mapping[str, bytes]) -> None:
    """Write all of them, and remove what an earlier report left there and this one does not have."""
    for name, content in files.items():
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        write_atomically(out / name, content)
    kept = {out / name for name in files}
    pages = [page for page in out.glob("*.md") if page not in kept and MADE in page.read_text(errors="replace")]
    for page in pages:
        page.unlink()
    for figure in (out / FOLDER).glob("*"):
        named = figure.stem.startswith(tuple(EXPERIMENTS))
        if figure not in kept and named and figure.suffix in (".svg", ".png", ".gif"):
            figure.unlink()
