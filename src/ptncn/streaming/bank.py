"""Networks for many streams in slots."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ptncn.learner import Learner
from ptncn.network.slots import NetworkArray, is_plain, pack, unpack
from ptncn.streaming.columns import Vector
from ptncn.streaming.storage import grow

Slots = NDArray[np.int64]


class Networks(Protocol):
    """Networks for streams in slots."""

    def learner(self, slot: int) -> Learner:
        """The network of a slot."""

    def resize(self, slots: int) -> None: ...

    def reset(self, slot: int) -> None: ...

    def step(self, slots: Slots, inputs: NDArray[np.float32], *, learn: bool) -> NDArray[np.floating[Any]]:
        """(n, states) after each of (n, inputs) rows; NaN inputs are replaced by their predictions."""

    def state(self, slots: Sequence[int]) -> dict[str, Any]: ...

    def restore(self, slots: Sequence[int], state: Mapping[str, Any]) -> None: ...


class NetworkBank:
    """Shows rows to networks and returns their states.

    Arguments:
        make: builds a network for a given number of inputs; each call returns an equal network.
        inputs: number of inputs of the network.
        shared: one network for all slots, which learns from batches of rows.
    """

    def __init__(
        self, make: Callable[[int], Learner], inputs: int, *, learn: bool = True, shared: bool = False
    ) -> None:
        self.learn, self.shared = learn, shared
        first: Any = make(inputs)
        blank = first.step(torch.zeros(1, inputs), first.begin(1), learn=False)
        self.states = sum(part.shape[1] for part in blank.corrected)
        self._networks: Networks
        if shared:
            self._networks = SharedNetwork(first, self.states)
        elif NetworkArray.supports(first):
            self._networks = SlottedNetworks(first)
        else:
            self._networks = SeparateNetworks(lambda: make(inputs), self.states)
        self._after = np.empty((0, self.states))

    def learner(self, slot: int) -> Learner:
        return self._networks.learner(slot)

    def resize(self, slots: int) -> None:
        self._networks.resize(slots)
        grow(self._after, slots)

    def reset(self, slot: int) -> None:
        self._networks.reset(slot)
        self._after[slot] = 0.0

    def step(self, slots: Slots, inputs: NDArray[np.float32]) -> Vector:
        """(n, states) after each of (n, inputs) rows, NaN if not observed."""
        states: Vector = self._networks.step(slots, inputs, learn=self.learn).astype(np.float64)
        self._after[slots] = states
        return states

    def states_of(self, slot: int) -> Vector:
        """(states,) after the last row."""
        after: Vector = self._after[slot]
        return after

    def state(self, slots: Sequence[int]) -> dict[str, Any]:
        return {"after": self._after[list(slots)], **self._networks.state(slots)}

    def restore(self, slots: Sequence[int], state: Mapping[str, Any]) -> None:
        self._after[list(slots)] = state["after"]
        self._networks.restore(slots, state)

    def shared_state(self) -> dict[str, Any]:
        return {"network": self.learner(0).snapshot() if self.shared else None}

    def restore_shared(self, state: Mapping[str, Any]) -> None:
        if state["network"] is not None:
            self.learner(0).restore(state["network"])


class SlottedNetworks(NetworkArray):
    """A network for each slot, all in one array."""

    def learner(self, slot: int) -> Learner:
        return self.copy_to_network(slot)

    def state(self, slots: Sequence[int]) -> dict[str, Any]:
        index = list(slots)
        return {"lr": self.network.lr, "networks": self.rows[index], "steps": self.steps[index]}

    def restore(self, slots: Sequence[int], state: Mapping[str, Any]) -> None:
        index, rows = list(slots), state["networks"]
        if rows.shape != (len(index), self.rows.shape[1]):
            raise ValueError(f"networks: expected {(len(index), self.rows.shape[1])}, got {rows.shape}")
        self.rows[index], self.steps[index] = rows, state["steps"]
        self.network.lr = state["lr"]


class SeparateNetworks:
    """A separate network for each slot, for options and machines that `NetworkArray` does not support."""

    def __init__(self, make: Callable[[], Learner], states: int) -> None:
        self._make, self._width = make, states
        self._learners: list[Any] = []
        self._states: list[Any] = []

    def learner(self, slot: int) -> Learner:
        learner: Learner = self._learners[slot]
        return learner

    def resize(self, slots: int) -> None:
        more = [None] * (slots - len(self._learners))
        self._learners += more
        self._states += more

    def reset(self, slot: int) -> None:
        self._learners[slot] = self._make()
        self._states[slot] = self._learners[slot].begin(1)

    def step(self, slots: Slots, inputs: NDArray[np.float32], *, learn: bool) -> NDArray[np.floating[Any]]:
        x, states = torch.from_numpy(inputs), np.zeros((len(slots), self._width))
        for row, slot in enumerate(slots.tolist()):
            self._step(slot, x[row : row + 1], learn, states[row])
        return states

    def _step(self, slot: int, x: Tensor, learn: bool, out: Vector) -> None:
        learner, state, missing = self._learners[slot], self._states[slot], x.isnan()
        if missing.any():
            if missing.all() and not state.steps:
                return
            x = torch.where(missing, learner.predict(state), x)
            learn = learn and not bool(missing.all())
        out[:] = torch.cat(learner.step(x, state, learn=learn).corrected, 1).numpy()[0]

    def state(self, slots: Sequence[int]) -> dict[str, Any]:
        learners, states = ([part[slot] for slot in slots] for part in (self._learners, self._states))
        if learners and is_plain(learners[0]):  # in the format of `NetworkArray`
            rows = np.stack([pack(*pair) for pair in zip(learners, states, strict=True)])
            return {"lr": learners[0].lr, "networks": rows, "steps": np.array([state.steps for state in states])}
        fields = [{field.name: getattr(state, field.name) for field in dataclasses.fields(state)} for state in states]
        return {"learners": [learner.snapshot() for learner in learners], "states": fields}

    def restore(self, slots: Sequence[int], state: Mapping[str, Any]) -> None:
        for row, slot in enumerate(slots):
            self.reset(slot)
            if "networks" in state:
                unpack(state["networks"][row], self._learners[slot], self._states[slot])
                self._states[slot].steps, self._learners[slot].lr = int(state["steps"][row]), state["lr"]
            else:
                self._learners[slot].restore(state["learners"][row])
                self._states[slot] = type(self._states[slot])(**state["states"][row])


class SharedNetwork:
    """One network for all slots, which learns from rows of different slots as a batch."""

    def __init__(self, learner: Any, states: int) -> None:
        self._learner, self._width = learner, states
        state: Any = learner.begin(1)
        self._type, self._fields = type(state), [field.name for field in dataclasses.fields(state)]
        self._batched = [name for name in self._fields if _is_batched(getattr(state, name))]
        self._state: Any = None
        self._seen = np.empty(0, dtype=bool)

    def learner(self, slot: int) -> Learner:
        learner: Learner = self._learner
        return learner

    def resize(self, slots: int) -> None:
        before = len(self._seen)
        if slots <= before:
            return
        room = max(slots, before + before // 8)  # copied once, not for each slot
        new = self._learner.begin(room)
        if self._state is not None:
            for name in self._batched:
                getattr(new, name)[:before] = getattr(self._state, name)
        self._state = new
        grow(self._seen, room)

    def reset(self, slot: int) -> None:
        new = self._learner.begin(1)
        for name in self._batched:
            getattr(self._state, name)[slot] = getattr(new, name)[0]
        self._seen[slot] = False

    def step(self, slots: Slots, inputs: NDArray[np.float32], *, learn: bool) -> NDArray[np.floating[Any]]:
        x = torch.from_numpy(inputs)
        gaps = None if math.isfinite(float(x.sum())) else x.isnan()
        states = np.empty((len(slots), self._width))
        with one_thread():
            for rows in rounds(slots):
                for part in _parts(len(rows)):
                    self._step(slots, rows[part], x, gaps, learn, states)
        return states

    def _step(self, slots: Slots, rows: Slots, x: Tensor, gaps: Tensor | None, learn: bool, out: Vector) -> None:
        """Step rows of different slots as one batch."""
        learner, whole, index = self._learner, self._state, torch.from_numpy(slots[rows])
        fields = {name: getattr(whole, name) for name in self._fields}
        fields |= {name: fields[name][index] for name in self._batched}
        seen = self._seen[slots[rows]]
        if seen.all():
            fields |= {"batch_size": len(rows), "steps": 1, "seen": None}
        else:
            fields |= {"batch_size": len(rows), "steps": int(seen.any()), "seen": torch.from_numpy(seen)}
        state = self._type(**fields)
        x = x[torch.from_numpy(rows)]
        if gaps is not None:
            x = torch.where(gaps[torch.from_numpy(rows)], learner.predict(state), x)
        out[rows] = torch.cat(learner.step(x, state, learn=learn).corrected, 1).numpy()
        for name in self._batched:
            getattr(whole, name)[index] = getattr(state, name)
        self._seen[slots[rows]] = True

    def state(self, slots: Sequence[int]) -> dict[str, Any]:
        index = list(slots)
        return {
            "seen": self._seen[index],
            "states": {name: getattr(self._state, name)[index] for name in self._batched},
        }

    def restore(self, slots: Sequence[int], state: Mapping[str, Any]) -> None:
        index = list(slots)
        self._seen[index] = state["seen"]
        for name in self._batched:
            getattr(self._state, name)[index] = state["states"][name]


@contextmanager
def one_thread() -> Iterator[None]:
    """Limit PyTorch and the kernel to one thread. A batch of small networks gains nothing from more, and threads that
    OpenMP has woken spin for milliseconds on cores that the threads sharing the keys need."""
    before = torch.get_num_threads()
    if before == 1:
        yield
        return
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _is_batched(value: Any) -> bool:
    return isinstance(value, Tensor) and value.dim() > 1


def rounds(slots: Slots) -> list[Slots]:
    """Group the indices of rows so that no slot occurs twice in a group; rows of a slot keep their order.

    >>> [group.tolist() for group in rounds(np.array([0, 1, 0, 2, 0]))]
    [[0, 1, 3], [2], [4]]
    """
    each = slots.tolist()
    if len(set(each)) == len(each):
        return [np.arange(len(each))]
    groups: list[list[int]] = []
    seen: dict[int, int] = {}
    for row, slot in enumerate(each):
        turn = seen.get(slot, 0)
        seen[slot] = turn + 1
        if turn == len(groups):
            groups.append([])
        groups[turn].append(row)
    return [np.array(group) for group in groups]


def _parts(rows: int) -> list[slice]:
    """Split into batches of only a few different sizes, because a network keeps memory for each batch size.

    >>> [part.stop - part.start for part in _parts(1000)]
    [960, 32, 8]
    """
    parts, at = [], 0
    while at < rows:
        left = rows - at
        size = left // 64 * 64 if left >= 64 else 1 << (left.bit_length() - 1)
        parts.append(slice(at, at + size))
        at += size
    return parts
