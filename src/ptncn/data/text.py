"""Text as sequences of symbols: one sequence a line, or one continuous stream."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from ptncn.data.content import read_content
from ptncn.data.counter import permutation
from ptncn.data.errors import DataError
from ptncn.data.sequences import Batch, SequenceDataset, check_count


class Text(SequenceDataset):
    """Lines of text; blanks around a line and empty lines are left out.

    Symbols are kept as small numbers; observations of one number a symbol, 1 for the one that is there, are made a
    batch at a time, and nothing is ever changed.

    `vocabulary` holds every symbol that may occur, in order; without it, it is those that do occur. `space` is what
    a space is written as.

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
            raise DataError(f"{name}: no line with any symbols in it")
        everything = "".join(line for _, line in kept)
        self.name = name
        self.vocabulary = "".join(sorted(set(everything))) if vocabulary is None else vocabulary
        if len(set(self.vocabulary)) != len(self.vocabulary):
            raise ValueError(f"the vocabulary {self.vocabulary!r} has a symbol twice")
        self.space = space
        self.observation_shape = (len(self.vocabulary),)
        self.lengths = np.array([len(line) for _, line in kept])
        """(N,) symbols in each sequence."""
        self._ends = np.cumsum(self.lengths)
        self._ids = self._encode(everything, [number for number, _ in kept])

    def _encode(self, everything: str, line_numbers: list[int]) -> NDArray[np.integer]:
        points = np.frombuffer(everything.encode("utf-32-le"), np.uint32)
        table = np.full(int(points.max()) + 1, -1)
        for number, symbol in enumerate(self.vocabulary):
            if ord(symbol) < len(table):
                table[ord(symbol)] = number
        ids = table[points]
        if (ids < 0).any():
            first = int(np.argmax(ids < 0))
            line = line_numbers[int(np.searchsorted(self._ends, first, side="right"))]
            raise DataError(
                f"{self.name}, line {line}: the symbol {everything[first]!r} is not in the vocabulary of "
                f"{self.input_size} symbols {self.vocabulary!r}"
            )
        return ids.astype(np.min_scalar_type(self.input_size))

    def __len__(self) -> int:
        return len(self._ends)

    def decode(self, x: torch.Tensor) -> str:
        """The symbols of (T, n) observations or predictions: at each time the one with the largest number."""
        return "".join(self.vocabulary[number] for number in x.argmax(-1).tolist())

    def batches(
        self, batch_size: int, *, shuffle_seed: int | None = None, epoch: int = 0, start: int = 0, bucket: int = 50
    ) -> Iterator[Batch]:
        """Every sequence once, those of like length together, so that little of a batch is masked.

        Sequences are taken, in order or shuffled, for `bucket` batches at a time, and sorted by length among
        themselves; `bucket=1` keeps their order. The batches of a shuffled bucket come in random order too.
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

        More than one lane cuts the text into that many pieces, side by side; fewer than `lanes` symbols at the
        end are then left out. `start` leaves out the first steps.
        """
        check_count("chunk", chunk, 1)
        check_count("lanes", lanes, 1)
        check_count("start", start, 0)
        ids = self._joined()
        steps = len(ids) // lanes
        side_by_side = ids[: steps * lanes].reshape(lanes, steps).T
        return (self._one_hot(side_by_side[first : first + chunk]) for first in range(start, steps, chunk))

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
        there = torch.from_numpy(mask)
        return Batch(x.mul_(there[..., None]), there)

    def _one_hot(self, ids: NDArray[np.integer]) -> Batch:
        x = torch.zeros(*ids.shape, self.input_size)
        return Batch(x.scatter_(-1, torch.from_numpy(ids.astype(np.int64))[..., None], 1.0), None)

    def _digest(self) -> str:
        digest = hashlib.sha256(f"text 1 {self.vocabulary!r} {self.space!r}".encode())
        digest.update(self._ends.astype("<i8").data)
        digest.update(self._ids.astype("<u4").data)
        return digest.hexdigest()


def load_text(path: str | Path, *, vocabulary: str | None = None, space: str = " ") -> Text:
    """A UTF-8 text file, plain or gzipped, one sequence a line."""
    content = read_content(Path(path))
    return Text(str(path), decode_lines(content, Path(path)), vocabulary=vocabulary, space=space)


def decode_lines(content: bytes, path: Path) -> list[str]:
    try:
        return content.decode("utf-8-sig").split("\n")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise DataError(f"{path}, line {line}: byte {content[error.start]:#04x} is not UTF-8 text") from error
