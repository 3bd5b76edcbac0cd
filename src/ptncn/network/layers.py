"""The synapses of a P-TNCN, and how its layers see them."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ptncn.network.activations import Activation
from ptncn.network.config import Config


@dataclass(frozen=True)
class Layer:
    """The synapses of layer ℓ, stored (from, to), and the columns of [x, y¹, …, yᴸ] that it reads."""

    number: int
    M: Tensor  # (n₋, n) from the layer below
    V: Tensor  # (n, n) from itself
    U: Tensor | None  # (n₊, n) from the layer above; the top layer has none
    MVU: Tensor  # (n₋+n+n₊, n) the three of them stacked: a drive is one product
    W: Tensor  # (n, n₋) predicts the layer below
    E: Tensor  # (n₋, n) brings errors back up
    b: Tensor | None  # (1, n) bias of the drive
    c: Tensor | None  # (1, n₋) bias of the prediction
    neighbours: slice  # columns that hold [y₋, y, y₊]
    phi: Activation  # φ_z
    phi_o: Activation  # φ_o, on the prediction of the layer below

    def synapses(self) -> dict[str, Tensor]:
        """W1, M1, … as they are stored."""
        parts = {"W": self.W, "M": self.M, "V": self.V, "U": self.U, "E": self.E, "b": self.b, "c": self.c}
        return {f"{name}{self.number}": part for name, part in parts.items() if part is not None}


def widths(sizes: tuple[int, ...]) -> list[tuple[int, int, int]]:
    """Units below, in, and above each layer: (n₋, n, n₊).

    >>> widths((8, 5, 3))
    [(8, 5, 3), (5, 3, 0)]
    """
    return list(zip(sizes[:-1], sizes[1:], (*sizes[2:], 0), strict=True))


def initial_weights(sizes: tuple[int, ...], config: Config, seed: int) -> dict[str, nn.Parameter]:
    """W1, R1, E1, b1, c1, …, where R stacks M, V and U; the same numbers in each precision."""
    chance = torch.Generator().manual_seed(seed)

    def gaussian(rows: int, columns: int, std: float) -> Tensor:
        draw = torch.randn(rows, columns, generator=chance, dtype=torch.float64)
        return draw.mul_(std).to(torch.get_default_dtype())

    weights = {}
    for number, (below, own, above) in enumerate(widths(sizes), start=1):
        weights[f"W{number}"] = gaussian(own, below, config.weight_std)
        weights[f"R{number}"] = gaussian(below + own + above, own, config.weight_std)
        weights[f"E{number}"] = gaussian(below, own, config.error_weight_std)
        if config.biases:
            weights[f"b{number}"] = torch.zeros(own)
            weights[f"c{number}"] = torch.zeros(below)
    return {name: nn.Parameter(weight, requires_grad=False) for name, weight in weights.items()}


def view_layers(
    weights: dict[str, Tensor], sizes: tuple[int, ...], phi: list[Activation], phi_o: list[Activation]
) -> list[Layer]:
    """Layers 1 … L as views of what `initial_weights` made."""
    layers = []
    start = 0  # of the layer below in [x, y¹, …, yᴸ]
    for number, (below, own, above) in enumerate(widths(sizes), start=1):
        R = weights[f"R{number}"]
        bias, expected = weights.get(f"b{number}"), weights.get(f"c{number}")
        layers.append(
            Layer(
                number=number,
                M=R[:below],
                V=R[below : below + own],
                U=R[below + own :] if above else None,
                MVU=R,
                W=weights[f"W{number}"],
                E=weights[f"E{number}"],
                b=None if bias is None else bias[None],
                c=None if expected is None else expected[None],
                neighbours=slice(start, start + below + own + above),
                phi=phi[number - 1],
                phi_o=phi_o[number - 1],
            )
        )
        start += below
    return layers
