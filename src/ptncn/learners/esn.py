"""Echo state networks: a fixed random reservoir, and a linear readout that learns (the paper's section IV-C)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from scipy.sparse import csr_array
from scipy.sparse.linalg import eigs
from torch import Tensor, nn

from ptncn.distributions import DISTRIBUTIONS
from ptncn.learner import State, Step, check_batch_size, check_mask, check_observation
from ptncn.learners.base import (
    DTYPES,
    check_begun_by,
    check_choice,
    check_part,
    check_positive,
    check_share,
    check_size,
    check_weights,
    keep_masked,
    scored_rows,
)
from ptncn.learners.readouts import READOUTS, GradientReadout

DENSE_UP_TO = 200
"""Units up to which all eigenvalues are computed; above, ARPACK finds the largest ones many times faster."""


class Reservoir(nn.Module):
    """z ← (1 − α) z + α tanh(W_x [1; x] + W_r z), as in the paper and in ReservoirPy; α is `leak_rate`.

    W_x [1; x] is kept as `bias` (H,) and `input_weights` (n, H), W_r as `recurrent_weights` (H, H), so that rows
    of a batch are multiplied from the left. Inputs and bias are ± their scaling, the reservoir is normal and
    scaled to the spectral radius `sr`. Each unit is connected to a share of the units (`rc_connectivity`) and
    of the inputs (`input_connectivity`), at least one of each. W_r is stored dense: at a connectivity of 0.1 a sparse
    product saves less than a tenth of a step with many rows, and is slower with one.
    """

    recurrent_weights: Tensor
    input_weights: Tensor
    bias: Tensor

    def __init__(
        self,
        input_size: int,
        units: int,
        *,
        sr: float,
        rc_connectivity: float,
        input_scaling: float,
        input_connectivity: float,
        bias_scaling: float,
        leak_rate: float,
        generator: np.random.Generator,
        dtype: torch.dtype,
    ) -> None:
        super().__init__()
        self.leak_rate = leak_rate
        for name, shape in (("recurrent_weights", (units, units)), ("input_weights", (input_size, units))):
            self.register_buffer(name, torch.empty(shape, dtype=dtype))  # allocated first: checkpoints check sizes
        recurrent = generator.standard_normal((units, units))
        recurrent *= _connections((units, units), rc_connectivity, generator)
        recurrent *= sr / spectral_radius(recurrent)
        inputs = input_scaling * generator.choice([-1.0, 1.0], (input_size, units))
        inputs *= _connections((input_size, units), input_connectivity, generator)
        bias = bias_scaling * generator.choice([-1.0, 1.0], units)
        self.recurrent_weights.copy_(torch.as_tensor(recurrent))
        self.input_weights.copy_(torch.as_tensor(inputs))
        self.register_buffer("bias", torch.as_tensor(bias, dtype=dtype))

    def begin(self, batch_size: int) -> Tensor:
        """(B, H) zeros."""
        return self.bias.new_zeros(batch_size, len(self.bias))

    def forward(self, x: Tensor, z: Tensor) -> Tensor:
        """(B, H) the state after `x` (B, n)."""
        drive = torch.addmm(self.bias, x, self.input_weights)  # (B, H) = (H,) + (B, n) @ (n, H)
        drive.addmm_(z, self.recurrent_weights)  # (B, H) += (B, H) @ (H, H)
        return torch.lerp(z, drive.tanh_(), self.leak_rate)


def spectral_radius(matrix: np.ndarray) -> float:
    """The largest absolute eigenvalue of a square matrix.

    >>> round(spectral_radius(np.array([[0.0, 2.0], [-2.0, 0.0]])), 6)
    2.0
    """
    if len(matrix) <= DENSE_UP_TO:
        return float(abs(np.linalg.eigvals(matrix)).max())
    start = np.random.default_rng(0).standard_normal(len(matrix))  # ARPACK would draw a random one
    # With one eigenvalue and its small default subspace, ARPACK may converge to the second largest.
    largest = eigs(csr_array(matrix), k=6, ncv=120, v0=start, return_eigenvectors=False)
    return float(abs(largest).max())


def _connections(shape: tuple[int, int], share: float, generator: np.random.Generator) -> np.ndarray:
    """The sources (rows) that each unit (column) is connected to, the same number for all.

    At least one: a reservoir without a cycle has a spectral radius of 0.
    """
    connected = max(1, round(share * shape[0]))
    rank = generator.random(shape)
    among_first: np.ndarray = rank <= np.partition(rank, connected - 1, axis=0)[connected - 1]
    return among_first


READOUT_OPTIONS = {
    "ridge": ("ridge", "floor", "solve_every"),
    "rls": ("ridge", "floor", "forgetting"),
    "sgd": ("optimizer", "lr", "clip"),
}


@dataclass(kw_only=True)
class ESNState(State):
    """The state of a batch of sequences."""

    learner: str = field(metadata={"stored_as": "kind"})
    """The registry name of the learner that began it."""
    z: Tensor
    """(B, H) the reservoir."""
    observed: Tensor
    """(B,) number of frames so far, for the washout."""
    last: Tensor | None = None
    """(B, n) the last observation, with `input_to_readout`."""
    taught: bool = False
    """Whether `end` has something to learn."""


class ESN(nn.Module):
    """Predicts x_t by a linear readout of the reservoir after x_{t−1}.

    >>> learner = ESN(3, 50, readout="rls", output="gaussian")
    >>> state = learner.begin(batch_size=2)
    >>> learner.step(torch.rand(2, 3), state).prediction.shape
    torch.Size([2, 3])
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        *,
        readout: str = "ridge",
        output: str = "bernoulli",
        seed: int = 0,
        sr: float = 0.9,
        leak_rate: float = 1.0,
        rc_connectivity: float = 0.1,
        input_scaling: float = 1.0,
        input_connectivity: float = 1.0,
        bias_scaling: float = 0.1,
        input_to_readout: bool = False,
        readout_bias: bool = True,
        washout: int = 0,
        dtype: str = "float32",
        ridge: float | None = None,
        floor: float | None = None,
        solve_every: int | None = None,
        forgetting: float | None = None,
        optimizer: str | None = None,
        lr: float | None = None,
        clip: float | None = None,
    ) -> None:
        """
        Arguments:
            readout: "ridge" regression, recursive least squares "rls", or "sgd".
            output: distribution of the observations, a name in `DISTRIBUTIONS`.
            sr: spectral radius of the reservoir.
            leak_rate: share of a unit that is new at each step, 1 for no leak.
            rc_connectivity: share of the reservoir that a unit is connected to.
            input_scaling: size of the input weights.
            input_connectivity: share of the inputs that a unit is connected to.
            bias_scaling: size of the reservoir's biases; 0 for none.
            input_to_readout: add the last observation to the features of the readout.
            readout_bias: give the readout a constant feature.
            washout: frames of each sequence that only drive the reservoir; they are scored, but not learnt from.
            dtype: "float32" or "float64".
            ridge: penalty on the squared weights, including that of the constant (ridge, rls; 0.01).
            floor: smallest probability, relative to that under zero logits (ridge, rls; 0.02).
            solve_every: learning steps between two solutions; by default it solves at the end only (ridge).
            forgetting: factor on the weight of past frames at each step (rls; 1).
            optimizer: a name in `GRADIENT_OPTIMIZERS` (sgd; "rmsprop").
            lr: its step size (sgd; 0.001).
            clip: largest norm of the gradient (sgd; no limit).
        """
        super().__init__()
        check_size("input_size", input_size)
        check_size("hidden_size", hidden_size)
        check_choice("readout", readout, READOUTS)
        check_choice("dtype", dtype, DTYPES)
        check_positive("sr", sr)
        check_positive("input_scaling", input_scaling)
        for name, share in (
            ("leak_rate", leak_rate),
            ("rc_connectivity", rc_connectivity),
            ("input_connectivity", input_connectivity),
        ):
            check_share(name, share)
        if bias_scaling < 0:
            raise ValueError(f"bias_scaling: expected at least 0, got {bias_scaling!r}")
        if not isinstance(washout, int) or washout < 0:
            raise ValueError(f"washout: expected a number of frames, got {washout!r}")
        self.registry_name = f"esn-{readout}"
        settings = {
            "ridge": ridge,
            "floor": floor,
            "solve_every": solve_every,
            "forgetting": forgetting,
            "optimizer": optimizer,
            "lr": lr,
            "clip": clip,
        }
        settings = {name: value for name, value in settings.items() if value is not None}
        for name in settings:
            if name not in READOUT_OPTIONS[readout]:
                known = ", ".join(READOUT_OPTIONS[readout])
                raise ValueError(f"{self.registry_name!r} has no option {name!r}; its readout has: {known}")
        self.input_size, self.hidden_size, self.washout = input_size, hidden_size, washout
        self.input_to_readout, self.readout_bias = input_to_readout, readout_bias
        self.output = DISTRIBUTIONS.find(output)
        reservoir = {
            "sr": sr,
            "leak_rate": leak_rate,
            "rc_connectivity": rc_connectivity,
            "input_scaling": input_scaling,
            "input_connectivity": input_connectivity,
            "bias_scaling": bias_scaling,
        }
        self.reservoir = Reservoir(
            input_size, hidden_size, **reservoir, generator=np.random.default_rng(seed), dtype=DTYPES[dtype]
        )
        features = hidden_size + readout_bias + input_size * input_to_readout
        self.readout = READOUTS[readout](features, input_size, self.output, DTYPES[dtype], **settings)
        self._options = {
            "input_size": input_size,
            "hidden_size": hidden_size,
            "output": output,
            "seed": seed,
            **reservoir,
            "input_to_readout": input_to_readout,
            "readout_bias": readout_bias,
            "washout": washout,
            "dtype": dtype,
            **settings,
        }

    @property
    def lr(self) -> float:
        """The current step size of the "sgd" readout; set it to follow a schedule."""
        return float(self._optimizer().param_groups[0]["lr"])

    @lr.setter
    def lr(self, value: float) -> None:
        check_positive("lr", value)
        for group in self._optimizer().param_groups:
            group["lr"] = value

    def begin(self, batch_size: int) -> ESNState:
        """A reservoir at zero for each of `batch_size` new sequences."""
        check_batch_size(batch_size)
        z = self.reservoir.begin(batch_size)
        return ESNState(
            batch_size=batch_size,
            learner=self.registry_name,
            z=z,
            observed=torch.zeros(batch_size, dtype=torch.int64, device=z.device),
            last=z.new_zeros(batch_size, self.input_size) if self.input_to_readout else None,
        )

    @torch.no_grad()
    def step(self, x: Tensor, state: ESNState, *, learn: bool = True, mask: Tensor | None = None) -> Step:
        """Predict, observe `x` (B, n), advance `state` in place and, with `learn`, learn."""
        self._check_state(state)
        mask = check_mask(mask, state.batch_size, state.z.device)
        x = check_observation(x, state.batch_size, self.input_size, state.z, mask)
        scored = scored_rows(state, mask, x)
        features = self._features(state)
        fitted = self.readout(features)
        logits = self.readout.link(fitted)
        prediction = self.output.mean(logits)
        error = prediction - x if mask is None else torch.where(mask[:, None], prediction - x, 0.0)
        rows = scored & (state.observed > self.washout)
        if learn and rows.any():
            self.readout.learn(features, fitted, x, rows)
            state.taught = True
        (state.z,) = keep_masked(mask, (self.reservoir(x, state.z),), (state.z,))
        if state.last is not None:
            (state.last,) = keep_masked(mask, (x.clone(),), (state.last,))  # the caller may reuse its buffer
        state.observed = state.observed + (1 if mask is None else mask)
        state.advance(mask)
        return Step(prediction=prediction, logits=logits, errors=(error,), scored=scored)

    @torch.no_grad()
    def end(self, state: ESNState) -> None:
        """Solve ridge regression for the weights, if anything was learnt from `state`."""
        self._check_state(state)
        if state.taught:
            self.readout.settle()
            state.taught = False

    @torch.no_grad()
    def predict(self, state: ESNState) -> Tensor:
        """(B, n) the expected next observation; changes nothing."""
        self._check_state(state)
        return self.output.mean(self.readout.link(self.readout(self._features(state))))

    def options(self) -> dict[str, Any]:
        """The arguments of `make(registry_name, **options)` that build an equal, untrained learner."""
        return dict(self._options)

    def snapshot(self) -> dict[str, Any]:
        """A copy of all weights and of the readout's statistics."""
        weights = {name: weight.clone() for name, weight in self.state_dict().items()}
        return {"weights": weights, "readout": self.readout.progress()}

    def restore(self, tree: Mapping[str, Any]) -> None:
        """Restore the snapshot of a learner with the same options."""
        check_weights(self.registry_name, self.state_dict(), tree["weights"])
        self.readout.load_progress(tree["readout"])
        self.load_state_dict(tree["weights"])

    def _optimizer(self) -> torch.optim.Optimizer:
        if not isinstance(self.readout, GradientReadout):
            raise AttributeError(f"{self.registry_name!r} has no step size: it solves for its weights")
        return self.readout.optimizer

    def _features(self, state: ESNState) -> Tensor:
        """(B, F) the features of the readout: the reservoir, then optionally the last observation and a constant."""
        parts = [state.z]
        if state.last is not None:
            parts.append(state.last)
        if self.readout_bias:
            parts.append(state.z.new_ones(state.batch_size, 1))
        return torch.cat(parts, dim=1)

    def _check_state(self, state: Any) -> None:
        """Raise ValueError for the state of another learner, or one of another size."""
        check_begun_by(self.registry_name, ESNState, state)
        check_part(state.z, (state.batch_size, self.hidden_size), self.reservoir.bias.dtype)
