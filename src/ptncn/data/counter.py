"""Random numbers by address: number i of a stream is computed from i, not from the numbers before it.

Batches, order and workers then cannot change what a sequence looks like, and a stream resumes anywhere. The
generator is Philox4x32-10 [^1], written out here because NumPy has it only behind a stateful object, and
promises no fixed results for the distributions on top of it.

[^1]: Salmon et al. (2011), Parallel random numbers: as easy as 1, 2, 3.
"""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray

ROUNDS = 10
MULTIPLIERS = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
KEY_STEPS = 0x9E3779B9, 0xBB67AE85
LOW = np.uint64(0xFFFFFFFF)
HALF = np.uint64(32)


def stream_key(seed: int, label: str) -> int:
    """A 64-bit key: streams of other seeds or labels have nothing in common.

    >>> stream_key(0, "mnist/train") != stream_key(0, "mnist/test")
    True
    """
    if not isinstance(seed, int | np.integer) or isinstance(seed, bool) or seed < 0:
        raise ValueError(f"seed: expected an integer of at least 0, got {seed!r}")
    return int.from_bytes(hashlib.sha256(f"{label}/{seed}".encode()).digest()[:8], "little")


def random_words(key: int, index: NDArray[np.integer], block: NDArray[np.integer] | int = 0) -> NDArray[np.uint64]:
    """(…, 4) words of 32 random bits at each address: index (…) below 2⁶⁴, block (…) below 2³².

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
    """(count,) the numbers from 0 to count − 1 in an order that only seed and label decide.

    >>> sorted(permutation(0, "example", 5).tolist())
    [0, 1, 2, 3, 4]
    """
    words = random_words(stream_key(seed, label), np.arange(count))
    return np.argsort(words[:, 0] << HALF | words[:, 1], kind="stable")
