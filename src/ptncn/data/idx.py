"""The idx format of MNIST: a magic number, the size of each axis, then bytes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ptncn.data.errors import DataError

UNSIGNED_BYTE = 0x08


def parse_idx(content: bytes, path: Path, axes: int | None = None) -> NDArray[np.uint8]:
    """The array in an idx file; errors name `path`.

    >>> parse_idx(bytes([0, 0, 8, 1, 0, 0, 0, 3, 7, 8, 9]), Path("labels"))
    array([7, 8, 9], dtype=uint8)
    """
    magic = content[:4]
    if len(magic) < 4 or magic[:3] != bytes([0, 0, UNSIGNED_BYTE]) or magic[3] == 0:
        raise DataError(f"{path}: starts with {magic.hex(' ') or 'nothing'}; an idx file of bytes starts with 00 00 08")
    if axes is not None and magic[3] != axes:
        raise DataError(f"{path}: expected an idx file with {axes} axes, got {magic[3]}")
    header = 4 + 4 * magic[3]
    if len(content) < header:
        raise DataError(f"{path}: {len(content)} bytes end within the header of {header} bytes")
    shape = np.frombuffer(content[4:header], ">u4").tolist()
    promised = header + int(np.prod(shape, dtype=object))
    if len(content) != promised:
        raise DataError(f"{path}: the header promises {promised} bytes for {shape}, the file holds {len(content)}")
    return np.frombuffer(content, np.uint8, offset=header).reshape(shape)
