"""The network sizes that the benchmark times."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ptncn.network.layers import widths


@dataclass(frozen=True)
class Shape:
    """A network size and a batch size.

    >>> Shape.parse("4096-3x1000@20")
    Shape(inputs=4096, depth=3, units=1000, batch=20)
    """

    inputs: int
    depth: int
    units: int
    batch: int

    @classmethod
    def parse(cls, text: str) -> Shape:
        match = re.fullmatch(r"(\d+)-(\d+)x(\d+)@(\d+)", text)
        if match is None or not all(map(int, match.groups())):
            raise ValueError(f"shape: expected INPUTS-LAYERSxUNITS@BATCH, such as 4096-3x1000@20, got {text!r}")
        return cls(*map(int, match.groups()))

    @property
    def name(self) -> str:
        return f"{self.inputs}-{self.depth}x{self.units}"

    @property
    def sizes(self) -> tuple[int, ...]:
        return (self.inputs, *[self.units] * self.depth)

    @property
    def weights(self) -> dict[str, int]:
        """The number of weights in all R = [M; V; U], in all W and in all E."""
        parts = widths(self.sizes)
        return {
            "R": sum((below + own + above) * own for below, own, above in parts),
            "W": sum(own * below for below, own, _ in parts),
            "E": sum(own * below for below, own, _ in parts),
        }

    @property
    def all_weights(self) -> int:
        return sum(self.weights.values())

    def flops(self, *, learn: bool) -> int:
        """Floating-point operations in the matrix products of a step with fixed E.

        The step uses each weight once, and each weight that learns once more.
        """
        learnt = self.weights["R"] + self.weights["W"] if learn else 0
        return 2 * self.batch * (self.all_weights + learnt)

    def traffic(self, *, learn: bool) -> int:
        """Bytes that a float32 step must move.

        It reads each weight once. With batch > 1 it also reads and writes each weight that learns; at batch 1 those
        updates may be deferred until there are many.
        """
        learnt = self.weights["R"] + self.weights["W"] if learn and self.batch > 1 else 0
        return 4 * self.all_weights + 8 * learnt

    def __str__(self) -> str:
        return f"{self.name}@{self.batch}"


SHAPES = tuple(
    Shape.parse(text) for text in ("4096-3x1000@20", "4096-3x1000@1", "49-2x1000@50", "49-2x1000@1", "8-2x32@1")
)
