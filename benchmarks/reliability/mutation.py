"""Damage good files: flip bits; cut, duplicate and mix bytes; and insert problematic values."""

from __future__ import annotations

import random
from collections.abc import Sequence

TOKENS = (
    b'"',
    b'""',
    b",",
    b";",
    b"\t",
    b"\n",
    b"\r\n",
    b"\r",
    b"\x00",
    b"\xff",
    b"\xef\xbb\xbf",
    b"\xe2\x80\xa8",
    b"\xc3",
    b"nan",
    b"NaN",
    b"-Infinity",
    b"1e999",
    b"-0",
    b"0x10",
    b"1_0",
    b"9" * 400,
    b"[" * 3000,
    b'{"a":' * 3000,
    b"{}",
    b"[]",
    b"null",
    b"true",
    b"\\u0000",
    b"\\ud800",
    b"__import__('os').system('id')",
    b"!!python/object/apply:os.system ['id']",
    b"cos\nsystem\n(S'id'\ntR.",
    b"../../etc/passwd",
)


def mutate(rng: random.Random, seeds: Sequence[bytes]) -> bytes:
    """One of the good files with one to four changes."""
    data = bytearray(rng.choice(seeds))
    for _ in range(rng.randint(1, 4)):
        start = rng.randrange(len(data) + 1)
        end = min(len(data), start + rng.randint(1, 40))
        change = rng.randrange(8)
        if change == 0 and data:
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        elif change == 1 and data:
            data[rng.randrange(len(data))] = rng.randrange(256)
        elif change == 2:
            del data[start:end]
        elif change == 3:
            data[start:start] = data[start:end] * rng.randint(1, 3)
        elif change == 4:
            data[start:start] = rng.choice(TOKENS)
        elif change == 5:
            other = rng.choice(seeds)
            place = rng.randrange(len(other) + 1)
            data[start:end] = other[place : place + rng.randint(1, 60)]
        elif change == 6:
            del data[start:]
        else:
            data[start:end] = rng.randbytes(end - start)
    return bytes(data)
