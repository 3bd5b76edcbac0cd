"""A step by the compiled kernel: the same numbers as `equations`, without the interpreter.

With a few dozen units the time of a step in PyTorch is that of its hundred calls; with thousands of them and one row,
that of products which do not read memory as fast as it can be read; with some dozens of rows, that of products which
BLAS is slow at, being made for matrices that are large both ways. The kernel is one call, and its products are made for
many weights and few rows.
"""

from __future__ import annotations

import ctypes
from typing import Any

import torch
from torch import Tensor

from ptncn import kernels
from ptncn.distributions import Distribution
from ptncn.kernels import Matrix, Rule, pointer, real, whole
from ptncn.network.activations import ACTIVATIONS, Activation
from ptncn.network.config import Config
from ptncn.network.layers import Layer
from ptncn.updates import LocalLearning, Synapses

SMALL = 1 << 18
"""Weights of a network that stays in the processor's caches, so that norms are looked at after each step."""

PHASES = ("products", "activations", "norms", "updates")
"""What a kernel's clock tells apart."""

_ACTIVATIONS = ("identity", "tanh", "sigmoid", "relu", "relu6", "leaky_relu", "gelu", "sign", "step")


class _Network(ctypes.Structure):
    _fields_ = [
        *((name, whole) for name in ("layers", "rows", "corrections")),
        *((name, pointer) for name in ("sizes", "phi", "phi_o", "R", "W", "E", "b", "c")),
        *((name, whole) for name in ("presynaptic_z", "teach_with_displacement", "error_rule", "rescale")),
        *((name, real) for name in ("beta", "gamma", "lam", "temporal_sign", "row_weight", "radius", "share")),
        ("max_norm", real),
        ("threads", whole),
        *((name, pointer) for name in ("scratch", "parts", "grams", "clock")),
    ]


class _Step(ctypes.Structure):
    _fields_ = [
        *((name, pointer) for name in ("x", "corrected", "uncorrected", "displacement")),
        *((name, pointer) for name in ("logits", "prediction", "e", "z", "y")),
        ("learn", whole),
        *((name, Rule) for name in ("rule", "rule_error", "rule_bias")),
    ]


