"""Networks that follow many streams: one for each, or one for all that steps them as a batch."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ptncn.learner import Learner
from ptncn.streaming.columns import Vector

Slots = NDArray[np.int64]


class NetworkBank:
    """Shows rows to networks and gives their states.

    What is missing in a row is filled in with the network's own prediction.

    Arguments:
        make: makes a network from the number of its inputs.
        inputs: of the network.
        shared: one network for all slots; the rows of a batch teach it together.
    """

    def __init__(
        self, make: Callable[[int], Learner], inputs: int, *, learn: bool = True, shared: bool = False
    ) -> None:
        self._make, self._inputs, self.learn, self.shared = make, inputs, learn, shared
        self._learners: list[Learner] = [make(inputs)]
        state: Any = self._learners[0].begin(1)
        self._fields = [field.name for field in dataclasses.fields(state)]
        self._batched = [name for name in self._fields if _is_batched(getattr(state, name))]
        self._type = type(state)
        blank = torch.zeros(1, inputs)
        self.states = sum(part.shape[1] for part in self._corrected(self._learners[0], blank, state, learn=False))
        self._states: list[Any] = []
        self._seen, self._after = np.empty(0, dtype=bool), np.empty((0, self.states))

    def learner(self, slot: int) -> Learner:
        return self._learners[0 if self.shared else slot]

    def resize(self, slots: int) -> None:
        more = slots - len(self._seen)
        if self.shared:
            new = self._learners[0].begin(slots)
            if self._states:
                for name in self._batched:
                    getattr(new, name)[: len(self._seen)] = getattr(self._states[0], name)
            self._states = [new]
        else:
            self._learners += [None] * (slots - len(self._learners))  # type: ignore[list-item]
            self._states += [None] * more
        self._after = np.append(self._after, np.zeros((more, self.states)), axis=0)
        self._seen = np.append(self._seen, np.zeros(more, dtype=bool))

    def reset(self, slot: int) -> None:
        if self.shared:
            new = self._learners[0].begin(1)
            for name in self._batched:
                getattr(self._states[0], name)[slot] = getattr(new, name)[0]
        else:
            self._learners[slot] = self._make(self._inputs)
            self._states[slot] = self._learners[slot].begin(1)
        self._after[slot], self._seen[slot] = 0.0, False

    def step(self, slots: Slots, inputs: NDArray[np.float32]) -> Vector:
        """(B, states) after (B, inputs) were seen, NaN where nothing was observed."""
        missing = inputs != inputs
        some = missing.any()
        x = torch.from_numpy(inputs)
        if self.shared:
            for part in _parts(len(slots), len(self._seen)):
                self._step_batch(slots[part], x[part], missing[part] if some else None)
        else:
            for row, slot in enumerate(slots.tolist()):
                self._step_one(slot, x[row : row + 1], missing[row] if some else None)
        after: Vector = self._after[slots]
        return after

    def states_of(self, slot: int) -> Vector:
        """(states,) after the last row."""
        after: Vector = self._after[slot]
        return after

    def _step_one(self, slot: int, x: torch.Tensor, missing: NDArray[np.bool_] | None) -> None:
        learner, state = self._learners[slot], self._states[slot]
        learn = self.learn
        if missing is not None and missing.any():
            if missing.all() and not state.steps:
                return
            x = torch.where(torch.from_numpy(missing), learner.predict(state), x)
            learn = learn and not missing.all()
        self._after[slot] = np.concatenate([part.numpy()[0] for part in self._corrected(learner, x, state, learn)])

    def _step_batch(self, slots: Slots, x: torch.Tensor, missing: NDArray[np.bool_] | None) -> None:
        learner, whole = self._learners[0], self._states[0]
        index = torch.from_numpy(slots)
        fields = {name: getattr(whole, name) for name in self._fields}
        fields |= {name: fields[name][index] for name in self._batched}
        seen = self._seen[slots]
        if seen.all():
            fields |= {"batch_size": len(slots), "steps": 1, "seen": None}
        else:
            fields |= {"batch_size": len(slots), "steps": int(seen.any()), "seen": torch.from_numpy(seen)}
        state = self._type(**fields)
        if missing is not None and missing.any():
            x = torch.where(torch.from_numpy(missing), learner.predict(state), x)
        after = self._corrected(learner, x, state, self.learn)
        for name in self._batched:
            getattr(whole, name)[index] = getattr(state, name)
        self._after[slots] = torch.cat(list(after), 1).numpy()
        self._seen[slots] = True

    @staticmethod
    def _corrected(learner: Any, x: torch.Tensor, state: Any, learn: bool) -> tuple[torch.Tensor, ...]:
        corrected: tuple[torch.Tensor, ...] = learner.step(x, state, learn=learn).corrected
        return corrected

    def state(self, slots: Sequence[int]) -> dict[str, Any]:
        index = list(slots)
        tree: dict[str, Any] = {"after": self._after[index], "seen": self._seen[index]}
        if self.shared:
            tree["states"] = {name: getattr(self._states[0], name)[index] for name in self._batched}
        else:
            tree["learners"] = [self._learners[slot].snapshot() for slot in index]
            tree["states"] = [{name: getattr(self._states[slot], name) for name in self._fields} for slot in index]
        return tree

    def restore(self, slots: Sequence[int], state: Mapping[str, Any]) -> None:
        index = list(slots)
        self._after[index], self._seen[index] = state["after"], state["seen"]
        if self.shared:
            for name in self._batched:
                getattr(self._states[0], name)[index] = state["states"][name]
            return
        for slot, learnt, fields in zip(index, state["learners"], state["states"], strict=True):
            self._learners[slot] = self._make(self._inputs)
            self._learners[slot].restore(learnt)
            self._states[slot] = self._type(**fields)

    def shared_state(self) -> dict[str, Any]:
        return {"network": self._learners[0].snapshot() if self.shared else None}

    def restore_shared(self, state: Mapping[str, Any]) -> None:
        if state["network"] is not None:
            self._learners[0].restore(state["network"])


def _is_batched(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.dim() > 1


def _parts(rows: int, slots: int) -> list[slice]:
    """Batches of a few sizes, since a network keeps room for each size that it was stepped with.

    >>> _parts(11, 1000)
    [slice(0, 8, None), slice(8, 10, None), slice(10, 11, None)]
    """
    parts, at = [], 0
    while at < rows:
        size = 1 << ((rows - at).bit_length() - 1)
        parts.append(slice(at, at + size))
        at += size
    return parts
