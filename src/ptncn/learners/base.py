"""Base of all learners with a recurrent cell: cell, readout, optimiser, snapshots and the parts of a step.

Conventions of all of them: the prediction for x_t is the readout of the hidden state after x_{t−1}, which is
zero at the beginning. Scoring and learning start with the second observation of each row. A masked row is not
scored, teaches nothing and keeps its state. The loss of a step is the negative log-likelihood of the scored
rows, summed over features and rows and divided by the B rows of the batch.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Collection, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from ptncn.distributions import DISTRIBUTIONS
from ptncn.learner import LARGEST_SIZE, State, Step, check_batch_size, check_mask, check_observation, make_generator
from ptncn.learners.cells import Cell, Hidden, make_cell, make_readout
from ptncn.registry import Registry, unknown

GRADIENT_OPTIMIZERS: Registry[Callable[..., torch.optim.Optimizer]] = Registry(
    "optimizer",
    "ptncn.gradient_optimizers",
    {
        "rmsprop": torch.optim.RMSprop,
        "adam": torch.optim.Adam,
        "adagrad": torch.optim.Adagrad,
        "sgd": torch.optim.SGD,
        "momentum": lambda parameters, lr: torch.optim.SGD(parameters, lr=lr, momentum=0.9),
        "nesterov": lambda parameters, lr: torch.optim.SGD(parameters, lr=lr, momentum=0.9, nesterov=True),
    },
)
"""Optimisers of gradient-based learners: (parameters, lr) → an optimiser of `torch.optim` with its defaults."""
DTYPES = {"float32": torch.float32, "float64": torch.float64}


@dataclass(kw_only=True)
class RecurrentState(State):
    """The state of a batch of sequences; its tensors carry no autograd graph."""

    learner: str = field(metadata={"stored_as": "kind"})
    """The registry name of the learner that began it."""
    hidden: Hidden
    """(B, H) each, the visible one first."""


class RecurrentLearner(nn.Module):
    """Base of all learners with a recurrent cell and a linear readout.

    A subclass sets `rule`, which makes its registry name `<cell>-<rule>`, and implements `step`. It takes its own
    options before `**common` and adds them to `options()`.
    """

    rule: ClassVar[str]
    state_type: ClassVar[type[RecurrentState]] = RecurrentState
    reads_state: bool = True
    """Whether the logits are a linear map of the cell's visible state, which the gradient meter relies on."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        *,
        cell: str = "lstm",
        output: str = "bernoulli",
        seed: int = 0,
        optimizer: str = "rmsprop",
        lr: float = 1e-3,
        clip: float | None = 1.0,
        depth: int = 1,
        gate_bias: float | None = None,
        dtype: str = "float32",
    ) -> None:
        """
        Arguments:
            cell: a name in `CELLS`.
            output: distribution of the observations, a name in `DISTRIBUTIONS`.
            optimizer: a name in `GRADIENT_OPTIMIZERS`, with PyTorch's default settings.
            clip: largest norm of the whole gradient; None for no limit.
            depth: micro-steps of an RHN.
            gate_bias: see `make_cell`.
            dtype: "float32" or "float64".
        """
        super().__init__()
        check_size("input_size", input_size)
        check_size("hidden_size", hidden_size)
        check_size("depth", depth)
        check_positive("lr", lr)
        if clip is not None:
            check_positive("clip", clip)
        check_choice("optimizer", optimizer, GRADIENT_OPTIMIZERS)
        check_choice("dtype", dtype, DTYPES)
        self.registry_name = f"{cell}-{self.rule}"
        self.input_size, self.hidden_size, self.clip = input_size, hidden_size, clip
        self.output = DISTRIBUTIONS.find(output)
        self.generator = make_generator(seed)
        self.cell = self.build_cell(cell, depth=depth, gate_bias=gate_bias, dtype=DTYPES[dtype])
        self.readout = make_readout(self.readout_size(), input_size, self.generator, dtype=DTYPES[dtype])
        self.build()
        self.optimizer = GRADIENT_OPTIMIZERS.find(optimizer)(self.parameters(), lr=lr)
        self._options = {
            "input_size": input_size,
            "hidden_size": hidden_size,
            "output": output,
            "seed": seed,
            "optimizer": optimizer,
            "lr": lr,
            "clip": clip,
            "depth": depth,
            "gate_bias": gate_bias,
            "dtype": dtype,
        }

    def build_cell(self, name: str, *, depth: int, gate_bias: float | None, dtype: torch.dtype) -> Cell:
        """Make the cell from `self.generator`; override this for another kind of cell."""
        sizes = (self.input_size, self.hidden_size)
        return make_cell(name, *sizes, self.generator, depth=depth, gate_bias=gate_bias, dtype=dtype)

    def readout_size(self) -> int:
        """Number of inputs of the readout."""
        return self.hidden_size

    def build(self) -> None:
        """Make further parameters from `self.generator`, before the optimiser is created."""

    @property
    def lr(self) -> float:
        """The current step size; set it to follow a schedule."""
        return float(self.optimizer.param_groups[0]["lr"])

    @lr.setter
    def lr(self, value: float) -> None:
        check_positive("lr", value)
        for group in self.optimizer.param_groups:
            group["lr"] = value

    def begin(self, batch_size: int) -> Any:
        """Zero states for `batch_size` new sequences."""
        check_batch_size(batch_size)
        return self.begin_state(batch_size)

    def begin_state(self, batch_size: int) -> RecurrentState:
        """A fresh state; override this for a state with more than the hidden state."""
        return self.state_type(batch_size=batch_size, learner=self.registry_name, hidden=self.cell.begin(batch_size))

    def step(self, x: Tensor, state: Any, *, learn: bool = True, mask: Tensor | None = None) -> Step:
        """Predict, observe `x` (B, n), advance `state` in place and, with `learn`, learn."""
        raise NotImplementedError

    def end(self, state: Any) -> None:
        """Check the state: a rule that updates at each step has nothing left to learn."""
        self.check_state(state)

    @torch.no_grad()
    def predict(self, state: Any) -> Tensor:
        """(B, n) the expected next observation; changes nothing."""
        self.check_state(state)
        return self.output.mean(self.logits(state))

    def logits(self, state: Any) -> Tensor:
        """(B, n) the prediction before the output nonlinearity."""
        logits: Tensor = self.readout(state.hidden[0])
        return logits

    def check_state(self, state: Any) -> None:
        """Raise ValueError for the state of another learner, or one of another size."""
        check_begun_by(self.registry_name, self.state_type, state)
        for part in state.hidden:
            check_part(part, (state.batch_size, self.hidden_size), self.readout.weight.dtype)

    def check_step(self, x: Tensor, state: Any, mask: Tensor | None) -> tuple[Tensor, Tensor | None]:
        """Check the arguments of a step before anything changes; return x and mask in their final types."""
        self.check_state(state)
        like = self.readout.weight
        mask = check_mask(mask, state.batch_size, like.device)
        return check_observation(x, state.batch_size, self.input_size, like, mask), mask

    def outcome(self, logits: Tensor, x: Tensor, mask: Tensor | None, scored: Tensor) -> Step:
        """The `Step` for logits (B, n) and the observation x (B, n)."""
        prediction = self.output.mean(logits)
        error = prediction - x
        if mask is not None:
            error = torch.where(mask[:, None], error, 0.0)
        return Step(prediction=prediction, logits=logits, errors=(error,), scored=scored)

    def apply_gradient(self) -> None:
        """Clip the gradients, take a step of the optimiser, and clear them."""
        norm = nn.utils.clip_grad_norm_(self.parameters(), math.inf if self.clip is None else self.clip)
        if not torch.isfinite(norm):
            self.optimizer.zero_grad()
            raise diverged(norm, self.lr)
        self.optimizer.step()
        self.optimizer.zero_grad()

    def options(self) -> dict[str, Any]:
        """The arguments of `make(registry_name, **options)` that build an equal, untrained learner."""
        return dict(self._options)

    def snapshot(self) -> dict[str, Any]:
        """A copy of weights, optimiser and generator."""
        return {
            "weights": {name: weight.detach().clone() for name, weight in self.named_parameters()},
            "optimizer": deepcopy(self.optimizer.state_dict()),
            "generator": self.generator.get_state(),
        }

    def restore(self, tree: Mapping[str, Any]) -> None:
        """Restore the snapshot of a learner with the same options."""
        weights = tree["weights"]
        check_weights(self.registry_name, dict(self.named_parameters()), weights)
        self.load_state_dict(weights)
        restore_optimizer(self.optimizer, tree["optimizer"])
        self.generator.set_state(tree["generator"])


