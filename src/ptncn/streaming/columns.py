"""Which columns of a row are observed, and how a row becomes a vector and a vector a row."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptncn.streaming.errors import RowError, StreamError
from ptncn.streaming.source import Row

Vector = NDArray[np.float64]
Value = float | str | None

TIME_NAMES = ("timestamp", "time", "datetime", "date", "ts")
MISSING = ("", "NA", "N/A", "null")
OTHER = "other"
"""What a categorical column says for values that found no slot."""
LARGEST = 1e100
"""Squares of what is larger would not be numbers any more."""


class Columns:
    """Chooses columns by the first row, then turns rows into vectors: a number is one entry, a category `slots`.

    Arguments:
        choice: names or patterns like `temp*`; without any, all columns that begin with a number or nothing.
        categorical: names or patterns of columns that hold one of several values.
        timestamp: the column that is passed through; without one, a column of a usual name is.
        slots: values of a categorical column that get an entry of their own, in the order of appearance. The last
            slot stands for all that come later.
        missing: texts that say that nothing was observed.
        change: "refuse" rows whose columns are others than those of the first, or "mask": what vanished is missing,
            what appeared is ignored.
    """

    def __init__(
        self,
        choice: Iterable[str] = (),
        *,
        categorical: Iterable[str] = (),
        timestamp: str | None = None,
        slots: int = 16,
        missing: Iterable[str] = MISSING,
        change: str = "refuse",
    ) -> None:
        if slots < 2:
            raise ValueError(f"slots={slots}: at least 2 would be right, the last of them for all other values")
        if change not in ("refuse", "mask"):
            raise ValueError(f"columns_change={change!r}: choose one of: refuse, mask")
        self.choice, self.patterns = tuple(choice), tuple(categorical)
        self.timestamp, self.slots, self.change = timestamp, slots, change
        self.missing = frozenset(missing) | {""}
        self.names: tuple[str, ...] = ()
        self.categories: dict[str, list[str]] = {}
        """Of each categorical column, the values that have a slot."""

    def begin(self, row: Row, source: str) -> list[str]:
        """Choose by the first row; the columns that were left out because they hold text."""
        names = [name for name in row.values if isinstance(name, str)]
        if self.timestamp is None:
            named = (*self.choice, *self.patterns)
            self.timestamp = next((name for name in names if _is_time(name) and name not in named), None)
        elif self.timestamp not in names:
            raise StreamError(_no_such("timestamp", self.timestamp, names, source))
        for pattern in (*self.choice, *self.patterns):
            if not any(_matches(name, [pattern]) for name in names):
                raise StreamError(_no_such("column", pattern, names, source))
        candidates = [name for name in names if name != self.timestamp]
        self.categories = {name: [] for name in candidates if _matches(name, self.patterns)}
        if self.choice:
            chosen = [name for name in candidates if _matches(name, self.choice) or name in self.categories]
            text = []
        else:
            text = [n for n in candidates if n not in self.categories and not self._could_be_number(row.values[n])]
            chosen = [name for name in candidates if name not in text]
        if not chosen:
            raise StreamError(f"{source}: line {row.line}: no column with numbers among: {', '.join(names)}")
        self._settle(tuple(chosen), frozenset(row.values))
        return text

    @property
    def width(self) -> int:
        return len(self.names) + len(self.categories) * (self.slots - 1)

    @property
    def unscaled(self) -> NDArray[np.bool_]:
        """(width,) True for the entries of categories, which are 0 or 1 already."""
        return np.array([name in self.categories for name in self.names for _ in range(self._size(name))])

    def encode(self, row: Row, source: str, bad: Callable[[RowError], None], nan_is_missing: bool) -> Vector:
        """(width,) with NaN where nothing was observed. `bad` is told of each entry that cannot be understood; if it
        does not raise, the entry counts as not observed."""
        values = row.values
        if values.keys() != self._keys and self.change == "refuse":
            bad(RowError(source, row.line, self._describe_change(values)))
            return np.full(self.width, np.nan)
        if self._plain:
            try:
                numbers = [float(values[name]) for name in self.names]
            except (ValueError, TypeError, OverflowError, KeyError):
                pass  # one by one, below
            else:
                if sum(map(abs, numbers)) < LARGEST:  # false for NaN, too
                    return np.array(numbers)
        entries: list[float] = []
        for name in self.names:
            value = values.get(name)
            if name in self.categories:
                entries += self._one_hot(name, value)
                continue
            try:
                entries.append(self._number(value, nan_is_missing))
            except (ValueError, TypeError, OverflowError):
                bad(RowError(source, row.line, _describe_value(name, value)))
                entries.append(math.nan)
        return np.array(entries)

    def decode(self, entries: Sequence[float]) -> dict[str, Value]:
        """(width,) back to one value a column: the likeliest category, None for NaN."""
        if not self.categories:
            total = sum(entries)
            if total == total:  # nothing is missing
                return dict(zip(self.names, entries, strict=True))
            return {name: None if x != x else x for name, x in zip(self.names, entries, strict=True)}
        values: dict[str, Value] = {}
        at = 0
        for name in self.names:
            part = entries[at : at + self._size(name)]
            at += len(part)
            if part[0] != part[0]:
                values[name] = None
            elif name in self.categories:
                values[name] = self._likeliest(name, part)
            else:
                values[name] = part[0]
        return values

    def tree(self) -> dict[str, Any]:
        return {
            "names": list(self.names),
            "keys": sorted(map(str, self._keys)),
            "timestamp": self.timestamp,
            "slots": self.slots,
            "categories": self.categories,
        }

    def load_tree(self, tree: Mapping[str, Any]) -> None:
        self.timestamp = tree["timestamp"]
        self.categories = {name: list(values) for name, values in tree["categories"].items()}
        self._settle(tuple(tree["names"]), frozenset(tree["keys"]))

    def _settle(self, names: tuple[str, ...], keys: frozenset[str]) -> None:
        self.names, self._keys = names, keys
        self._plain = not self.categories and not any(map(_is_number, self.missing))

    def _size(self, name: str) -> int:
        return self.slots if name in self.categories else 1

    def _number(self, value: Any, nan_is_missing: bool) -> float:
        if value is None or (isinstance(value, str) and value.strip() in self.missing):
            return math.nan
        number = float(value)
        if number != number and nan_is_missing:
            return number
        if not -LARGEST < number < LARGEST:
            raise ValueError("not a number one can reckon with")
        return number

    def _could_be_number(self, value: Any) -> bool:
        try:
            self._number(value, True)
        except (ValueError, TypeError, OverflowError):
            return False
        return True

    def _one_hot(self, name: str, value: Any) -> list[float]:
        if value is None or (isinstance(value, float) and value != value) or str(value).strip() in self.missing:
            return [math.nan] * self.slots
        known, text = self.categories[name], str(value).strip()
        if text not in known and len(known) < self.slots - 1:
            known.append(text)
        entry = known.index(text) if text in known else self.slots - 1
        return [float(slot == entry) for slot in range(self.slots)]

    def _likeliest(self, name: str, part: Sequence[float]) -> str:
        known = self.categories[name]
        slot = max([*range(len(known)), self.slots - 1], key=lambda slot: part[slot])
        return known[slot] if slot < len(known) else OTHER

    def _describe_change(self, values: Mapping[str, Any]) -> str:
        gone = [repr(name) for name in sorted(self._keys) if name not in values]
        new = [repr(name) for name in values if name not in self._keys]
        what = [f"{', '.join(names)} {verb}" for names, verb in ((gone, "vanished"), (new, "appeared")) if names]
        return f"the columns changed: {' and '.join(what)}; --columns-change mask goes on without them"


def _matches(name: str, patterns: Iterable[str]) -> bool:
    return any(name == pattern or fnmatchcase(name, pattern) for pattern in patterns)


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def _is_time(name: str) -> bool:
    return name.lower() in TIME_NAMES


def _no_such(what: str, wanted: str, names: list[str], source: str) -> str:
    return f"{source}: no {what} matches {wanted!r}; there are: {', '.join(names)}"


def _describe_value(name: str, value: Any) -> str:
    shown = f"{value!r:.60}"
    try:
        float(value)
    except (ValueError, TypeError, OverflowError):
        return f"column {name!r} holds {shown} where a number was expected; --categorical takes text"
    return f"column {name!r} holds {shown}, which is not a finite number; leave it empty, or name it with --missing"
