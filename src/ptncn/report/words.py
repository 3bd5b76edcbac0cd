"""Small things that every kind of page needs from a text."""

from __future__ import annotations

import html
import re

_NUMBER = re.compile(r"[+-]?\d[\d,]*(\.\d+)?(e[+-]?\d+)?( ?[×%])?|–|")
_INLINE = re.compile(r"`([^`]+)`|\*\*([^*]+)\*\*|\[([^\]]+)\]\(([^)]+)\)")


def is_number(cell: str) -> bool:
    """
    >>> [is_number(cell) for cell in ("-1.50", "1,000", "1.12 ×", "–", "", "P-TNCN", "2 layers")]
    [True, True, True, True, True, False, False]
    """
    return _NUMBER.fullmatch(cell) is not None


def slug(title: str) -> str:
    """
    >>> slug("Table I: what was asked?")
    'table-i-what-was-asked'
    """
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-") or "section"


def inline_html(words: str) -> str:
    """Backticks, stars and links as HTML. A link to a file is left out, since a page stands alone.

    >>> inline_html("a < b, **not** `x`, [there](https://a.b) and [here](../x.md)")
    'a &lt; b, <strong>not</strong> <code>x</code>, <a href="https://a.b">there</a> and here'
    """

    def mark(found: re.Match[str]) -> str:
        code, strong, label, target = found.groups()
        if code is not None:
            return f"<code>{code}</code>"
        if strong is not None:
            return f"<strong>{strong}</strong>"
        return f'<a href="{target}">{label}</a>' if target.startswith(("https://", "#")) else str(label)

    return _INLINE.sub(mark, html.escape(words, quote=True))


def plain(words: str) -> str:
    """
    >>> plain("**not** `x`, [there](https://a.b)")
    'not x, there'
    """
    return _INLINE.sub(lambda found: found[1] or found[2] or found[3], words)