class CompiledStep:
    """The kernel bound to the weights and moments of one network and to a number of rows."""

    def __init__(
        self, layers: list[Layer], learning: LocalLearning, output: Distribution, config: Config, rows: int
    ) -> None:
        weight = layers[0].W.weight
        self._function = kernels.function("step", weight.dtype)
        self.weights = {name: part for layer in layers for name, part in layer.synapses().items()}
        self.small = sum(part.weight.numel() for part in self.weights.values()) <= SMALL
        self.sizes = [layers[0].W.weight.shape[1], *(layer.W.weight.shape[0] for layer in layers)]
        self.rows = rows
        self.learning = learning
        parts = (self.sizes[0], self.sizes[0], *self.sizes[:-1], *self.sizes[1:] * 2)
        self._told = [rows * size for size in (*parts, sum(parts))]
        total, widest = sum(self.sizes), max(self.sizes)
        threads = torch.get_num_threads()
        self._scratch = weight.new_empty(rows * (2 * total + widest))
        self._parts = weight.new_empty(kernels.room(rows, threads * widest))
        self._grams = weight.new_empty((5 * len(layers) + 2) * rows**2 if config.rescale != "none" else 0)
        self._postponed = {
            name: part
            for name, part in self.weights.items()
            if config.optimizer == "sgd"  # only descent without moments is a sum of outer products
            and part.postpones(rows, keep=1 - config.weight_decay)
            and (config.error_rule != "fixed" or name[0] != "E")
        }
        self._entries: dict[str, Matrix] = {}
        self._kept: list[Any] = []  # what the structures point to
        self._step = _Step()
        scope = config.beta if config.beta_scope == "all" else 1.0
        self._network = _Network(
            layers=len(layers),
            rows=rows,
            corrections=config.corrections,
            sizes=self._wholes(self.sizes),
            phi=self._wholes([_code(layer.phi) for layer in layers]),
            phi_o=self._wholes([output.kernel_code or 0, *(_code(layer.phi_o) for layer in layers[1:])]),
            **{name: self._matrices(name, layers) for name in "RWEbc"},
            presynaptic_z=config.presynaptic == "z",
            teach_with_displacement=config.prediction_error == "e_z",
            error_rule={"fixed": 0, "temporal": 1, "transpose": 2}[config.error_rule],
            rescale={"none": 0, "unit": 1, "clip": 2}[config.rescale],
            beta=config.beta,
            gamma=scope * config.gamma,
            lam=scope * config.lam * (1 if config.sparsity_sign == "derived" else -1),
            temporal_sign=config.temporal_sign,
            row_weight=1.0 / rows if config.reduction == "mean" else 1.0,
            radius=config.radius,
            share=1.0 / rows if config.reduction == "sum_then_mean" else 1.0,
            max_norm=config.max_norm or 0.0 if self.small else 0.0,
            threads=threads,
            scratch=self._scratch.data_ptr(),
            parts=self._parts.data_ptr(),
            grams=self._grams.data_ptr(),
        )
        self._arguments = ctypes.byref(self._network), ctypes.byref(self._step)

    def __call__(
        self, x: Tensor, corrected: Tensor, uncorrected: Tensor | None, displacement: Tensor | None, *, learn: bool
    ) -> tuple[Tensor, Tensor, list[Tensor], list[Tensor], list[Tensor]]:
        """Prediction, logits, e⁰ … e^{L−1}, z¹ … zᴸ and y¹ … yᴸ, each (B, n). State and weights move on."""
        x = x.contiguous()
        told = torch.empty((1, self._told[-1]), dtype=x.dtype).split_with_sizes(self._told[:-1], 1)
        step, depth = self._step, len(self.sizes) - 1
        step.x, step.corrected = x.data_ptr(), corrected.data_ptr()
        step.uncorrected = None if uncorrected is None else uncorrected.data_ptr()
        step.displacement = None if displacement is None else displacement.data_ptr()
        step.prediction, step.logits, step.e = told[0].data_ptr(), told[1].data_ptr(), told[2].data_ptr()
        step.z, step.y = told[2 + depth].data_ptr(), told[2 + 2 * depth].data_ptr()
        step.learn = learn
        for name, part in self._postponed.items():
            self._entries[name].queued = part.queued
        if learn:
            step.rule, step.rule_error, step.rule_bias = self.learning.rules()
        self._function(*self._arguments)
        if learn:
            self.learning.note_update(self.weights, self._postponed, self.rows, projected=self.small)
        prediction, logits, *others = told if self.rows == 1 else [part.view(self.rows, -1) for part in told]
        return prediction, logits, others[:depth], others[depth : 2 * depth], others[2 * depth :]

    def predict(self, corrected: Tensor) -> Tensor:
        """(B, n₀) what comes next; nothing moves."""
        nothing = corrected.new_zeros(self.rows, self.sizes[0])
        return self(nothing, corrected.clone(), None, None, learn=False)[0]

    def watch(self) -> Tensor:
        """(4,) the seconds that go into each of `PHASES`, from now on; it is written to at every step."""
        clock = torch.zeros(len(PHASES), dtype=torch.float64)
        self._kept.append(clock)
        self._network.clock = clock.data_ptr()
        return clock

    def _wholes(self, values: list[int]) -> int:
        return self._address((whole * len(values))(*values))

    def _matrices(self, name: str, layers: list[Layer]) -> int:
        array = (Matrix * len(layers))()
        optimizer = self.learning.optimizer
        for layer, matrix in zip(layers, array, strict=True):
            part: Synapses | None = layer.synapses().get(f"{name}{layer.number}")
            if part is not None:
                self._entries[f"{name}{layer.number}"] = matrix
                matrix.weight = part.weight.data_ptr()
                if f"{name}{layer.number}" in self._postponed:
                    matrix.pre, matrix.post = (queue.data_ptr() for queue in part.room())
                if moments := optimizer.held(f"{name}{layer.number}"):
                    first, second = optimizer.places(*moments)
                    matrix.first = None if first is None else first.data_ptr()
                    matrix.second = None if second is None else second.data_ptr()
        return self._address(array)

    def _address(self, array: Any) -> int:
        self._kept.append(array)
        return ctypes.addressof(array)


def _code(phi: Activation) -> int:
    """The kernel's number for an activation; −1 for one that it does not have."""
    names = (code for code, name in enumerate(_ACTIVATIONS) if ACTIVATIONS[name] is phi)
    return next(names, -1)


def compiled_step(
    layers: list[Layer], learning: LocalLearning, output: Distribution, config: Config, rows: int
) -> CompiledStep | None:
    """The kernel for this network and batch, or None where the rules, the size or the machine ask for PyTorch."""
    weights = [part.weight for layer in layers for part in layer.synapses().values()]
    codes = [_code(phi) for phi in (*(layer.phi for layer in layers), *(layer.phi_o for layer in layers[1:]))]
    if (
        config.teaching != "coupled"
        or any(layer.memory is not None for layer in layers)
        or config.xi
        or -1 in codes
        or output.kernel_code is None
        or weights[0].device.type != "cpu"
        or kernels.load() is None
    ):
        return None
    return CompiledStep(layers, learning, output, config, rows)
