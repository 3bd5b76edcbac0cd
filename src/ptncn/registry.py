"""Registries: learners, distributions, optimisers, datasets, metrics, experiments and stream formats by name.

Each kind has one registry. This package registers its entries where they are defined; other packages add theirs
through entry points, which are loaded when a registry is first used::

    [project.entry-points."ptncn.learners"]
    mine = "my_package:ENTRY"
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any, Generic, TypeVar, cast

T = TypeVar("T")


@dataclass(frozen=True)
class Lazy:
    """An entry that is imported when it is first used."""

    where: str
    """"module:attribute"."""


class Registry(Mapping[str, T], Generic[T]):
    """Entries by name, in the order in which they were added.

    Arguments:
        kind: what an entry is, in the singular, for error messages.
        group: the entry-point group through which other packages add theirs, such as "ptncn.learners".

    >>> colours = Registry[str]("colour")
    >>> colours.add("blue", "#00f")
    '#00f'
    >>> colours.find("bleu")
    Traceback (most recent call last):
    ValueError: unknown colour 'bleu'; did you mean 'blue'? Choose one of: blue
    """

    def __init__(self, kind: str, group: str | None = None, entries: Mapping[str, T | Lazy] | None = None) -> None:
        self.kind, self.group = kind, group
        self._entries: dict[str, T | Lazy] = dict(entries or {})
        self._complete = group is None

    def add(self, name: str, entry: T, *, replace: bool = False) -> T:
        """Register an entry and return it; a name can be used only once unless `replace` is set."""
        self._add(name, entry, replace)
        return entry

    def add_lazy(self, name: str, where: str, *, replace: bool = False) -> None:
        """Register the entry at "module:attribute", which is imported when it is first used."""
        self._add(name, Lazy(where), replace)

    def _add(self, name: str, entry: T | Lazy, replace: bool) -> None:
        if name in self._entries and not replace:
            raise ValueError(f"{self.kind} {name!r} is registered already; choose another name, or replace=True")
        self._entries[name] = entry

    def remove(self, name: str) -> None:
        """Remove an entry."""
        self.find(name)
        del self._entries[name]

    def __contains__(self, name: object) -> bool:
        self._load_entry_points()
        return name in self._entries

    def find(self, name: str) -> T:
        """The entry of that name; raises a ValueError that lists the known names."""
        self._load_entry_points()
        if name not in self._entries:
            raise ValueError(unknown(self.kind, name, self._entries))
        return self[name]

    def names(self) -> list[str]:
        return list(self)

    def __getitem__(self, name: str) -> T:
        self._load_entry_points()
        entry = self._entries[name]
        if isinstance(entry, Lazy):
            entry = self._entries[name] = cast(T, load_object(entry.where))
        return entry

    def __iter__(self) -> Iterator[str]:
        self._load_entry_points()
        return iter(self._entries)

    def __len__(self) -> int:
        self._load_entry_points()
        return len(self._entries)

    def _load_entry_points(self) -> None:
        if self._complete:
            return
        self._complete = True
        for point in entry_points(group=self.group or ""):
            if point.name not in self._entries:
                self._entries[point.name] = point.load()


def load_object(where: str) -> Any:
    """Import the object at "module:attribute"."""
    module, _, attribute = where.partition(":")
    return getattr(import_module(module), attribute)


def unknown(kind: str, name: object, known: Iterable[str]) -> str:
    """An error message for an unknown name: the closest match, then all known names.

    >>> unknown("preset", "bets", ["paper", "best"])
    "unknown preset 'bets'; did you mean 'best'? Choose one of: paper, best"
    """
    return f"unknown {kind} {name!r}; {suggest(name, known)}"


def suggest(name: object, known: Iterable[str]) -> str:
    """
    >>> suggest("widow", ["window", "stride"]), suggest("lr", ["window", "stride"])
    ("did you mean 'window'? Choose one of: window, stride", 'choose one of: window, stride')
    """
    known = list(known)
    close = difflib.get_close_matches(str(name), known, n=1)
    return f"{f'did you mean {close[0]!r}? Choose' if close else 'choose'} one of: {', '.join(known)}"
