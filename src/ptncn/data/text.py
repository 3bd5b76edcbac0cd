"""Text as sequences of symbols: one sequence per line, or one continuous stream."""

from __future__ import annotations

import hashlib
import string
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from pydoc_data.topics import topics
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray

from ptncn.data.download import read_checked, read_content
from ptncn.data.sequences import Batch, DataError, SequenceDataset, check_count, permutation

if TYPE_CHECKING:
    from ptncn.data.registry import Dataset

PTB_SYMBOLS = "#$&'*-./0123456789<>N\\_abcdefghijklmnopqrstuvwxyz"
ASCII = string.printable[:95]
"""Letters, digits, punctuation and the space; fixed, so that a network fits every version of the reference."""


class Text(SequenceDataset):
    """Lines of text, stripped; empty lines are left out.

    Symbols are stored as small integers, and one-hot observations are made for one batch at a time.

    `vocabulary` lists every symbol that may occur, in order; by default those that do occur. `space` is the symbol that
    stands for a space.

    >>> text = Text("example", ["to be", "or not"], space="_")
    >>> text.vocabulary
    '_benort'
    >>> x, mask = text.batch([0, 1])
    >>> x.shape, mask[:, 0].tolist()
    (torch.Size([6, 2, 7]), [True, True, True, True, True, False])
    >>> text.decode(x[:5, 0])
    'to_be'
    """

    def __init__(self, name: str, lines: Sequence[str], *, vocabulary: str | None = None, space: str = " ") -> None:
        kept = [(number, line.strip().replace(" ", space)) for number, line in enumerate(lines, 1)]
        kept = [(number, line) for number, line in kept if line]
        if not kept:
            raise DataError(f"{name}: expected at least one line with symbols")
        symbols = "".join(line for _, line in kept)
        self.name = name
        self.vocabulary = "".join(sorted(set(symbols))) if vocabulary is None else vocabulary
        if len(set(self.vocabulary)) != len(self.vocabulary):
            raise ValueError(f"vocabulary: expected each symbol once, got {self.vocabulary!r}")
        self.space = space
        self.observation_shape = (len(self.vocabulary),)
        self.lengths = np.array([len(line) for _, line in kept])
        """(N,) symbols in each sequence."""
        self._ends = np.cumsum(self.lengths)
        self._ids = self._encode(symbols, [number for number, _ in kept])

    def _encode(self, symbols: str, line_numbers: list[int]) -> NDArray[np.integer]:
        points = np.frombuffer(symbols.encode("utf-32-le"), np.uint32)
        table = np.full(int(points.max()) + 1, -1)
        for number, symbol in enumerate(self.vocabulary):
            if ord(symbol) < len(table):
                table[ord(symbol)] = number
        ids = table[points]
        if (ids < 0).any():
            first = int(np.argmax(ids < 0))
            line = line_numbers[int(np.searchsorted(self._ends, first, side="right"))]
            raise DataError(
                f"{self.name}, line {line}: the symbol {symbols[first]!r} is not in the vocabulary of "
                f"{self.input_size} symbols {self.vocabulary!r}"
            )
        return ids.astype(np.min_scalar_type(self.input_size))

    def __len__(self) -> int:
        return len(self._ends)

    def decode(self, x: torch.Tensor) -> str:
        """The most probable symbol at each step of (T, n) observations or predictions."""
        return "".join(self.vocabulary[number] for number in x.argmax(-1).tolist())

    def batches(
        self, batch_size: int, *, shuffle_seed: int | None = None, epoch: int = 0, start: int = 0, bucket: int = 50
    ) -> Iterator[Batch]:
        """Every sequence once, with similar lengths batched together to reduce padding.

        Sequences are taken, in order or shuffled, for `bucket` batches at a time and sorted by length; `bucket=1` keeps
        their order. The batches of a shuffled bucket are shuffled too.
        """
        check_count("batch_size", batch_size, 1)
        check_count("bucket", bucket, 1)
        check_count("start", start, 0)
        plan = self._buckets(batch_size, shuffle_seed, epoch, bucket)
        return (self._batch(indices) for indices in islice(plan, start, None))

    def _buckets(
        self, batch_size: int, shuffle_seed: int | None, epoch: int, bucket: int
    ) -> Iterator[NDArray[np.int64]]:
        order = np.arange(len(self))
        if shuffle_seed is not None:
            order = permutation(shuffle_seed, f"order/{epoch}", len(self))
        for first in range(0, len(self), bucket * batch_size):
            pool = order[first : first + bucket * batch_size]
            if bucket > 1:
                pool = pool[np.argsort(self.lengths[pool], kind="stable")]
            batches = [pool[i : i + batch_size] for i in range(0, len(pool), batch_size)]
            if shuffle_seed is not None:
                batches = [batches[i] for i in permutation(shuffle_seed, f"bucket/{epoch}/{first}", len(batches))]
            yield from batches

    def stream(self, chunk: int = 100, *, lanes: int = 1, start: int = 0) -> Iterator[Batch]:
        """The whole text as one sequence, (chunk, lanes, n) at a time, with a space between lines.

        With several lanes the text is cut into that many parallel pieces, and fewer than `lanes` symbols at the end are
        dropped. `start` skips the first steps.
        """
        check_count("chunk", chunk, 1)
        check_count("lanes", lanes, 1)
        check_count("start", start, 0)
        ids = self._joined()
        steps = len(ids) // lanes
        side_by_side = ids[: steps * lanes].reshape(lanes, steps).T
        return (self._one_hot(side_by_side[first : first + chunk]) for first in range(start, steps, chunk))

    def count_symbols(self) -> int:
        """The length of the continuous stream."""
        return len(self._joined())

    def _joined(self) -> NDArray[np.integer]:
        if self.space not in self.vocabulary:
            return self._ids
        return np.insert(self._ids, self._ends[:-1], self.vocabulary.index(self.space))

    def _batch(self, indices: NDArray[np.int64]) -> Batch:
        lengths = self.lengths[indices]
        time = np.arange(lengths.max())[:, None]
        mask = time < lengths
        starts = self._ends[indices] - lengths
        ids = self._ids[np.where(mask, starts + time, 0)]
        x = self._one_hot(ids).x
        observed = torch.from_numpy(mask)
        return Batch(x.mul_(observed[..., None]), observed)

    def _one_hot(self, ids: NDArray[np.integer]) -> Batch:
        x = torch.zeros(*ids.shape, self.input_size)
        return Batch(x.scatter_(-1, torch.from_numpy(ids.astype(np.int64))[..., None], 1.0), None)

    def _digest(self) -> str:
        digest = hashlib.sha256(f"text 1 {self.vocabulary!r} {self.space!r}".encode())
        digest.update(self._ends.astype("<i8").data)
        digest.update(self._ids.astype("<u4").data)
        return digest.hexdigest()


