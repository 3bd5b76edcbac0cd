"""The parameters of a P-TNCN, views of them by layer, and access to them from several threads.

The views are rebuilt when parameters are replaced. A large matrix may have queued updates (`ptncn.updates.Synapses`);
reading a parameter applies them first.
"""

from __future__ import annotations

import operator
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from typing import Any, Self

import torch
from torch import Tensor, nn

from ptncn.network.activations import Activation
from ptncn.network.backend import Kernel, Sharing
from ptncn.network.config import Config
from ptncn.network.layers import Layer, MakeSynapses, learning_groups, paper_views, view_layers
from ptncn.updates import LocalLearning, Synapses


class Gate:
    """`with gate.reading:` overlaps with other readers; `with gate.writing:` excludes all other threads.

    A thread that writes may enter again, to read or to write. Writers have priority: readers that arrive later wait
    for them.

    >>> gate = Gate()
    >>> with gate.writing, gate.writing, gate.reading:
    ...     pass
    """

    def __init__(self) -> None:
        self.condition = threading.Condition(threading.Lock())
        self.readers = 0
        self.waiting = 0
        self.writer: int | None = None
        self.depth = 0
        self.reading = _Reading(self)
        self.writing = _Writing(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return Gate, ()  # a copy of a network gets a new gate


class _Reading:
    def __init__(self, gate: Gate) -> None:
        self.gate = gate

    def __enter__(self) -> None:
        gate, me = self.gate, threading.get_ident()
        with gate.condition:
            while gate.writer != me and (gate.writer is not None or gate.waiting):
                gate.condition.wait()
            gate.readers += 1

    def __exit__(self, *error: object) -> None:
        gate = self.gate
        with gate.condition:
            gate.readers -= 1
            if not gate.readers:
                gate.condition.notify_all()


class _Writing:
    def __init__(self, gate: Gate) -> None:
        self.gate = gate

    def __enter__(self) -> None:
        gate, me = self.gate, threading.get_ident()
        with gate.condition:
            if gate.writer != me:
                gate.waiting += 1
                try:
                    while gate.writer is not None or gate.readers:
                        gate.condition.wait()
                finally:
                    gate.waiting -= 1
                gate.writer = me
            gate.depth += 1

    def __exit__(self, *error: object) -> None:
        gate = self.gate
        with gate.condition:
            gate.depth -= 1
            if not gate.depth:
                gate.writer = None
                gate.condition.notify_all()


class LayeredModule(nn.Module):
    """A module with the weights of a P-TNCN, its layers, and the rules that update them."""

    def _set_up(
        self,
        sizes: tuple[int, ...],
        config: Config,
        weights: Mapping[str, nn.Parameter],
        phi: Sequence[Activation],
        phi_o: Sequence[Activation],
    ) -> None:
        """Register the weights. Not `__init__`, so that the options of a learner end at its own `__init__`."""
        self.sizes, self.config = sizes, config
        self._phi, self._phi_o = list(phi), list(phi_o)
        for name, weight in weights.items():
            self.register_parameter(name, weight)
        self._shapes = {name: weight.shape for name, weight in weights.items()}
        self._views: list[Layer] | None = None
        self._addresses: tuple[int, ...] = ()
        self._forms: tuple[tuple[torch.Size, torch.dtype], ...] = ()
        self._bound: list[Kernel | None] = []  # the kernel, once requested
        self._gate = Gate()
        self._make_synapses: MakeSynapses = _plain
        self._sharing: Sharing | None = None
        synapses = self._synapses()
        self.learning = LocalLearning(synapses, learning_groups(synapses, config), config)

    def synapses(self) -> dict[str, Tensor]:
        """The weights under the paper's names and in its orientation, as views: writing into one changes the network.

        W1 (n₀, n₁), M1 (n₁, n₀), V1 (n₁, n₁), U1 (n₁, n₂), E1 (n₁, n₀), and so on for each layer; and the biases,
        b1 (n₁,) of the drive and c1 (n₀,) of the prediction. Large networks with small batches apply updates
        with a delay of some steps (`ptncn.updates.Synapses`): call this again for current values.
        """
        return paper_views({name: weight.detach() for name, weight in self.named_parameters()}, self.sizes)

    @property
    def layers(self) -> list[Layer]:
        """Layers 1 … L as views of the parameters, rebuilt when those are replaced."""
        views = self._views
        if views is None or not self._views_are_current():
            with self._gate.writing:
                views = self._views
                if views is not None and not self._views_are_current():
                    self._forget_views()
                    views = None
                if views is None:  # no other thread was first
                    views = self._views = self._view_parameters()
        return views

    def share(self, make: MakeSynapses, sharing: Sharing | None = None) -> None:
        """Use the `Synapses` that `make` builds from names and weights, such as those that ranks share.

        `sharing` is for the kernel, which needs whole matrices.
        """
        self._forget_views()
        self._make_synapses, self._sharing = make, sharing

    def _synapses(self) -> dict[str, Synapses]:
        """R1, W1, E1, b1, c1, R2, …"""
        return {name: part for layer in self.layers for name, part in layer.synapses().items()}

    def _settle(self) -> None:
        with self._gate.writing:
            for layer in self._views or ():
                for part in layer.synapses().values():
                    part.write()

    def _forget_views(self) -> None:
        """Apply queued updates to the old parameters, and drop the views of them."""
        self._settle()
        self.learning.forget_bounds()
        self._views = None
        self._bound = []

    def _views_are_current(self) -> bool:
        """Whether parameters have the same addresses, shapes and types: `.data` may be rebound at any time."""
        weights: list[Any] = list(map(self._parameters.get, self._shapes))
        try:
            same = self._addresses == tuple(map(_address, weights)) and all(map(_is_contiguous, weights))
        except TypeError:  # one of them is gone
            return False
        return same and self._forms == tuple(map(_form, weights))

    def _view_parameters(self) -> list[Layer]:
        weights: dict[str, Tensor] = {}
        for name in self._shapes:
            own = self._parameters.get(name)
            if own is None:
                raise ValueError(f"{name}: expected a parameter of the network, got none of this name")
            weights[name] = own.detach()
        dtype, _ = Counter(weight.dtype for weight in weights.values()).most_common(1)[0]
        if dtype not in (torch.float32, torch.float64):
            raise ValueError(f"network: expected parameters of float32 or float64, got {dtype}")
        for name, weight in weights.items():
            if weight.shape != (shape := self._shapes[name]) or weight.dtype != dtype:
                got = tuple(weight.shape)
                raise ValueError(f"{name}: expected {tuple(shape)} numbers of {dtype}, got {got} of {weight.dtype}")
        self._addresses = tuple(map(_address, weights.values()))
        self._forms = tuple(map(_form, weights.values()))
        return view_layers(weights, self.sizes, self._phi, self._phi_o, self.config.credit, self._make_synapses)

    def named_parameters(self, *args: Any, **kwargs: Any) -> Iterator[tuple[str, nn.Parameter]]:
        self._settle()
        return super().named_parameters(*args, **kwargs)

    def state_dict(self, *args: Any, **kwargs: Any) -> Any:
        self._settle()
        return super().state_dict(*args, **kwargs)

    def load_state_dict(self, *args: Any, **kwargs: Any) -> Any:
        with self._gate.writing:
            self._forget_views()
            return super().load_state_dict(*args, **kwargs)

    def _apply(self, fn: Any, recurse: bool = True) -> Self:
        with self._gate.writing:
            self._forget_views()
            super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Copy between two steps, not in the middle of one that another thread takes."""
        with self._gate.writing:
            copied = type(self).__new__(type(self))
            memo[id(self)] = copied
            copied.__dict__.update(deepcopy(self.__getstate__(), memo))
        return copied

    def __getstate__(self) -> dict[str, Any]:
        self._forget_views()
        return self.__dict__.copy()


def _plain(name: str, weight: Tensor) -> Synapses:
    return Synapses(weight)


_address: Any = Tensor.data_ptr
_is_contiguous: Any = Tensor.is_contiguous
_form: Any = operator.attrgetter("shape", "dtype")
