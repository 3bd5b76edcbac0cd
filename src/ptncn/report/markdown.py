"""The same sections as Markdown, with the figures as files beside the page."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ptncn.report.parts import Commands, Figure, Part, Points, Section, Table, Text
from ptncn.report.words import is_number, plain


def make_markdown(section: Section, *, figures: str = "figures", note: str = "", alone: bool = False) -> str:
    """A page from a section; `figures` is the folder of its pictures, as seen from the page.

    If it stands `alone`, links to files above it are left out.

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
    return re.sub(r"\[([^\]]+)\]\(\.\./[^)]*\)", r"\1", text) if alone else text


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
            return f"![{alt}]({figures}/{file_name(part)})\n\n*{part.caption}*"


def file_name(figure: Figure) -> str:
    """Of the form that a Markdown page shows."""
    picture = figure.picture
    ending = "gif" if picture.gif is not None else "svg" if picture.svg is not None and not figure.wide else "png"
    return f"{picture.name}.{ending}"


def _table(table: Table) -> str:
    sides = [
        "---:" if all(is_number(row[place]) for row in table.rows) and any(row[place] for row in table.rows) else "---"
        for place in range(len(table.headings))
    ]
    lines = [table.caption, "", _row(table.headings), f"|{'|'.join(sides)}|", *map(_row, table.rows)]
    made = " ".join([table.source, f"Made by `{table.command}`." if table.command else ""]).strip()
    return "\n".join([*lines, *(["", made] if made else [])])


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"
