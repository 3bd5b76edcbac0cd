"""The Parallel Temporal Neural Coding Network as a PyTorch module."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from ptncn.distributions import DISTRIBUTIONS
from ptncn.learner import check_batch_size, check_mask, check_observation, make_generator
from ptncn.network import equations, memory
from ptncn.network.backend import Kernel, bind_kernel
from ptncn.network.config import check_dtype, check_memory, check_sizes, make_config
from ptncn.network.layers import Layer, choose_activations, initial_weights
from ptncn.network.parameters import LayeredModule
from ptncn.network.readout import SecondOrder
from ptncn.network.state import MeanObservation, PTNCNState, PTNCNStep, UsualFeedback
from ptncn.network.torch_step import TorchStep
from ptncn.updates.apply import shapes_of


class PTNCN(LayeredModule):
    """Predicts the next observation of a sequence, corrects its states by the prediction error, and learns online.

    Arguments:
        input_size: numbers in an observation, n₀.
        hidden_sizes: units of each layer, n₁ … n_L, starting next to the observation.
        output: distribution of the observations: "gaussian", "bernoulli" or "categorical" (one-hot).
        preset: default options: "paper", "authors" (the released code) or "best" (found by validation).
        seed: seed for the initial weights and stochastic activations.
        batch_first: whether `forward` takes (N, L, H) instead of (L, N, H).
        device: device of the weights.
        dtype: float32 or float64.
        overrides: any option of `ptncn.Config`.

    A compiled kernel takes the steps where it is available. With `network.compiled = False`, PyTorch takes them, with
    the same result up to rounding.

    Threads may share a network if each has its own state. Steps that learn, and copies, snapshots and checkpoints of
    the network, exclude all other calls; steps and predictions that only read run at the same time.

    >>> network = PTNCN(8, [16, 4], output="gaussian", lr=0.01)
    >>> state = network.begin(batch_size=2)
    >>> out = network.step(torch.ones(2, 8), state)
    >>> out.prediction.shape, [tuple(e.shape) for e in out.errors]
    (torch.Size([2, 8]), [(2, 8), (2, 16)])
    >>> network.dream(state, steps=5).shape
    torch.Size([5, 2, 8])
    """

    registry_name = "ptncn"

    def __init__(
        self,
        input_size: int,
        hidden_sizes: Sequence[int],
        *,
        output: str = "bernoulli",
        preset: str = "paper",
        seed: int = 0,
        batch_first: bool = False,
        device: torch.device | str | None = None,
        dtype: torch.dtype | str | None = None,
        **overrides: Any,
    ) -> None:
        sizes = check_sizes(input_size, hidden_sizes)
        if type(batch_first) is not bool:
            raise ValueError(f"batch_first: expected True or False, got {batch_first!r}")
        distribution = DISTRIBUTIONS.find(output)
        config = make_config(preset, overrides, output)
        generator = make_generator(seed)
        memories = check_memory(config.memory, len(hidden_sizes))
        weights = initial_weights(sizes, config, seed, memories, one_hot=distribution.name == "categorical")
        phi, phi_o = choose_activations(config, len(hidden_sizes), distribution.mean, generator)
        super().__init__()
        self._set_up(sizes, config, weights, phi, phi_o)
        self.input_size, self.output = input_size, distribution
        self.preset, self.seed, self.batch_first = preset, seed, batch_first
        self.generator = generator
        self.compiled = True
        self._remembers = any(memories)
        solved = self.config.readout == "rls"
        if solved and self.output.name != "gaussian":
            raise ValueError(f"readout='rls': expected output='gaussian', got {self.output.name!r}")
        small, mean = self.config.teaching == "small", self.config.output_bias == "mean" and not solved
        self.feedback = UsualFeedback(len(self.sizes) - 1, self.config.displacement_decay) if small else None
        self.mean_observation = MeanObservation(input_size, self.output) if mean else None
        features = self.sizes[1] + self.config.biases
        self.readout = SecondOrder(features, input_size, self.config.horizons, self.config) if solved else None
        self.to(device=device, dtype=check_dtype(dtype))

    def extra_repr(self) -> str:
        return f"{' → '.join(map(str, self.sizes))}, output={self.output.name!r}, preset={self.preset!r}"

    def begin(self, batch_size: int) -> PTNCNState:
        """Return the state for `batch_size` new sequences: x₀ = 0 and y = 0."""
        check_batch_size(batch_size)
        zeros = self.layers[0].W.weight.new_zeros
        everything, hidden = sum(self.sizes), sum(self.sizes[1:])
        return PTNCNState(
            batch_size=batch_size,
            sizes=self.sizes,
            corrected=zeros(batch_size, everything),
            displacement=zeros(batch_size, hidden) if self.config.error_rule == "temporal" else None,
            uncorrected=zeros(batch_size, everything) if self.config.presynaptic == "z" else None,
            held={
                name: part
                for layer in self.layers
                if layer.memory is not None
                for name, part in memory.begin(layer.memory, batch_size).items()
            },
            waiting={} if self.readout is None else self.readout.begin(batch_size),
        )

    @torch.no_grad()
    def step(self, x: Tensor, state: PTNCNState, *, learn: bool = True, mask: Tensor | None = None) -> PTNCNStep:
        """Predict, observe `x` (B, n₀), correct the states and, with `learn`, update the weights.

        A row is scored, and learnt from, from its second observation on. Rows where `mask` (B,) is False are not
        observed: they are not scored, contribute nothing to learning and keep their state, whatever `x` holds.
        """
        self._check_state(state)
        mask = check_mask(mask, state.batch_size, state.corrected.device)
        x = check_observation(x, state.batch_size, self.input_size, state.corrected, mask)
        anything, rows = state.scored(mask)
        if self.config.first_frame:
            anything, rows = mask is None or bool(mask.any()), mask
        teach = learn and anything
        mean = self.mean_observation if learn else None
        layers, kernel = self._backend()
        with self._gate.writing if teach or mean is not None else self._gate.reading:
            if kernel is not None and kernel.takes(state):
                prediction, logits, e, z, y = kernel(x, state, learn=teach, mask=mask, teaches=rows)
            else:
                prediction, logits, e, z, y = self._in_pytorch(layers)(x, state, learn=teach, mask=mask, teaches=rows)
            if mean is not None and not mean.known:
                self.get_parameter("c1").add_(mean.observe(x, mask))
        state.advance(mask)
        return PTNCNStep(
            prediction=prediction,
            logits=logits,
            errors=tuple(e),
            scored=torch.full((state.batch_size,), anything, device=x.device) if rows is None else rows,
            states=tuple(z),
            corrected=tuple(y),
            observation=x,
            config=self.config,
            output=self.output,
        )

    def end(self, state: PTNCNState) -> None:
        """End the sequences. Nothing is left to learn: each step was learnt when it was taken."""
        self._check_state(state)

    @torch.no_grad()
    def predict(self, state: PTNCNState) -> Tensor:
        """Return the prediction (B, n₀) of the next observation, without side effects."""
        self._check_state(state)
        layers, kernel = self._backend()
        with self._gate.reading:
            if kernel is not None and kernel.takes(state):
                return kernel.predict(state)
            with self._preserve_rng_state():
                return equations.predict(state.corrected, state.held, layers, self.output).z_o[0]

    @torch.no_grad()
    def forecast(self, state: PTNCNState) -> Tensor:
        """Return a forecast (horizons, B, n₀) for each of `Config.horizons`, without side effects."""
        if self.readout is None:
            return self.predict(state)[None]
        self._check_state(state)
        layers = self.layers
        with self._gate.reading, self._preserve_rng_state():
            guess = equations.predict(state.corrected, state.held, layers, self.output)
            return self.readout.forecast(guess.z[0], guess.z_o[0])

    @torch.no_grad()
    def dream(self, state: PTNCNState, steps: int, *, sample: bool = False) -> Tensor:
        """Continue the sequences by `steps` predictions (steps, B, n₀), each fed back as the next observation.

        With `sample`, observations are drawn from the predicted distribution. Network and state stay unchanged.
        """
        self._check_state(state)
        if steps < 0:
            raise ValueError(f"steps: expected a number of at least 0, got {steps}")
        draw = self.output.sample
        if sample and draw is None:
            raise ValueError(f"sample=True: expected a bernoulli or categorical output, got {self.output.name}")
        state = state.clone()
        frames = state.corrected.new_empty(steps, state.batch_size, self.input_size)
        with self._preserve_rng_state():
            for frame in frames:
                expected = self.predict(state)
                frame.copy_(draw(expected, self.generator) if sample and draw else expected)
                self.step(frame, state, learn=False)
        return frames

    def forward(
        self,
        sequence: Tensor,
        state: PTNCNState | None = None,
        *,
        learn: bool = False,
        mask: Tensor | None = None,
    ) -> tuple[Tensor, PTNCNState]:
        """Return predictions for a sequence (L, N, H), (N, L, H) with `batch_first`, or (L, H), and the final state.

        Entry t is predicted before entry t of the sequence is seen. `mask` is (L, N), (N, L) or (L,).
        """
        if sequence.dim() not in (2, 3):
            raise ValueError(f"sequence: expected shape (L, N, H) or (L, H), got {tuple(sequence.shape)}")
        if mask is not None and mask.shape != sequence.shape[:-1]:
            raise ValueError(f"mask: expected shape {tuple(sequence.shape[:-1])}, got {tuple(mask.shape)}")
        if sequence.dim() == 2:
            predictions, state = self._forward(sequence[:, None], state, learn, None if mask is None else mask[:, None])
            return predictions[:, 0], state
        if self.batch_first:
            sequence, mask = sequence.transpose(0, 1), None if mask is None else mask.T
        predictions, state = self._forward(sequence, state, learn, mask)
        return predictions.transpose(0, 1) if self.batch_first else predictions, state

    def _forward(
        self, frames: Tensor, state: PTNCNState | None, learn: bool, masks: Tensor | None
    ) -> tuple[Tensor, PTNCNState]:
        """The same for (L, N, H)."""
        state = self.begin(frames.shape[1]) if state is None else state
        predictions = state.corrected.new_empty(frames.shape)
        for t, x in enumerate(frames):
            predictions[t] = self.step(x, state, learn=learn, mask=None if masks is None else masks[t]).prediction
        return predictions, state

    @property
    def lr(self) -> float:
        """The step size, before the schedule; it may be set at any time."""
        return self.learning.lr

    @lr.setter
    def lr(self, value: float) -> None:
        self.learning.lr = make_config(self.preset, {"lr": value}).lr

    # For checkpoints

    def options(self) -> dict[str, Any]:
        return {
            "input_size": self.input_size,
            "hidden_sizes": list(self.sizes[1:]),
            "output": self.output.name,
            "preset": self.preset,
            "seed": self.seed,
            "batch_first": self.batch_first,
            "dtype": str(self.layers[0].W.weight.dtype).removeprefix("torch."),
            **self.config.to_json(),
        }

    def snapshot(self) -> dict[str, Any]:
        with self._gate.writing:  # not in the middle of a step that another thread takes
            return {
                "weights": {name: weight.clone() for name, weight in super(LayeredModule, self).state_dict().items()},
                "postponed": {name: _cloned(part.queue()) for name, part in self._synapses().items()},
                "learning": self.learning.snapshot(),
                "generator": self.generator.get_state(),
                **{name: part.snapshot() for name, part in self._statistics().items()},
            }

    def restore(self, tree: Mapping[str, Any]) -> None:
        expected, got = shapes_of(super().state_dict()), shapes_of(tree["weights"])
        if expected != got:
            raise ValueError(f"snapshot: expected weights {expected}, got {got}")
        make_config(self.preset, {"lr": tree["learning"]["lr"]})  # refuses what no step size can be
        with self._gate.writing:
            self.learning.restore(tree["learning"])
            self.load_state_dict(tree["weights"])
            for name, queue in tree["postponed"].items():
                self._synapses()[name].restore_queue(*queue)
            self.generator.set_state(tree["generator"])
            for name, part in self._statistics().items():
                part.restore(tree[name])

    # Internals

    def _statistics(self) -> dict[str, UsualFeedback | MeanObservation | SecondOrder]:
        parts = {"feedback": self.feedback, "mean_observation": self.mean_observation, "readout": self.readout}
        return {name: part for name, part in parts.items() if part is not None}

    def _in_pytorch(self, layers: list[Layer]) -> TorchStep:
        return TorchStep(layers, self.learning, self.feedback, self.readout, self.output, self.config)

    @property
    def is_compiled(self) -> bool:
        """Whether the kernel takes the steps."""
        return self._backend()[1] is not None

    def _backend(self) -> tuple[list[Layer], Kernel | None]:
        """The layers, and the compiled step unless there is none or `compiled` is False."""
        layers = self.layers
        if not self.compiled:
            return layers, None
        bound = self._bound
        if bound and bound[0] is not None and not bound[0].is_current():
            self._bound = bound = []
        if not bound:
            with self._gate.writing:
                rules = layers, self.learning, self.feedback, self.output, self.config
                bound = self._bound or [bind_kernel(*rules, self._sharing)]
                self._bound = bound
        return layers, bound[0]

    @contextmanager
    def _preserve_rng_state(self) -> Iterator[None]:
        """Restore the random generator afterwards."""
        before = self.generator.get_state()
        try:
            yield
        finally:
            self.generator.set_state(before)

    def _check_state(self, state: PTNCNState) -> None:
        if not isinstance(state, PTNCNState):
            raise ValueError(f"state: expected what begin() of this network returns, got a {type(state).__name__}")
        if state.sizes != self.sizes:
            raise ValueError(f"state: expected layers of sizes {self.sizes}, got {state.sizes}")
        state.check()
        like = self.get_parameter("W1") if self._views is None else self._views[0].W.weight
        if state.corrected.dtype != like.dtype or state.corrected.device != like.device:
            raise ValueError(
                f"state: expected {like.dtype} on {like.device}, as the network, "
                f"got {state.corrected.dtype} on {state.corrected.device}"
            )
        if (state.displacement is None) != (self.config.error_rule != "temporal") or (state.uncorrected is None) != (
            self.config.presynaptic != "z"
        ):
            raise ValueError("state: expected one of a network with the same error_rule and presynaptic")
        if state.waiting or self.readout is not None:
            later = {} if self.readout is None else self.readout.waiting(state.batch_size)
            if {name: tuple(part.shape) for name, part in state.waiting.items()} != later:
                raise ValueError("state: expected one of a network with the same horizons")
        if not state.held and not self._remembers:
            return
        memories = [layer.memory for layer in self.layers if layer.memory is not None]
        expected = {name: shape for each in memories for name, shape in each.held().items()}
        got = {name: tuple(part.shape[1:]) for name, part in state.held.items()}
        if got != expected:
            raise ValueError(f"state: expected memories with rows of shapes {expected}, got {got}")


def _cloned(pair: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
    return pair[0].clone(), pair[1].clone()
