"""What a report consists of, whatever it is written as: `page` makes HTML of it, `markdown` makes Markdown.

Texts may hold `code` in backticks, **strong words**, and [links](https://example.org).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field


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
    """Cells are texts; whatever reads as a number is set as one, and stays one when it is copied."""

    caption: str
    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    source: str = ""
    """Which records it was made from."""
    command: str = ""
    """What makes those records again."""


@dataclass(frozen=True)
class Picture:
    """One figure in every form it has."""

    name: str
    """Of its files, without ending."""
    width: int
    height: int
    """In CSS pixels."""
    png: bytes
    svg: bytes | None = None
    gif: bytes | None = None
    """Of a film: the moving picture; `png` is then one moment of it."""


@dataclass(frozen=True)
class Figure:
    """A picture with what it shows: `alt` for those who do not see it, `caption` for everyone."""

    picture: Picture
    alt: str
    caption: str
    wide: bool = False
    """Takes a row of its own, and scrolls sideways where the screen is narrow."""


Part = Text | Points | Commands | Table | Figure


@dataclass(frozen=True)
class Section:
    """A heading, what stands below it, and smaller sections."""

    title: str
    parts: Sequence[Part] = ()
    sections: Sequence[Section] = field(default=())

    def all_parts(self) -> list[Part]:
        """Its own and those of its sections, in the order of reading."""
        return [*self.parts, *(part for section in self.sections for part in section.all_parts())]
