"""The weights of a P-TNCN, and views of them by layer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from ptncn.network.activations import Activation, Reach, get_activation, get_reach
from ptncn.network.config import Config
from ptncn.network.memory import TRACED, Memory, initial_memory
from ptncn.system import available_memory, in_words
from ptncn.updates.config import Group
from ptncn.updates.factors import Synapses

MakeSynapses = Callable[[str, Tensor], Synapses]
"""Builds the `Synapses` of a matrix from its name and weights."""
ALWAYS_THERE = 1 << 28
"""Bytes that are allocated without checking the available memory."""


@dataclass(frozen=True)
class Layer:
    """The synapses of layer ℓ, stored (from, to), and the columns of [x, y¹, …, yᴸ] that it reads."""

    number: int
    MVU: Synapses  # (n₋+n+n₊, n) M from below, V from itself and U from above, stacked: a drive is one product
    W: Synapses  # (n, n₋) predicts the layer below
    E: Synapses  # (n₋, n) brings errors back up
    b: Synapses | None  # (1, n) bias of the drive
    c: Synapses | None  # (1, n₋) bias of the prediction
    memory: Memory | None
    neighbours: slice  # columns that hold [y₋, y, y₊]
    phi: Activation  # φ_z
    phi_o: Activation  # φ_o, on the prediction of the layer below
    reach: Reach | None  # displacement of a drive that shows in the state, if φ_z has no slope

    def synapses(self) -> dict[str, Synapses]:
        """Groups of weights by name: R1 (M1, V1 and U1), W1, E1, b1, c1, and G1, B1, rate1, angle1 of a memory."""
        parts = {"R": self.MVU, "W": self.W, "E": self.E, "b": self.b, "c": self.c}
        named = {f"{name}{self.number}": part for name, part in parts.items() if part is not None}
        return named if self.memory is None else named | self.memory.synapses()


def widths(sizes: tuple[int, ...]) -> list[tuple[int, int, int]]:
    """Units below, in and above each layer: (n₋, n, n₊).

    >>> widths((8, 5, 3))
    [(8, 5, 3), (5, 3, 0)]
    """
    return list(zip(sizes[:-1], sizes[1:], (*sizes[2:], 0), strict=True))


def initial_weights(
    sizes: tuple[int, ...], config: Config, seed: int, memories: tuple[int, ...], one_hot: bool
) -> dict[str, nn.Parameter]:
    """W1, R1, E1, b1, c1, …, where R stacks M, V and U; the same values in each precision.

    Memories are drawn last, so that the other weights do not depend on them.
    """
    check_memory(sizes)
    generator = torch.Generator().manual_seed(seed)

    def gaussian(rows: int, columns: int, std: float) -> Tensor:
        weights = torch.empty(rows * columns)
        for part in torch.split(weights, 1 << 16):  # in parts, to avoid a full copy in double precision
            part.copy_(torch.randn(len(part), generator=generator, dtype=torch.float64).mul_(std))
        return weights.view(rows, columns)

    weights = {}
    for number, (below, own, above) in enumerate(widths(sizes), start=1):
        weights[f"W{number}"] = gaussian(own, below, config.weight_std)
        weights[f"R{number}"] = gaussian(below + own + above, own, config.weight_std)
        weights[f"E{number}"] = gaussian(below, own, config.error_weight_std)
        if config.biases:
            weights[f"b{number}"] = torch.zeros(own)
            weights[f"c{number}"] = torch.zeros(below)
    for number, ((below, own, _), units) in enumerate(zip(widths(sizes), memories, strict=True), start=1):
        if units:
            drawn = initial_memory(below, own, units, one_hot and number == 1, generator)
            weights |= {f"{name}{number}": weight.to(torch.get_default_dtype()) for name, weight in drawn.items()}
    return {name: nn.Parameter(weight, requires_grad=False) for name, weight in weights.items()}


def check_memory(sizes: tuple[int, ...]) -> None:
    """Raise MemoryError if the matrices, in single precision, exceed the available memory.

    The system may overcommit memory, and drawing the weights would then continue until it runs out.
    """
    needed = 4 * sum(own * (3 * below + own + above) for below, own, above in widths(sizes))
    if needed > ALWAYS_THERE and needed > (available := available_memory()):
        layers = " → ".join(map(str, sizes))
        raise MemoryError(f"the weights of {layers} need {in_words(needed)}, and {in_words(available)} are available")


def learning_groups(names: Iterable[str], config: Config) -> dict[str, Group]:
    """How each of the weights learns: E has a separate step size or is fixed; vectors are not regularized."""
    kinds = {"E": Group(lr_factor=config.error_lr_factor)}
    kinds |= dict.fromkeys(("b", "c", "B", "rate", "angle"), Group(regularized=False))
    named = {name: name.rstrip("0123456789") for name in names}
    return {
        name: kinds.get(kind, Group()) for name, kind in named.items() if kind != "E" or config.error_rule != "fixed"
    }


def view_layers(
    weights: Mapping[str, Tensor],
    sizes: tuple[int, ...],
    phi: list[Activation],
    phi_o: list[Activation],
    credit: str,
    make: MakeSynapses,
) -> list[Layer]:
    """Layers 1 … L as views of the weights from `initial_weights`."""
    layers = []
    start = 0  # of the layer below in [x, y¹, …, yᴸ]
    for number, (below, own, above) in enumerate(widths(sizes), start=1):
        layers.append(
            Layer(
                number=number,
                MVU=make(f"R{number}", weights[f"R{number}"]),
                W=make(f"W{number}", weights[f"W{number}"]),
                E=make(f"E{number}", weights[f"E{number}"]),
                b=Synapses(weights[f"b{number}"][None]) if f"b{number}" in weights else None,
                c=Synapses(weights[f"c{number}"][None]) if f"c{number}" in weights else None,
                memory=_view_memory(weights, number, credit, make),
                neighbours=slice(start, start + below + own + above),
                phi=phi[number - 1],
                phi_o=phi_o[number - 1],
                reach=get_reach(phi[number - 1]),
            )
        )
        start += below
    return layers


def _view_memory(weights: Mapping[str, Tensor], number: int, credit: str, make: MakeSynapses) -> Memory | None:
    if f"B{number}" not in weights:
        return None
    B, G = weights[f"B{number}"], weights[f"G{number}"]
    rate, angle = (Synapses(weights[f"{name}{number}"][None]) for name in ("rate", "angle"))
    traced = credit == "trace" or (credit == "auto" and B.numel() <= TRACED)
    write = make(f"B{number}", B)
    write.queues = not traced
    return Memory(number, write, make(f"G{number}", G), rate, angle, traced)


def paper_views(weights: Mapping[str, Tensor], sizes: tuple[int, ...]) -> dict[str, Tensor]:
    """W1, M1, V1, U1, E1, b1, c1, … in the paper's orientation, (to, from), as views."""
    views = {}
    for number, (below, own, above) in enumerate(widths(sizes), start=1):
        R = weights[f"R{number}"]
        views[f"W{number}"] = weights[f"W{number}"].T
        views[f"M{number}"] = R[:below].T
        views[f"V{number}"] = R[below : below + own].T
        if above:
            views[f"U{number}"] = R[below + own :].T
        views[f"E{number}"] = weights[f"E{number}"].T
        views |= {name: weights[name] for name in (f"b{number}", f"c{number}") if name in weights}
        if f"B{number}" in weights:
            views |= {name: weights[name].T for name in (f"G{number}", f"B{number}")}
            views |= {name: weights[name] for name in (f"rate{number}", f"angle{number}")}
    return views


def choose_activations(
    config: Config, depth: int, mean: Activation, generator: torch.Generator
) -> tuple[list[Activation], list[Activation]]:
    """φ_z of layers 1 … L, and φ_o of their predictions; that of layer 1 is the output's `mean`."""
    choice = config.activation
    choices: Sequence[Any] = [choice] * depth if isinstance(choice, str) or callable(choice) else choice
    if not isinstance(choices, Sequence) or len(choices) != depth:
        got = len(choices) if isinstance(choices, Sequence) else repr(choice)
        raise ValueError(f"activation: expected one function, or one for each of {depth} layers, got {got}")
    phi = [get_activation(each, config.winners, generator) for each in choices]
    if config.hidden_prediction == "same":
        return phi, [mean, *phi[:-1]]
    phi_o = get_activation(config.hidden_prediction, config.winners, generator)
    return phi, [mean] + [phi_o] * (depth - 1)