def scored_rows(state: State, mask: Tensor | None, like: Tensor) -> Tensor:
    """(B,) bool: which rows this step is scored on."""
    any_row, rows = state.scored(mask)
    return torch.full((state.batch_size,), any_row, device=like.device) if rows is None else rows


def keep_masked(mask: Tensor | None, new: Hidden, old: Hidden) -> Hidden:
    """`new` where a row was observed, `old` where it was masked."""
    if mask is None:
        return new
    return tuple(torch.where(mask[:, None], after, before) for after, before in zip(new, old, strict=True))


def diverged(norm: Tensor, lr: float) -> FloatingPointError:
    return FloatingPointError(
        f"the gradient's norm is {norm.item()}: learning has diverged. The weights were not changed; try an lr below "
        f"{lr:g}, or scale the observations"
    )


def check_weights(learner: str, weights: Mapping[str, Tensor], snapshot: Mapping[str, Tensor]) -> None:
    """Raise ValueError for a snapshot with other weights, or weights of other shapes."""
    expected, got = ({name: tuple(weight.shape) for name, weight in each.items()} for each in (weights, snapshot))
    if expected != got:
        raise ValueError(f"snapshot of {learner!r}: expected weights {expected}, got {got}")


def restore_optimizer(optimizer: torch.optim.Optimizer, tree: Mapping[str, Any]) -> None:
    """Restore step size and moments from the `state_dict` of an optimiser of the same kind; the rest are its options.

    Moments are compared with those that a step makes.
    """
    groups = []
    for own, saved in zip(optimizer.state_dict()["param_groups"], tree["param_groups"], strict=True):
        lr = saved["lr"]
        if type(lr) not in (int, float) or not 0 <= lr <= torch.finfo(torch.float32).max:
            raise ValueError(f"optimizer.lr: expected a finite number of at least 0, got {lr!r:.60}")
        groups.append({**own, "lr": lr})
    copied = deepcopy(optimizer)
    for group in copied.param_groups:
        for weight in group["params"]:
            weight.grad = torch.zeros_like(weight)
    copied.step()
    reference = copied.state_dict()["state"]
    for index, moments in tree["state"].items():
        expected = {name: _shape(value) for name, value in reference.get(index, {}).items()}
        got = {name: _shape(value) for name, value in moments.items()}
        if expected != got:
            raise ValueError(f"optimizer.state.{index}: expected {expected}, got {got}")
    optimizer.load_state_dict({"state": deepcopy(dict(tree["state"])), "param_groups": groups})


