"""Render a report: as one HTML page with everything inside it (no network, no scripts, no other files), or as Markdown
with its figures as files next to the page."""

from __future__ import annotations

import base64
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from itertools import groupby

from jinja2 import Environment, PackageLoader, StrictUndefined
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markupsafe import Markup

from ptncn.report.model import Commands, Figure, Paragraph, Part, Picture, Points, Section, Table, for_page, slug

_INLINE = MarkdownIt("commonmark", {"html": False})
_LINK_UP = re.compile(r"\[([^\]]+)\]\(\.\./[^)]*\)")


def inline_html(words: str) -> str:
    """Inline Markdown as HTML. Links to files become plain text, because the HTML page is self-contained.

    >>> inline_html("a < b, **not** `x`, [there](https://a.b) and [here](../x.md)")
    'a &lt; b, <strong>not</strong> <code>x</code>, <a href="https://a.b">there</a> and here'
    """
    tokens = _without_file_links(_tokens(words))
    return RendererHTML().renderInline(tokens, _INLINE.options, {})


def plain(words: str) -> str:
    """
    >>> plain("**not** `x`, [there](https://a.b)")
    'not x, there'
    """
    return "".join(token.content for token in _tokens(words))


def _tokens(words: str) -> list[Token]:
    return [token for block in _INLINE.parseInline(words) for token in block.children or ()]


def _without_file_links(tokens: Sequence[Token]) -> list[Token]:
    kept, dropping = [], False
    for token in tokens:
        if token.type == "link_open":
            dropping = not str(token.attrs["href"]).startswith(("https://", "#"))
        if not (dropping and token.type in ("link_open", "link_close")):
            kept.append(token)
    return kept


def make_markdown(section: Section, *, figures: str = "figures", note: str = "", alone: bool = False) -> str:
    """A page from a section.

    Arguments:
        figures: the folder of its pictures, relative to the page.
        note: a paragraph below the title.
        alone: leave out links to files above the page.

    >>> print(make_markdown(Section("Title", [Table("A table.", ("learner", "SE"), [("P-TNCN", "1.5")])])))
    # Title
    <BLANKLINE>
    A table.
    <BLANKLINE>
    | learner | SE |
    |---|---:|
    | P-TNCN | 1.5 |
    <BLANKLINE>
    """
    blocks = [f"# {section.title}", *([note] if note else []), *_blocks(section, 1, figures)]
    text = "\n\n".join(blocks) + "\n"
    return _LINK_UP.sub(r"\1", text) if alone else text


def _blocks(section: Section, level: int, figures: str) -> list[str]:
    blocks = [] if level == 1 else [f"{'#' * level} {section.title}"]
    blocks += [_block(part, figures) for part in section.parts]
    for each in section.sections:
        blocks += _blocks(each, level + 1, figures)
    return blocks


def _block(part: Part, figures: str) -> str:
    match part:
        case Paragraph(words):
            return words
        case Points(items, numbered):
            return "\n".join(f"{f'{place}.' if numbered else '-'} {item}" for place, item in enumerate(items, 1))
        case Commands(lines):
            return "\n".join(["```sh", *lines, "```"])
        case Table():
            return _table(part)
        case Figure():
            alt = plain(part.alt).replace("]", ")").replace("[", "(")
            return f"![{alt}]({figures}/{part.file_name})\n\n*{part.caption}*"


def _table(table: Table) -> str:
    sides = ["---:" if table.numeric(place) else "---" for place in range(len(table.headings))]
    lines = [table.caption, "", _row(table.headings), f"|{'|'.join(sides)}|", *map(_row, table.rows)]
    made = " ".join([table.source, f"Made by `{table.command}`." if table.command else ""]).strip()
    return "\n".join([*lines, *(["", made] if made else [])])


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


LONG = 48
"""Number of characters above which a cell wraps."""


def make_page(title: str, lead: str, sections: Sequence[Section], *, footer: str = "") -> str:
    """
    >>> page = make_page("A title", "What it is.", [Section("First", [Paragraph("Some `code`.")])])
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
    for kind in (Paragraph, Points, Commands, Table, Figure):
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
    """Group consecutive figures, which share rows on a wide screen."""
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
