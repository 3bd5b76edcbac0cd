"""Markdown tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """
    >>> print(*table(("what", "ms"), [("read", "2.3")]), sep="\\n")
    | what | ms |
    |---|---|
    | read | 2.3 |
    """
    return [_line(headings), "|" + "---|" * len(headings), *map(_line, rows)]


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
