"""Render a report as Markdown, with figures as files next to the page; and render inline Markdown as HTML."""

from __future__ import annotations

import re
from collections.abc import Sequence

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token

from ptncn.report.model import Commands, Figure, Part, Points, Section, Table, Text

_INLINE = MarkdownIt("commonmark", {"html": False})
_LINK_UP = re.compile(r"\[([^\]]+)\]\(\.\./[^)]*\)")


def inline_html(words: str) -> str:
    """Inline Markdown as HTML. A link to a file becomes plain text, because an HTML page stands alone.

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

    >>> print(make_markdown(Section("Title", [Table("A table.", ("model", "SE"), [("P-TNCN", "1.5")])])))
    # Title
    <BLANKLINE>
    A table.
    <BLANKLINE>
    | model | SE |
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
        case Text(words):
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
