"""Small grey images with labels: the objects of the bouncing videos."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Images:
    """Images of one size, bright on black. The arrays are read-only: datasets share them.

    >>> Images("mine", np.zeros((3, 28, 28), np.uint8), np.zeros(3, np.uint8))[:2].pixels.shape
    (2, 28, 28)
    """

    name: str
    pixels: NDArray[np.uint8]
    """(N, height, width) from 0, black, to 255."""
    labels: NDArray[np.uint8]
    """(N,)"""

    def __post_init__(self) -> None:
        if self.pixels.ndim != 3 or self.pixels.dtype != np.uint8 or len(self.pixels) == 0:
            raise ValueError(
                f"images {self.name} have shape {self.pixels.shape} and type {self.pixels.dtype}; "
                "(N, height, width) of uint8 with N of at least 1 would be right"
            )
        if self.labels.shape != self.pixels.shape[:1]:
            raise ValueError(f"images {self.name}: {len(self.pixels)} images, but labels {self.labels.shape}")
        for field in ("pixels", "labels"):
            view = getattr(self, field).view()  # the caller's own array stays writable
            view.setflags(write=False)
            object.__setattr__(self, field, view)

    def __len__(self) -> int:
        return len(self.pixels)

    def __getitem__(self, part: slice) -> Images:
        """Some of them, without a copy."""
        return Images(self.name, self.pixels[part], self.labels[part])

    @cached_property
    def sha256(self) -> str:
        """64 hexadecimal digits for records: equal where pixels and labels are equal."""
        digest = hashlib.sha256(f"{self.pixels.shape}".encode())
        digest.update(np.ascontiguousarray(self.pixels).data)
        digest.update(np.ascontiguousarray(self.labels).data)
        return digest.hexdigest()
