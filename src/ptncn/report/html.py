"""Render a report as one HTML page with everything inside it: no network, no scripts, no other files."""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from itertools import groupby

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from ptncn.report.markdown import inline_html, plain
from ptncn.report.model import Commands, Figure, Part, Picture, Points, Section, Table, Text, slug
from ptncn.report.theme import for_page

LONG = 48
"""Cells with more characters than this wrap."""


def make_page(title: str, lead: str, sections: Sequence[Section], *, footer: str = "") -> str:
    """
    >>> page = make_page("A title", "What it is.", [Section("First", [Text("Some `code`.")])])
    >>> '<h2 id="first">First</h2>' in page, "<p>Some <code>code</code>.</p>" in page, "https://" in page
    (True, True, False)
    """
    unique, environment = _unique_names(), _environment()
    css = Markup(environment.loader.get_source(environment, "page.css")[0])  # type: ignore[union-attr]
    named = [(section, unique(section.title)) for section in sections]
    template = environment.get_template("page.html.j2")
    return template.render(title=title, lead=lead, sections=named, footer=footer, css=css, unique=unique) + "\n"


@cache
def _environment() -> Environment:
    environment = Environment(loader=PackageLoader("ptncn.report"), autoescape=True, undefined=StrictUndefined)
    environment.filters |= {
        "inline": lambda words: Markup(inline_html(words)),
        "plain": plain,
        "grouped": _grouped,
        "still": _still,
        "moving": lambda picture: _data("image/gif", picture.gif),
    }
    for kind in (Text, Points, Commands, Table, Figure):
        environment.tests[kind.__name__.lower()] = lambda part, kind=kind: isinstance(part, kind)
    environment.globals["column_class"] = _column_class
    return environment


def _unique_names() -> Callable[[str], str]:
    """A function that makes an element's id from a title; the second `results` is `results-2`."""
    used = Counter(["content", "contents"])

    def unique(title: str) -> str:
        name = slug(plain(title))
        used[name] += 1
        return name if used[name] == 1 else f"{name}-{used[name]}"

    return unique


def _grouped(parts: Iterable[Part]) -> list[list[Part]]:
    """Consecutive figures together, so that they share rows on a wide screen."""
    return [list(group) for _, group in groupby(parts, lambda part: isinstance(part, Figure))]


def _column_class(table: Table, column: int) -> Markup:
    if table.numeric(column):
        return Markup(' class="number"')
    return Markup(' class="long"') if any(len(plain(row[column])) > LONG for row in table.rows) else Markup()


def _still(picture: Picture) -> str:
    if picture.svg is None:
        return _data("image/png", picture.png)
    return _data("image/svg+xml", for_page(picture.svg))


def _data(kind: str, content: bytes) -> str:
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"
