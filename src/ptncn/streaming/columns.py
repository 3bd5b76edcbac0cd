"""Select columns of a source, and convert rows to numbers and back."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptncn.streaming.sources import Block, RowError, StreamError

Vector = NDArray[np.float64]
Value = float | str | None
Known = Mapping[str, NDArray[np.int64]]
"""For each categorical column, an (n, 2) array: the number of categories known before and after each row."""

TIME_NAMES = ("timestamp", "time", "datetime", "date", "ts")
MISSING = ("", "NA", "N/A", "null", "NaN")
OTHER = "other"
"""The label of categorical values without a slot."""
COMMA = re.compile(r"[+-]?\d+,\d+")
LARGEST = 1e100
"""Squares of larger numbers overflow."""


class Columns:
    """Selects columns from the first block, then encodes rows: a number is one entry, a category has `slots` entries.

    Entries of targets come first, then those of features.

    Arguments:
        targets: names or patterns, such as `temp*`, of the columns to predict; by default all columns whose first value
            is a number or missing, except features.
        features: names or patterns of columns that are known before the targets of their row.
        categorical: names or patterns of columns of labels.
        timestamp: the column with the time; by default a column with a common name, such as `time`.
        key: the column that names the stream of a row.
        slots: entries of a categorical column: each new label gets the next one, and the last one is shared by all
            later labels.
        missing: strings that mark a missing value, in addition to NaN in any spelling.
        decimal: the decimal mark of numbers in text.
        change: what to do with rows that have other columns than the first row: "refuse" them, or "mask" them, so that
            columns that vanished count as missing and new ones are ignored.
        shared: whether all keys use the same slots for categories, as a shared network requires; otherwise each key
            assigns its own slots, so that its results do not depend on other keys.
    """

    def __init__(
        self,
        targets: Iterable[str] = (),
        *,
        features: Iterable[str] = (),
        categorical: Iterable[str] = (),
        timestamp: str | None = None,
        key: str | None = None,
        slots: int = 16,
        missing: Iterable[str] = MISSING,
        decimal: str = ".",
        change: str = "refuse",
        shared: bool = False,
    ) -> None:
        if slots < 2:
            raise ValueError(f"slots: expected at least 2, the last of them for all other values, got {slots}")
        if change not in ("refuse", "mask"):
            raise ValueError(f"columns_change: expected refuse or mask, got {change!r}")
        if decimal not in (".", ","):
            raise ValueError(f"decimal: expected . or , got {decimal!r}")
        self.choice, self.patterns = tuple(targets), tuple(categorical)
        self.feature_patterns = tuple(features)
        self.timestamp, self.key, self.slots, self.change = timestamp, key, slots, change
        self.shared = shared
        self.decimal = decimal
        self.missing = frozenset(missing) | {""}
        self._missing_numbers = [float(text) for text in self.missing if _is_number(text)]
        self.names: tuple[str, ...] = ()
        """The targets."""
        self.features: tuple[str, ...] = ()
        self.categories: dict[str, dict[str | None, list[str]]] = {}
        """The labels of each categorical column that have a slot, by key; those under None are known to all keys."""
        self._order: tuple[str, ...] = ()

    def begin(self, block: Block, source: str) -> str:
        """Choose columns from the first row; return a note about those left out because they contain text, or ""."""
        names = [name for name in block.names if isinstance(name, str)]
        first = dict(zip(block.names, block.rows[0], strict=True))
        for what, wanted in (("timestamp", self.timestamp), ("key", self.key)):
            if wanted is not None and wanted not in names:
                raise StreamError(_no_match(what, wanted, names, source))
        named = (*self.choice, *self.patterns, *self.feature_patterns)
        for pattern in named:
            if not any(_matches(name, [pattern]) for name in names):
                raise StreamError(_no_match("column", pattern, names, source))
        if self.timestamp is None:
            self.timestamp = next((name for name in names if _is_time(name) and name not in (*named, self.key)), None)
        candidates = [name for name in names if name not in (self.timestamp, self.key)]
        self.categories = {name: {} for name in candidates if _matches(name, self.patterns)}
        features = [name for name in candidates if _matches(name, self.feature_patterns)]
        rest = [name for name in candidates if name not in features]
        text: list[str] = []
        if self.choice:
            targets = [name for name in rest if _matches(name, self.choice) or name in self.categories]
        else:
            text = [name for name in rest if name not in self.categories and not self._could_be_number(first[name])]
            targets = [name for name in rest if name not in text]
        commas = [str(first[name]) for name in text if COMMA.fullmatch(str(first[name]).strip())]
        hint = f"; with decimal commas, as in {commas[0]}, use --decimal ," if commas and self.decimal == "." else ""
        if not targets:
            raise StreamError(
                f"{source}: line {block.lines[0]}: no column with numbers among: {', '.join(names)}{hint}"
            )
        self._set_names(tuple(targets), tuple(features), frozenset(names))
        if not text:
            return ""
        return f"left out because they contain text: {', '.join(text)}{hint or '; use --categorical to include them'}"

    @property
    def width(self) -> int:
        """Entries of a row, including features."""
        return sum(map(self._size, (*self.names, *self.features)))

    @property
    def target_width(self) -> int:
        return sum(map(self._size, self.names))

    @property
    def unscaled(self) -> NDArray[np.bool_]:
        """(width,) True for the entries of categories, which are not scaled."""
        names = (*self.names, *self.features)
        return np.array([name in self.categories for name in names for _ in range(self._size(name))], dtype=bool)

    @property
    def owners(self) -> list[int]:
        """(target_width,) the index of the target that each entry belongs to."""
        return [index for index, name in enumerate(self.names) for _ in range(self._size(name))]

    def encode(self, block: Block, source: str) -> tuple[Vector, list[tuple[int, RowError]], Known]:
        """(n, width) entries, NaN if not observed; errors by the index of rows that cannot be read; and the categories
        known before and after each row.

        A value that cannot be read counts as missing, and so does every value of a row with other columns.
        """
        known = {name: np.zeros((len(block), 2), dtype=np.int64) for name in self.categories}
        names = (*self.names, *self.features)
        if not self._known.issuperset(block.names) or not self._known.issubset(block.names):
            if self.change == "refuse":
                problem = self._describe_change(block.names)
                errors = [(row, RowError(source, line, problem)) for row, line in enumerate(block.lines)]
                return np.full((len(block), self.width), np.nan), errors, known
            places = {name: index for index, name in enumerate(block.names)}
        else:
            places = self._places(block.names)
        columns: list[Sequence[float]] = []
        bad: list[tuple[int, RowError]] = []
        keys: Sequence[str | None] = self.keys(block) or [None] * len(block)
        for name in names:
            place = places.get(name)
            values = [None] * len(block) if place is None else [row[place] for row in block.rows]
            if name in self.categories:
                encoded = [self._one_hot(name, key, value) for key, value in zip(keys, values, strict=True)]
                known[name][:] = [counts for _, counts in encoded]
                columns += zip(*(entries for entries, _ in encoded), strict=True)
            else:
                columns.append(self._numbers(name, values, block, source, bad))
        entries = np.array(columns, dtype=np.float64).T
        if self._missing_numbers:
            entries[np.isin(entries, self._missing_numbers)] = np.nan
        return entries, sorted(bad, key=lambda pair: pair[0]), known

    def encode_features(self, values: Mapping[str, Any], key: str | None = None) -> list[float]:
        """The entries of known features by name; NaN for unknown ones."""
        entries: list[float] = []
        for name in self.features:
            value = values.get(name)
            entries += self._one_hot(name, key, value)[0] if name in self.categories else [self._number(value)]
        return entries

    def column(self, name: str | None, block: Block) -> list[Any]:
        """The values of the timestamp or key column; None if the block has no such column."""
        place = self._places(block.names).get(name) if name is not None else None
        return [None] * len(block) if place is None else [row[place] for row in block.rows]

    def keys(self, block: Block) -> list[str] | None:
        """The key of each row, as text; None without a key."""
        return None if self.key is None else [str(key) for key in self.column(self.key, block)]

    def known_now(self, rows: int) -> Known:
        """The counts for unobserved rows without a key."""
        return {name: np.full((rows, 2), len(self._labels(name, None)), dtype=np.int64) for name in self.categories}

    def decode(
        self, entries: Sequence[float], key: str | None = None, known: Mapping[str, int] | None = None
    ) -> dict[str, Value]:
        """(target_width,) entries → one value per target: a number or the most likely category, None for NaN.

        `known`: the number of categories of that key seen so far; all by default.
        """
        values: dict[str, Value] = {}
        at = 0
        for name in self.names:
            size = self._size(name)
            first = entries[at]
            if first != first:
                values[name] = None
            elif name in self.categories:
                labels = self._labels(name, key)[: None if known is None else known[name]]
                values[name] = self._likeliest(labels, entries[at : at + size])
            else:
                values[name] = first
            at += size
        return values

    def split(
        self, entries: Vector, keys: Sequence[str] | None = None, known: Mapping[str, NDArray[np.int64]] | None = None
    ) -> dict[str, Any]:
        """(n, target_width) entries → one column per target: numbers, or labels of categories; see `decode`."""
        columns: dict[str, Any] = {}
        row_keys: Sequence[str | None] = keys or [None] * len(entries)
        at = 0
        for name in self.names:
            size = self._size(name)
            part = entries[:, at : at + size]
            if name in self.categories:
                columns[name] = [
                    None
                    if row[0] != row[0]
                    else self._likeliest(self._labels(name, key)[: None if known is None else known[name][i]], row)
                    for i, (row, key) in enumerate(zip(part.tolist(), row_keys, strict=True))
                ]
            else:
                columns[name] = part[:, 0]
            at += size
        return columns

    def tree(self) -> dict[str, Any]:
        return {
            "names": list(self.names),
            "features": list(self.features),
            "keys": sorted(self._known),
            "timestamp": self.timestamp,
            "key": self.key,
            "slots": self.slots,
            "categories": self.categories,
        }

    def load_tree(self, tree: Mapping[str, Any]) -> None:
        listed = tree["names"], tree.get("features", []), tree["keys"]
        named = [*chain(*listed), *tree["categories"]]
        strings = not any(isinstance(names, str) for names in listed) and all(isinstance(name, str) for name in named)
        if not strings or type(tree["slots"]) is not int:
            raise ValueError("columns: expected names, and a number of slots")
        if not all(isinstance(name, str | None) for name in (tree["timestamp"], tree.get("key"))):
            raise ValueError("columns: expected the names of the timestamp and of the key, or None")
        self.timestamp, self.key, self.slots = tree["timestamp"], tree.get("key"), tree["slots"]
        self.categories = {
            name: {None: list(values)} if isinstance(values, list) else {key: list(own) for key, own in values.items()}
            for name, values in tree["categories"].items()
        }
        self._set_names(tuple(tree["names"]), tuple(tree.get("features", ())), frozenset(tree["keys"]))

    def _set_names(self, names: tuple[str, ...], features: tuple[str, ...], known: frozenset[str]) -> None:
        self.names, self.features, self._known = names, features, known
        self._order = ()

    def _places(self, names: tuple[str, ...]) -> dict[str, int]:
        if names is not self._order:
            self._order, self._index = names, {name: index for index, name in enumerate(names)}
        return self._index

    def _size(self, name: str) -> int:
        return self.slots if name in self.categories else 1

    def _numbers(
        self, name: str, values: list[Any], block: Block, source: str, bad: list[tuple[int, RowError]]
    ) -> list[float]:
        """A column of numbers; values that are not numbers are listed in `bad`."""
        if self.decimal == ".":
            try:
                numbers = list(map(float, values))
            except (ValueError, TypeError, OverflowError):
                pass  # one by one, below
            else:
                if min(numbers) > -LARGEST and max(numbers) < LARGEST:  # a NaN is missing
                    return numbers
        numbers = []
        for row, value in enumerate(values):
            try:
                numbers.append(self._number(value))
            except (ValueError, TypeError, OverflowError):
                bad.append((row, RowError(source, block.lines[row], _describe_value(name, value))))
                numbers.append(math.nan)
        return numbers

    def _number(self, value: Any) -> float:
        if value is None or (isinstance(value, str) and value.strip() in self.missing):
            return math.nan
        if self.decimal == "," and isinstance(value, str):
            value = value.replace(",", ".")
        number = float(value)
        if math.isinf(number) or abs(number) >= LARGEST:
            raise ValueError("too large to compute with")
        return number

    def _could_be_number(self, value: Any) -> bool:
        try:
            self._number(value)
        except (ValueError, TypeError, OverflowError):
            return False
        return True

    def _one_hot(self, name: str, key: str | None, value: Any) -> tuple[list[float], tuple[int, int]]:
        """The entries of a value, and the categories known before and after it."""
        known = self._labels(name, key)
        before = len(known)
        if value is None or (isinstance(value, float) and value != value) or str(value).strip() in self.missing:
            return [math.nan] * self.slots, (before, before)
        text = str(value).strip()
        if text not in known and before < self.slots - 1:
            known.append(text)
        entry = known.index(text) if text in known else self.slots - 1
        return [float(slot == entry) for slot in range(self.slots)], (before, len(known))

    def _labels(self, name: str, key: str | None) -> list[str]:
        """The categories that have a slot; a new key starts with those shared by all keys."""
        by_key = self.categories[name]
        place = None if self.shared else key
        if place not in by_key:
            by_key[place] = list(by_key.get(None, ()))
        return by_key[place]

    def _likeliest(self, known: Sequence[str], part: Sequence[float]) -> str:
        slot = max([*range(len(known)), self.slots - 1], key=lambda slot: part[slot])
        return known[slot] if slot < len(known) else OTHER

    def _describe_change(self, names: Iterable[str]) -> str:
        names = list(names)
        vanished = [repr(name) for name in sorted(self._known) if name not in names]
        appeared = [repr(name) for name in names if name not in self._known]
        what = [f"{', '.join(some)} {verb}" for some, verb in ((vanished, "vanished"), (appeared, "appeared")) if some]
        return f"the columns changed: {' and '.join(what)}; --columns-change mask continues without them"


def _matches(name: str, patterns: Iterable[str]) -> bool:
    return any(name == pattern or fnmatchcase(name, pattern) for pattern in patterns)


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def _is_time(name: str) -> bool:
    return name.lower() in TIME_NAMES


def _no_match(what: str, wanted: str, names: list[str], source: str) -> str:
    return f"{source}: no {what} matches {wanted!r}; there are: {', '.join(names)}"


def _describe_value(name: str, value: Any) -> str:
    shown = f"{value!r:.60}"
    try:
        float(value)
    except (ValueError, TypeError, OverflowError):
        return f"column {name!r} holds {shown} where a number was expected; --categorical takes text"
    return f"column {name!r} holds {shown}, which is not a finite number; leave it empty, or name it with --missing"