def _shape(value: Any) -> tuple[int, ...] | None:
    """The shape of a tensor or a number; None for anything else."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return ()
    return tuple(value.shape) if isinstance(value, Tensor) else None


def check_begun_by(learner: str, state_type: type, state: Any) -> None:
    """Raise ValueError for the state of another learner."""
    owner = getattr(state, "learner", type(state).__name__)
    if owner != learner or not isinstance(state, state_type):
        raise ValueError(f"state: expected one from begin() of {learner!r}, got one of {owner!r}")


def check_part(part: Tensor, shape: tuple[int, ...], dtype: torch.dtype) -> None:
    """Raise ValueError for a state of another size or type."""
    if part.shape != shape or part.dtype != dtype:
        raise ValueError(f"state: expected {shape} in {dtype}, got {tuple(part.shape)} in {part.dtype}")


def check_share(name: str, value: float) -> None:
    if not 0 < value <= 1:
        raise ValueError(f"{name}: expected a number above 0 and at most 1, got {value!r}")


def check_size(name: str, value: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= LARGEST_SIZE:
        raise ValueError(f"{name}: expected a positive integer, got {value!r:.60}")


def check_positive(name: str, value: float) -> None:
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value <= sys.float_info.max:
        raise ValueError(f"{name}: expected a positive number, got {value!r:.60}")


def check_choice(name: str, value: str, choices: Collection[str]) -> None:
    if value not in choices:
        raise ValueError(unknown(name, value, choices))