class TextStream(SequenceDataset):
    """A text as one continuous sequence: a batch is `chunk` steps of `batch_size` lanes, and the state is carried over.

    Its length counts pieces of `chunk` symbols. The text is cut into lanes by the batch size, and is never shuffled.

    >>> stream = TextStream(Text("example", ["to be", "or not"]), chunk=3)
    >>> [x.shape[0] for x, _ in stream.batches(2)], stream.count_batches(2)
    ([3, 3], 2)
    """

    continuous = True

    def __init__(self, text: Text, *, chunk: int = 100) -> None:
        check_count("chunk", chunk, 1)
        self.text, self.chunk, self.name = text, chunk, f"{text.name} (continuous)"
        self.observation_shape = text.observation_shape
        self._symbols = text.count_symbols()

    def __len__(self) -> int:
        return -(-self._symbols // self.chunk)

    def batches(
        self, batch_size: int, *, shuffle_seed: int | None = None, epoch: int = 0, start: int = 0
    ) -> Iterator[Batch]:
        return self.text.stream(self.chunk, lanes=batch_size, start=start * self.chunk)

    def count_batches(self, batch_size: int, limit: int | None = None) -> int:
        every = -(-(self._symbols // batch_size) // self.chunk)
        return every if limit is None else min(every, -(-limit // batch_size))

    def _batch(self, indices: NDArray[np.int64]) -> Batch:
        pieces = [next(self.text.stream(self.chunk, start=int(i) * self.chunk)).x for i in indices]
        shortest = min(len(piece) for piece in pieces)
        return Batch(torch.cat([piece[:shortest] for piece in pieces], 1), None)

    def _digest(self) -> str:
        return hashlib.sha256(f"text stream 1 {self.text.sha256} {self.chunk}".encode()).hexdigest()


def load_text(path: str | Path, *, vocabulary: str | None = None, space: str = " ") -> Text:
    """A UTF-8 text file, plain or gzipped, one sequence per line."""
    content = read_content(Path(path))
    return Text(str(path), decode_lines(content, Path(path)), vocabulary=vocabulary, space=space)


def decode_lines(content: bytes, path: Path) -> list[str]:
    try:
        return content.decode("utf-8-sig").split("\n")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise DataError(f"{path}, line {line}: byte {content[error.start]:#04x} is not UTF-8 text") from error


def penn_treebank(dataset: Dataset, split: str) -> Text:
    """A split of the Penn Treebank; `dataset` has one file for each, in the order of its splits."""
    file = dataset.files[dataset.splits.index(split)]
    return Text(f"ptb/{split}", decode_lines(read_checked(file), file.place), vocabulary=PTB_SYMBOLS, space="_")


def penn_treebank_stream(dataset: Dataset, split: str) -> TextStream:
    return TextStream(penn_treebank(dataset, split))


def python_reference(dataset: Dataset, split: str) -> Text:
    """The topics of the language reference in `pydoc_data`, one sequence per line.

    The first eight tenths of the lines are "train", then come "valid" and "test". A line that several topics share
    counts once; lines with symbols outside ASCII are left out. The text changes slightly with every version of
    CPython; `sha256` identifies it.
    """
    lines = dict.fromkeys(line.strip() for topic in sorted(topics) for line in topics[topic].split("\n"))
    kept = [line for line in lines if line and line.isascii()]
    first, second = len(kept) * 8 // 10, len(kept) * 9 // 10
    chosen = {"train": kept[:first], "valid": kept[first:second], "test": kept[second:]}[split]
    return Text(f"python-reference/{split}", chosen, vocabulary=ASCII)


def python_reference_stream(dataset: Dataset, split: str) -> TextStream:
    return TextStream(python_reference(dataset, split))
