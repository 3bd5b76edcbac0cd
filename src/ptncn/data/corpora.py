"""The texts with a name: the Penn Treebank, and the language reference that ships inside CPython."""

from __future__ import annotations

import string
from pydoc_data.topics import topics
from typing import Literal, get_args

from ptncn.data.cache import cache_folder
from ptncn.data.catalog import PTB
from ptncn.data.content import read_checked
from ptncn.data.text import Text, decode_lines

TextSplit = Literal["train", "valid", "test"]
PTB_SYMBOLS = "#$&'*-./0123456789<>N\\_abcdefghijklmnopqrstuvwxyz"
ASCII = string.printable[:95]
"""Letters, digits, punctuation and the space: fixed, so that a network fits every version of the reference."""


def penn_treebank(split: TextSplit = "train") -> Text:
    """The characters of Mikolov's word-level splits: 42,068, 3,370 and 3,761 sentences of 49 symbols, a space
    written as `_`, the end of a sentence not a symbol."""
    _check(split)
    file = PTB.files[get_args(TextSplit).index(split)]
    lines = decode_lines(read_checked(PTB, file), cache_folder() / file.path)
    return Text(f"ptb/{split}", lines, vocabulary=PTB_SYMBOLS, space="_")


def python_reference(split: TextSplit = "train") -> Text:
    """The topics of the language reference in `pydoc_data`, a line a sequence; no download.

    The first eight tenths of the lines are `train`, then come `valid` and `test`. A line that several topics share
    counts once, and lines with symbols outside ASCII are left out. The text changes a little with every version of
    CPython: `sha256` tells.

    >>> python_reference("test").input_size
    95
    """
    _check(split)
    lines = dict.fromkeys(line.strip() for topic in sorted(topics) for line in topics[topic].split("\n"))
    kept = [line for line in lines if line and line.isascii()]
    first, second = len(kept) * 8 // 10, len(kept) * 9 // 10
    chosen = {"train": kept[:first], "valid": kept[first:second], "test": kept[second:]}[split]
    return Text(f"python-reference/{split}", chosen, vocabulary=ASCII)


def _check(split: str) -> None:
    if split not in get_args(TextSplit):
        raise ValueError(f"unknown split {split!r}; choose one of: {', '.join(get_args(TextSplit))}")
