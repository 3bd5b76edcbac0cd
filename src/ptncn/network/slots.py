"""Many networks with the same options in one array; one call of the kernel steps them with a block of rows."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ptncn import kernels
from ptncn.network.backend import Kernel
from ptncn.network.ptncn import PTNCN
from ptncn.network.state import PTNCNState
from ptncn.system import processors, side_by_side

SHARE = 128
"""The fewest rows per thread that make starting it worthwhile."""

Slots = NDArray[np.int64]
Floats = NDArray[np.float32]


def is_plain(network: object) -> bool:
    """Whether networks with these options differ only in weights, moments and last states."""
    if not isinstance(network, PTNCN) or network.layers[0].W.weight.dtype is not torch.float32:
        return False
    config, learning = network.config, network.learning
    postpones = any(learning.postpones(part, name) for name, part in network._synapses().items())
    varies = learning.optimizer.varies or config.schedule is not None
    others = network.feedback or network.mean_observation or network.readout or network._remembers
    return not (postpones or varies or others or config.first_frame or config.xi)


def tensors_of(network: PTNCN, state: PTNCNState) -> list[Tensor]:
    """The tensors in which plain networks differ, in the order of a row: weights, moments, last states."""
    weights = {name: part.weight for name, part in network._synapses().items()}
    moments = [moment for name in weights for moment in network.learning.optimizer.held(name)]
    last = (state.corrected, state.displacement, state.uncorrected)
    return [*weights.values(), *moments, *(part for part in last if part is not None)]


def pack(network: PTNCN, state: PTNCNState) -> Floats:
    """(width,) a plain network and its state as one row."""
    row: Floats = torch.cat([tensor.flatten() for tensor in tensors_of(network, state)]).numpy()
    return row


def unpack(row: Floats, network: PTNCN, state: PTNCNState) -> None:
    """Copy a row back into the tensors of a network with the same options."""
    tensors = tensors_of(network, state)
    width = sum(tensor.numel() for tensor in tensors)
    if row.shape != (width,) or row.dtype != np.float32:
        raise ValueError(f"network: expected shape ({width},) of float32, got {row.shape} of {row.dtype}")
    parts = torch.split(torch.from_numpy(row.copy()), [tensor.numel() for tensor in tensors])
    with torch.no_grad():
        for tensor, part in zip(tensors, parts, strict=True):
            tensor.copy_(part.view(tensor.shape))
    network.learning.forget_bounds()


class NetworkArray:
    """Plain networks in numbered slots. All start as copies of `network` and use its step size.

    The results are those of separate networks and `network.step`; missing values are replaced by predictions.
    """

    def __init__(self, network: PTNCN) -> None:
        kernel = self._kernel(network)
        assert kernel is not None
        self.network, self._kernel_of = network, kernel
        state = network.begin(1)
        self._state = state
        self._blank = pack(network, state)
        self.rows = np.empty((0, len(self._blank)), dtype=np.float32)
        """(slots, width) weights, moments and last states."""
        self.steps = np.empty(0, dtype=np.int64)
        """(slots,) rows seen so far."""
        self.states = sum(network.sizes[1:])

    @staticmethod
    def _kernel(network: PTNCN) -> Kernel | None:
        kernel = network._backend()[1]
        return kernel if kernel is not None and kernel.small else None

    @classmethod
    def supports(cls, network: object) -> bool:
        """Whether this network is plain, and the kernel can take steps of many such networks at once."""
        return is_plain(network) and isinstance(network, PTNCN) and cls._kernel(network) is not None

    def resize(self, slots: int) -> None:
        """Change the number of slots, in place if the system allows it, to avoid a second copy of all networks."""
        before = len(self.steps)
        self.rows.resize((slots, self.rows.shape[1]), refcheck=False)
        self.steps.resize(slots, refcheck=False)
        self.rows[before:], self.steps[before:] = self._blank, 0

    def reset(self, slot: int) -> None:
        self.rows[slot], self.steps[slot] = self._blank, 0

    def step(self, slots: Slots, inputs: Floats, *, learn: bool) -> Floats:
        """Show each network its row of (n, inputs) values, NaN for missing; return corrected states (n, states)."""
        x, y = np.array(inputs, dtype=np.float32), np.empty((len(slots), self.states), dtype=np.float32)
        which = np.ascontiguousarray(slots, dtype=np.int64)
        library = kernels.load()
        assert library is not None
        parts = min(processors(), 1 + len(which) // SHARE) if len(self.steps) > 1 else 1

        def take(part: int) -> None:
            network, step, held = self._describe()
            described = kernels.new(
                "Slots",
                learn=learn,
                part=part,
                parts=parts,
                stride=self.rows.shape[1],
                **_span("room", self.rows),
                **_span("steps", self.steps),
                **_span("which", which),
                **_span("x", x),
                **_span("y", y),
            )
            refs = (ctypes.byref(each) for each in (network, step, described))
            kernels.check("steps", library.ptncn_steps(*refs))
            del held

        side_by_side(parts, take)
        return y

    def copy_to_network(self, slot: int) -> PTNCN:
        """The network of a slot as an object, which the next call overwrites."""
        unpack(self.rows[slot], self.network, self._state)
        return self.network

    def _describe(self) -> tuple[Any, Any, Any]:
        """The kernel's structures of network and step for slot 0, and the memory that they point to."""
        at, places = self.rows.ctypes.data, {}
        for tensor in tensors_of(self.network, self._state):
            places[tensor.data_ptr()] = at
            at += tensor.numel() * tensor.element_size()
        return self._kernel_of.describe_elsewhere(self._state, places)


def _span(name: str, array: NDArray[Any]) -> dict[str, int]:
    return {name: array.ctypes.data, f"{name}_count": array.size}
