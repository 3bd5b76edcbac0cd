"""What a learner costs: time a step, and bytes of state and of the learner itself."""

from __future__ import annotations

import dataclasses
import time
from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ptncn.learner import Learner, Step
from ptncn.metrics.base import Wrapper


class Cost(Wrapper):
    """A learner that measures itself: use it in place of the learner, and as a meter beside the others.

    Unrolling learners do their work in `end`. So both are reported: the step alone, median and interquartile
    range of the last `window` steps, and all time, that of `end` included, over the number of steps.
    Bytes of state are the most that were seen after a step: influence matrices, traces and stored frames lie
    there. Bytes of the learner are those of its snapshot: parameters and the moments of optimisers.

    >>> from ptncn.learners.esn import ESN
    >>> cost = Cost(ESN(input_size=2, hidden_size=3))
    >>> state = cost.begin(batch_size=1)
    >>> _ = cost.step(torch.zeros(1, 2), state)
    >>> sorted(cost.compute())
    ['learner_bytes', 'seconds_a_frame', 'state_bytes', 'step_iqr', 'step_median']
    """

    name = "cost"
    _recent: deque[float]
    _seconds: float
    _steps: int
    _state_bytes: int

    def __init__(self, learner: Learner, *, window: int = 1000) -> None:
        if window < 1:
            raise ValueError(f"window: expected at least 1 step, got {window!r}")
        super().__init__(learner)
        self.window = window
        self.reset()

    def step(self, x: Tensor, state: Any, *, learn: bool = True, mask: Tensor | None = None) -> Step:
        start = time.perf_counter()
        out = self.learner.step(x, state, learn=learn, mask=mask)
        _wait(out.prediction)
        elapsed = time.perf_counter() - start
        self._recent.append(elapsed)
        self._seconds += elapsed
        self._steps += 1
        self._state_bytes = max(self._state_bytes, bytes_of(state))
        return out

    def end(self, state: Any) -> None:
        start = time.perf_counter()
        self.learner.end(state)
        _wait(next(tensors_of(state), None))
        self._seconds += time.perf_counter() - start

    def compute(self) -> dict[str, Any]:
        """Seconds and bytes; NaN seconds before the first step."""
        low, middle, high = np.percentile(self._recent or [np.nan], [25, 50, 75])
        return {
            "step_median": float(middle),
            "step_iqr": float(high - low),
            "seconds_a_frame": self._seconds / self._steps if self._steps else float("nan"),
            "state_bytes": self._state_bytes,
            "learner_bytes": bytes_of(self.learner.snapshot()),
        }

    def reset(self) -> None:
        self._recent = deque(maxlen=self.window)
        self._seconds, self._steps, self._state_bytes = 0.0, 0, 0

    def tree(self) -> dict[str, Any]:
        return {
            "recent": list(self._recent),
            "seconds": self._seconds,
            "steps": self._steps,
            "state_bytes": self._state_bytes,
        }

    def load_tree(self, tree: Mapping[str, Any]) -> None:
        self._recent = deque(map(float, tree["recent"]), maxlen=self.window)
        self._seconds, self._steps = float(tree["seconds"]), int(tree["steps"])
        self._state_bytes = int(tree["state_bytes"])


def bytes_of(tree: Any) -> int:
    """The memory under all tensors of a state or snapshot; what several of them share counts once.

    >>> buffer = torch.zeros(10)
    >>> bytes_of({"buffer": buffer, "view": buffer[2:5], "other": [torch.zeros(1, dtype=torch.float64)]})
    48
    """
    total, reached = 0, 0
    spans = sorted(_span(tensor) for tensor in tensors_of(tree) if tensor.numel())
    for start, stop in spans:
        total += max(0, stop - max(start, reached))
        reached = max(reached, stop)
    return total


def tensors_of(tree: Any) -> Iterator[Tensor]:
    """Every tensor in a tree of dataclasses, mappings, lists and tuples."""
    if isinstance(tree, Tensor):
        yield tree
    elif dataclasses.is_dataclass(tree) and not isinstance(tree, type):
        for field in dataclasses.fields(tree):
            yield from tensors_of(getattr(tree, field.name))
    elif isinstance(tree, Mapping):
        for value in tree.values():
            yield from tensors_of(value)
    elif isinstance(tree, list | tuple):
        for value in tree:
            yield from tensors_of(value)


def _span(tensor: Tensor) -> tuple[int, int]:
    """The addresses from the first byte to behind the last one."""
    reach = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
    start = tensor.data_ptr()
    return start, start + (reach + 1) * tensor.element_size()


def _wait(tensor: Tensor | None) -> None:
    """Let its device finish, so that the clock sees the work and not only its launch."""
    if tensor is not None and tensor.is_cuda:
        torch.cuda.synchronize(tensor.device)
