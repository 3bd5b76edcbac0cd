"""The base of all datasets: numbered sequences, in time-major batches."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from ptncn.data.counter import permutation

Indices = Sequence[int] | NDArray[np.integer[Any]]


class Batch(NamedTuple):
    """Sequences side by side."""

    x: Tensor
    """(T, B, n) float32 observations."""
    mask: Tensor | None
    """(T, B) bool, False past the end of a shorter sequence; None if all have one length."""


class SequenceDataset(ABC):
    """Numbered sequences: `batch` returns any of them, `batches` goes through all of them once."""

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
        """(T, n) one sequence: this makes it a dataset for `torch.utils.data.DataLoader` too."""
        x, mask = self.batch([index])
        return x[:, 0] if mask is None else x[mask[:, 0], 0]

    def batches(
        self, batch_size: int, *, shuffle_seed: int | None = None, epoch: int = 0, start: int = 0
    ) -> Iterator[Batch]:
        """Every sequence once, the last batch may be smaller; in order unless `shuffle_seed` is given.

        Another `epoch` shuffles anew. `start` leaves out the first batches, at no cost: a run that stopped
        after k batches goes on with `start=k`.
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
    """A file or an array is not what it should be; the message names it and says what was expected."""


class MissingDataError(DataError):
    """A dataset is not in the cache; the message gives the command that downloads it."""
