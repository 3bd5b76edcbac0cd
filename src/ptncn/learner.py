"""The learner protocol: predict the next observation from everything seen so far, then observe it.

The P-TNCN and every baseline implement it, so experiments, streams and checks are written once::

    state = learner.begin(batch_size)           # fresh state for new sequences
    for x in frames:
        out = learner.step(x, state)            # out.prediction was made before x was seen
    learner.end(state)                          # the sequences ended
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from itertools import chain
from typing import Any, Protocol, Self, TypeGuard, runtime_checkable

import torch
from torch import Tensor

LARGEST = 1e15
"""The largest value allowed in an observation: squares of larger ones overflow in single precision."""

LARGEST_SIZE = 2**53
"""The largest accepted number of units or rows; far smaller numbers already exceed the memory of any machine."""


@dataclass(slots=True)
class Step:
    """What a learner returns for one observation of a batch."""

    prediction: Tensor
    """(B, n) the prediction of the observation, made before it was seen."""
    logits: Tensor
    """(B, n) the prediction before the output nonlinearity."""
    errors: tuple[Tensor, ...]
    """Error units of each layer, starting with prediction − observation; masked rows are zero."""
    scored: Tensor
    """(B,) True where the prediction is scored: an observed row with an earlier observation."""


@dataclass(kw_only=True)
class State:
    """Base of all learner states: dataclasses of tensors, numbers and containers of them.

    A row is scored and learnt from after its first observation, before which nothing is known.
    """

    batch_size: int
    steps: int = 0
    """Steps taken so far."""
    seen: Tensor | None = None
    """(B,) rows with at least one observation; None until a mask is given, since `steps` is enough until then."""

    def clone(self) -> Self:
        """An independent copy: stepping one leaves the other untouched."""
        return deepcopy(self)

    def scored(self, mask: Tensor | None) -> tuple[bool, Tensor | None]:
        """Whether any row is scored at this step, and which (B,); None if the answer is the same for all rows."""
        if mask is None and self.seen is None:
            return self.steps > 0, None
        rows = self._seen_as(mask)
        if mask is not None:
            rows = rows & mask
        return bool(rows.any()), rows

    def advance(self, mask: Tensor | None) -> None:
        """Count one step in which the rows of `mask` were observed."""
        if mask is not None:
            self.seen = self._seen_as(mask) | mask
        elif self.seen is not None:
            self.seen = torch.ones_like(self.seen)
        self.steps += 1

    def _seen_as(self, mask: Tensor | None) -> Tensor:
        if self.seen is not None:
            return self.seen
        assert mask is not None
        return torch.full_like(mask, self.steps > 0)


@runtime_checkable
class Learner(Protocol):
    """What every learner implements: `begin`, `step`, `end`, `predict`, and the methods that checkpoints need.

    >>> from ptncn import make
    >>> learner = make("gru-tbptt", input_size=3, hidden_size=8, output="gaussian")
    >>> state = learner.begin(batch_size=2)
    >>> for x in torch.rand(5, 2, 3):
    ...     out = learner.step(x, state)
    >>> learner.end(state)
    >>> out.prediction.shape, learner.predict(state).shape
    (torch.Size([2, 3]), torch.Size([2, 3]))
    """

    registry_name: str
    """`ptncn.make(registry_name, …)` builds such a learner."""
    input_size: int
    """Numbers in an observation, n."""

    def begin(self, batch_size: int) -> Any:
        """Return the state for `batch_size` new sequences."""

    def step(self, x: Tensor, state: Any, *, learn: bool = True, mask: Tensor | None = None) -> Step:
        """Predict, observe `x` (B, n), advance `state` in place and, with `learn`, update the weights."""

    def end(self, state: Any) -> None:
        """End the sequences of `state`. Learners that unroll time update their weights here."""

    def predict(self, state: Any) -> Tensor:
        """(B, n) the expected next observation; changes nothing."""

    def options(self) -> dict[str, Any]:
        """Arguments of `make(registry_name, **options)`, as JSON values, for an equal, untrained learner."""

    def snapshot(self) -> dict[str, Any]:
        """Everything that learning changes: a tree of tensors, numbers, strings, lists and dicts."""

    def restore(self, tree: Mapping[str, Any]) -> None:
        """Restore the snapshot of a learner with the same options."""


def check_batch_size(batch_size: int) -> None:
    if not isinstance(batch_size, int) or isinstance(batch_size, bool) or not 1 <= batch_size <= LARGEST_SIZE:
        raise ValueError(f"batch_size: expected a positive integer, got {batch_size!r:.60}")


def make_generator(seed: int) -> torch.Generator:
    """
    >>> make_generator("7")
    Traceback (most recent call last):
    ValueError: seed: expected an integer of 64 bits, got '7'
    """
    if not isinstance(seed, int) or isinstance(seed, bool) or not -(2**63) <= seed < 2**64:
        raise ValueError(f"seed: expected an integer of 64 bits, got {seed!r:.60}")
    return torch.Generator().manual_seed(seed)


def check_mask(mask: Tensor | None, batch_size: int, device: torch.device) -> Tensor | None:
    """The mask as (B,) bool on `device`, or None where every row is observed."""
    if mask is None:
        return None
    mask = _dense("mask", mask, None, device)
    if mask.shape != (batch_size,):
        raise ValueError(f"mask: expected shape ({batch_size},), one entry per row, got {tuple(mask.shape)}")
    return mask.bool()


def check_observation(x: Tensor, batch_size: int, input_size: int, like: Tensor, mask: Tensor | None = None) -> Tensor:
    """The observation as (B, n) with the dtype and device of `like`; masked rows may hold anything and become 0.

    `mask` is one that `check_mask` returned.
    """
    if isinstance(x, Tensor) and x.is_complex():
        raise ValueError(f"observation: expected a dense tensor of real numbers, got {x.dtype} in {x.layout}")
    x = _dense("observation", x, like.dtype, like.device).resolve_neg()
    if x.shape != (batch_size, input_size):
        raise ValueError(f"observation: expected shape ({batch_size}, {input_size}), got {tuple(x.shape)}")
    if mask is not None:
        x = torch.where(mask[:, None], x, 0.0)
    if x.is_cpu and not _length(x) <= LARGEST:  # elsewhere this would wait for the device
        bad = (~(x.abs() <= LARGEST)).nonzero()
        if len(bad):
            row, column = bad[0].tolist()
            raise ValueError(
                f"observation: expected finite numbers of at most {LARGEST:g}, got {len(bad)} others; "
                f"at row {row}, column {column}: {x[row, column].item()}. "
                "Mask rows that were not observed, fill them in, or scale them"
            )
    return x


def _dense(name: str, value: Any, dtype: torch.dtype | None, device: torch.device) -> Tensor:
    if isinstance(value, Tensor) and (value.layout is not torch.strided or value.is_nested or value.is_quantized):
        kind = f"{value.dtype} in {value.layout}"
        raise ValueError(f"{name}: expected a dense tensor of real numbers, got {kind}")
    try:
        return torch.as_tensor(value, dtype=dtype, device=device)
    except (TypeError, ValueError, RuntimeError) as error:  # NotImplementedError is one
        reason = str(error).partition("\n")[0]
        raise ValueError(f"{name}: expected numbers, got a {type(value).__name__}: {reason}") from error


def _length(x: Tensor) -> float:
    """The norm of (B, n); for a few numbers Python is faster than a call into PyTorch."""
    if x.numel() <= 32:
        return math.hypot(*chain.from_iterable(x.tolist()))
    return float(torch.linalg.vector_norm(x))


class StepSized(Learner, Protocol):
    """A learner whose step size can be set while it learns; see `has_step_size`."""

    lr: float


def has_step_size(learner: Learner) -> TypeGuard[StepSized]:
    """Whether a learner has a step size among its options.

    >>> from ptncn.learners import make
    >>> [has_step_size(make(name, input_size=2, hidden_size=3)) for name in ("rnn-bptt", "esn-ridge")]
    [True, False]
    """
    return learner.options().get("lr") is not None


@runtime_checkable
class Dreamer(Learner, Protocol):
    """A learner that can continue a sequence from its own predictions."""

    def dream(self, state: Any, steps: int) -> Tensor:
        """(steps, B, n) the predicted continuation."""


@runtime_checkable
class Surprising(Protocol):
    """A step that reports how unexpected the observation was."""

    @property
    def surprise(self) -> tuple[Tensor, ...]:
        """(B,) for each layer."""
