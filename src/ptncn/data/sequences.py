"""The base of all datasets: numbered sequences in time-major batches, and random numbers by address."""

from __future__ import annotations

import hashlib
import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

ROUNDS = 10
MULTIPLIERS = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
KEY_STEPS = 0x9E3779B9, 0xBB67AE85
LOW = np.uint64(0xFFFFFFFF)
HALF = np.uint64(32)


def stream_key(seed: int, label: str) -> int:
    """A 64-bit key; other seeds and labels give independent streams.

    >>> stream_key(0, "mnist/train") != stream_key(0, "mnist/test")
    True
    """
    if not isinstance(seed, int | np.integer) or isinstance(seed, bool) or seed < 0:
        raise ValueError(f"seed: expected an integer of at least 0, got {seed!r}")
    return int.from_bytes(hashlib.sha256(f"{label}/{seed}".encode()).digest()[:8], "little")


def random_words(key: int, index: NDArray[np.integer], block: NDArray[np.integer] | int = 0) -> NDArray[np.uint64]:
    """(…, 4) words of 32 random bits at each address: index (…) below 2⁶⁴, block (…) below 2³².

    Number i of a stream is computed from i alone, so batches, order and workers cannot change a sequence, and a stream
    resumes anywhere. The generator is Philox4x32-10 [^1]; NumPy has it only as a stateful object, and does not
    guarantee that its distributions stay the same.

    [^1]: Salmon et al. (2011), Parallel random numbers: as easy as 1, 2, 3.

    >>> [hex(word) for word in random_words(0, np.array(0))]
    ['0x6627e8d5', '0xe169c58d', '0xbc57ac4c', '0x9b00dbd8']
    """
    address, third = np.broadcast_arrays(np.asarray(index, np.uint64), np.asarray(block, np.uint64))
    first, second, fourth = address & LOW, address >> HALF, np.zeros_like(address)
    low_key, high_key = key & 0xFFFFFFFF, key >> 32
    for _ in range(ROUNDS):
        one, two = first * MULTIPLIERS[0], third * MULTIPLIERS[1]
        first, second = (two >> HALF) ^ second ^ np.uint64(low_key), two & LOW
        third, fourth = (one >> HALF) ^ fourth ^ np.uint64(high_key), one & LOW
        low_key = (low_key + KEY_STEPS[0]) & 0xFFFFFFFF
        high_key = (high_key + KEY_STEPS[1]) & 0xFFFFFFFF
    return np.stack([first, second, third, fourth], axis=-1)


def to_unit(words: NDArray[np.uint64]) -> NDArray[np.float64]:
    """Words of 32 bits as numbers strictly between 0 and 1."""
    return (words.astype(np.float64) + 0.5) * 2.0**-32


def to_below(words: NDArray[np.uint64], count: int) -> NDArray[np.int64]:
    """Words of 32 bits as whole numbers from 0 to count − 1; count is at most 2³²."""
    return ((words * np.uint64(count)) >> HALF).astype(np.int64)


def permutation(seed: int, label: str, count: int) -> NDArray[np.int64]:
    """(count,) the numbers from 0 to count − 1 in an order that depends only on seed and label.

    >>> sorted(permutation(0, "example", 5).tolist())
    [0, 1, 2, 3, 4]
    """
    words = random_words(stream_key(seed, label), np.arange(count))
    return np.argsort(words[:, 0] << HALF | words[:, 1], kind="stable")


Indices = Sequence[int] | NDArray[np.integer[Any]]


class Batch(NamedTuple):
    """Sequences side by side."""

    x: Tensor
    """(T, B, n) float32 observations."""
    mask: Tensor | None
    """(T, B) bool, False past the end of a shorter sequence; None if all have one length."""


class SequenceDataset(ABC):
    """Numbered sequences: `batch` returns some of them, `batches` iterates over all of them."""

    name: str
    observation_shape: tuple[int, ...]
    """The shape of one observation, before it is flattened to n numbers."""
    continuous = False
    """The batches are pieces of one sequence: the state is carried from one to the next."""

    @property
    def input_size(self) -> int:
        """n, the numbers in one observation."""
        return math.prod(self.observation_shape)

    @abstractmethod
    def __len__(self) -> int:
        """The number of sequences."""

    @abstractmethod
    def _batch(self, indices: NDArray[np.int64]) -> Batch:
        """The sequences of these numbers, which have been checked."""

    @abstractmethod
    def _digest(self) -> str:
        """The SHA-256 of everything that determines the sequences."""

    @cached_property
    def sha256(self) -> str:
        """64 hexadecimal digits for records: equal if the sequences are equal."""
        return self._digest()

    def batch(self, indices: Indices) -> Batch:
        """The sequences of these numbers, in this order."""
        return self._batch(self._check(indices))

    def __getitem__(self, index: int) -> Tensor:
        """(T, n) one sequence, so that `torch.utils.data.DataLoader` takes it as a dataset."""
        x, mask = self.batch([index])
        return x[:, 0] if mask is None else x[mask[:, 0], 0]

    def batches(
        self, batch_size: int, *, shuffle_seed: int | None = None, epoch: int = 0, start: int = 0
    ) -> Iterator[Batch]:
        """Every sequence once, in order unless `shuffle_seed` is given; the last batch may be smaller.

        Each `epoch` has another order. `start` skips the first batches at no cost: a run that stopped after k batches
        continues with `start=k`.
        """
        check_count("batch_size", batch_size, 1)
        check_count("start", start, 0)
        return (self._batch(indices) for indices in self._plan(batch_size, shuffle_seed, epoch, start))

    def count_batches(self, batch_size: int, limit: int | None = None) -> int:
        """The number of batches of the first `limit` sequences."""
        used = len(self) if limit is None else min(limit, len(self))
        return -(-used // batch_size)

    def _plan(self, batch_size: int, shuffle_seed: int | None, epoch: int, start: int) -> Iterator[NDArray[np.int64]]:
        """The numbers of the sequences in each batch."""
        order = None if shuffle_seed is None else permutation(shuffle_seed, f"order/{epoch}", len(self))
        for first in range(start * batch_size, len(self), batch_size):
            last = min(first + batch_size, len(self))
            yield np.arange(first, last) if order is None else order[first:last]

    def _check(self, indices: Indices) -> NDArray[np.int64]:
        array = np.asarray(indices)
        if array.ndim != 1 or array.size == 0 or array.dtype.kind not in "iu":
            raise ValueError(f"indices: expected at least one integer, got {indices!r}")
        if array.min() < 0 or array.max() >= len(self):
            raise IndexError(f"{self.name} has sequences 0 to {len(self) - 1}, got {indices!r}")
        return array.astype(np.int64)


def check_count(argument: str, value: int, least: int) -> None:
    if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < least:
        raise ValueError(f"{argument}: expected an integer of at least {least}, got {value!r}")


class DataError(ValueError):
    """A file or an array is not as expected; the message names it and says what was expected."""


class MissingDataError(DataError):
    """A dataset is not in the cache; the message gives the command that downloads it."""
