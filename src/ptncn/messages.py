"""Error messages that several packages share."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def unknown(kind: str, name: object, known: Iterable[str]) -> str:
    """One line for a name that is not known: the closest match, then every known name.

    >>> unknown("preset", "bets", ["paper", "best"])
    "unknown preset 'bets'; did you mean 'best'? Choose one of: paper, best"
    """
    known = list(known)
    close = difflib.get_close_matches(str(name), known, n=1)
    hint = f"did you mean {close[0]!r}? Choose" if close else "choose"
    return f"unknown {kind} {name!r}; {hint} one of: {', '.join(known)}"


def one_line(error: BaseException) -> str:
    """The message of an error on one line, or its type where it has none.

    >>> one_line(ValueError("expected 3 columns,\\n  got 4"))
    'expected 3 columns, got 4'
    """
    return " ".join(str(error).split()) or type(error).__name__
