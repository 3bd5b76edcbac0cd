"""A report as data: sections of text, tables and figures. `html` and `markdown` render it.

Texts are inline Markdown: `code`, **strong**, *emphasis* and [links](https://example.org).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

_NUMBER = re.compile(r"[+-]?\d[\d,]*(\.\d+)?(e[+-]?\d+)?( ?[×%])?|–|")


@dataclass(frozen=True)
class Text:
    """A paragraph."""

    words: str


@dataclass(frozen=True)
class Points:
    """A list of short texts."""

    items: Sequence[str]
    numbered: bool = False


@dataclass(frozen=True)
class Commands:
    """Lines for a shell."""

    lines: Sequence[str]


@dataclass(frozen=True)
class Table:
    """A table of texts; columns of numbers are right-aligned."""

    caption: str
    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    source: str = ""
    """The records that the table shows."""
    command: str = ""
    """The command that makes those records."""

    def numeric(self, column: int) -> bool:
        """Whether every cell of the column is a number or empty, and at least one is not empty."""
        cells = [row[column] for row in self.rows]
        return any(cells) and all(is_number(cell) for cell in cells)


@dataclass(frozen=True)
class Picture:
    """One image in every format it has."""

    name: str
    """Name of its files, without extension."""
    width: int
    height: int
    """In CSS pixels."""
    png: bytes
    svg: bytes | None = None
    gif: bytes | None = None
    """An animation; `png` is then one frame of it."""

    def files(self) -> dict[str, bytes]:
        """{extension: content} of every format."""
        formats = {"png": self.png, "svg": self.svg, "gif": self.gif}
        return {extension: content for extension, content in formats.items() if content is not None}


@dataclass(frozen=True)
class Figure:
    """A picture with alternative text and a caption."""

    picture: Picture
    alt: str
    caption: str
    wide: bool = False
    """Takes the full width; scrolls sideways on a narrow screen."""

    @property
    def extension(self) -> str:
        """The format that a Markdown page shows."""
        picture = self.picture
        return "gif" if picture.gif is not None else "svg" if picture.svg is not None and not self.wide else "png"

    @property
    def file_name(self) -> str:
        return f"{self.picture.name}.{self.extension}"


Part = Text | Points | Commands | Table | Figure


@dataclass(frozen=True)
class Section:
    """A heading with parts and subsections."""

    title: str
    parts: Sequence[Part] = ()
    sections: Sequence[Section] = ()

    def all_parts(self) -> list[Part]:
        """Its own parts and those of its subsections, in reading order."""
        return [*self.parts, *(part for section in self.sections for part in section.all_parts())]

    def figures(self) -> list[Figure]:
        return [part for part in self.all_parts() if isinstance(part, Figure)]


def is_number(cell: str) -> bool:
    """
    >>> [is_number(cell) for cell in ("-1.50", "1,000", "1.12 ×", "–", "", "P-TNCN", "2 layers")]
    [True, True, True, True, True, False, False]
    """
    return _NUMBER.fullmatch(cell) is not None


def slug(title: str) -> str:
    """
    >>> slug("Table I: what is asked?")
    'table-i-what-is-asked'
    """
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-") or "section"
