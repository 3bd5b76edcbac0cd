"""The cost of a learner (time per step, bytes of state and weights), and the quality of its gradient."""

from __future__ import annotations

import dataclasses
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from ptncn.learner import Learner, Step, check_mask, check_observation
from ptncn.learners.base import RecurrentLearner, keep_masked, scored_rows
from ptncn.metrics.base import Wrapper


class Cost(Wrapper):
    """Measures the learner that it wraps: use it in place of the learner, and as a meter.

    Unrolling learners do their work in `end`, so two times are reported: that of a step (median and interquartile
    range of the last `window` steps), and the total including `end`, divided by the number of steps. Bytes of state are
    the maximum after a step, with influence matrices, traces and stored frames. Bytes of the learner are those of its
    snapshot: parameters and optimiser moments.

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
    """The memory of all tensors in a state or snapshot; shared memory counts once.

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
    """The address of the first byte, and the one after the last."""
    reach = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
    start = tensor.data_ptr()
    return start, start + (reach + 1) * tensor.element_size()


def _wait(tensor: Tensor | None) -> None:
    """Wait for the device, so that the work is timed and not only its launch."""
    if tensor is not None and tensor.is_cuda:
        torch.cuda.synchronize(tensor.device)


class _RecordedStep(NamedTuple):
    """One step of the sequences, for the exact gradient."""

    x: Tensor
    """(B, n)"""
    mask: Tensor | None
    """(B,) rows that were observed; None for all."""
    scored: Tensor
    """(B,) rows that were scored."""


class GradientMeter(Wrapper):
    """Measures the gradients of the learner that it wraps: use it in place of the learner, and as a meter.

    At each update, the gradient of the recurrent weights, before clipping, is compared with the exact one: that of the
    same loss (the mean over the steps since the last update) at the same weights, back to the start of the sequences,
    by autograd. The readout is left out, since every rule has its exact gradient. An online rule is measured at each
    step, TBPTT every `stride` steps.

    The exact gradient repeats the whole sequence at each update, so a sequence of T steps costs T²/2: use it on
    sequences of some hundred steps, one batch at a time.

    >>> from ptncn.learners.rtrl import UORO
    >>> meter = GradientMeter(UORO(2, 3, cell="rnn"))
    >>> state = meter.begin(batch_size=1)
    >>> for x in torch.eye(2).repeat(5, 1)[:, None]:
    ...     meter.update(meter.step(x, state), x)
    >>> meter.end(state)
    >>> sorted(meter.compute())
    ['cosine', 'norm_ratio', 'updates']
    """

    name = "gradient"

    def __init__(self, learner: Any) -> None:
        if not isinstance(learner, RecurrentLearner) or not learner.reads_state:
            raise TypeError(
                f"{getattr(learner, 'registry_name', type(learner).__name__)!r} cannot be measured: "
                "the exact gradient is known only for cells with a linear readout that learn by gradients, such as "
                "'lstm-uoro'; the P-TNCN follows local rules, an ESN does not train its recurrent weights, and "
                "attention and decoders are not covered"
            )
        super().__init__(learner)
        self.learner: RecurrentLearner = learner
        self._state: Any = None
        self._history: list[_RecordedStep] = []
        self._pending: list[int] = []
        self.reset()

    def begin(self, batch_size: int) -> Any:
        """A fresh state of the learner, which the meter follows from now on."""
        self._state, self._history, self._pending = self.learner.begin(batch_size), [], []
        return self._state

    def step(self, x: Tensor, state: Any, *, learn: bool = True, mask: Tensor | None = None) -> Step:
        if state is not self._state:
            raise ValueError("state: expected the last one from begin(); the meter follows one batch at a time")
        if self._pending and not learn:
            raise ValueError(
                f"a frozen step while {len(self._pending)} steps wait for the next update of {self.registry_name!r}: "
                "call end() first, or keep learning"
            )
        like = self.learner.readout.weight
        checked = check_mask(mask, state.batch_size, like.device)
        observed = check_observation(x, state.batch_size, self.input_size, like, checked).clone()
        recorded = _RecordedStep(observed, checked, scored_rows(state, checked, like))
        if learn and recorded.scored.any():
            self._pending.append(len(self._history))
        self._history.append(recorded)
        with self._measuring():
            return self.learner.step(x, state, learn=learn, mask=mask)

    def end(self, state: Any) -> None:
        with self._measuring():
            self.learner.end(state)
        self._state, self._history, self._pending = None, [], []

    def compute(self) -> dict[str, Any]:
        """Means over updates, NaN before the first; `cosines` and `norm_ratios` hold the values of every update."""
        missing = [float("nan")]
        return {
            "cosine": float(np.mean(self.cosines or missing)),
            "norm_ratio": float(np.mean(self.norm_ratios or missing)),
            "updates": len(self.cosines),
        }

    def reset(self) -> None:
        self.cosines: list[float] = []
        self.norm_ratios: list[float] = []

    def tree(self) -> dict[str, Any]:
        return {"cosines": list(self.cosines), "norm_ratios": list(self.norm_ratios)}

    def load_tree(self, tree: Mapping[str, Any]) -> None:
        self.cosines, self.norm_ratios = [*map(float, tree["cosines"])], [*map(float, tree["norm_ratios"])]

    @contextmanager
    def _measuring(self) -> Iterator[None]:
        """Measure gradients just before the learner applies them."""
        apply = self.learner.apply_gradient

        def measure_and_apply() -> None:
            self._measure()
            apply()

        self.learner.apply_gradient = measure_and_apply  # type: ignore[method-assign]
        try:
            yield
        finally:
            del self.learner.apply_gradient  # the method of the class again

    def _measure(self) -> None:
        weights = list(self.learner.cell.parameters())
        used = torch.cat([torch.zeros_like(w).flatten() if w.grad is None else w.grad.flatten() for w in weights])
        exact = torch.cat([gradient.flatten() for gradient in self._exact(weights)])
        self._pending = []
        used_norm, exact_norm = float(used.norm()), float(exact.norm())
        if exact_norm > 0:
            self.cosines.append(float(used @ exact) / (used_norm * exact_norm) if used_norm > 0 else 0.0)
            self.norm_ratios.append(used_norm / exact_norm)

    @torch.enable_grad()
    def _exact(self, weights: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """The gradient of the pending steps' mean loss by each recurrent weight."""
        learner, batch_size = self.learner, len(self._history[0].x)
        hidden = learner.cell.begin(batch_size)
        loss = torch.zeros_like(learner.readout.bias).sum()
        for t, (x, mask, scored) in enumerate(self._history[: self._pending[-1] + 1]):
            if t in self._pending:
                nll = learner.output.nll(learner.readout(hidden[0]), x)  # (B,)
                loss = loss + torch.where(scored, nll, 0.0).sum() / (batch_size * len(self._pending))
            hidden = keep_masked(mask, learner.cell(x, hidden), hidden)
        return torch.autograd.grad(loss, weights, materialize_grads=True)
