"""Choose the code that takes a step: the compiled kernel if it supports all options, PyTorch (`equations`) otherwise.

Both give the same numbers up to rounding. The kernel takes a step in one call. In PyTorch, a step with a few dozen
units spends most of its time on the overhead of about a hundred calls; with thousands of units and one row, on products
that do not reach the speed of memory; and with a few dozen rows, on products of a shape for which BLAS is slow.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor

from ptncn import kernels
from ptncn.distributions import Distribution
from ptncn.network.activations import ACTIVATIONS, Activation
from ptncn.network.config import Config
from ptncn.network.layers import Layer
from ptncn.network.memory import Memory
from ptncn.network.state import PTNCNState, UsualFeedback
from ptncn.updates import Group, LocalLearning

SMALL = 1 << 18
"""Networks with at most this many weights fit in the processor's caches; their norms are checked after each step."""

CLOCKS = ("products", "activations", "norms", "updates")
"""The parts of a step that the kernel times."""

# Codes of `kernels/step.h`
_PREDICT, _OBSERVE, _LEARN = range(3)
_ACTIVATIONS = ("identity", "tanh", "sigmoid", "relu", "relu6", "leaky_relu", "gelu", "sign", "step")
_ERROR_RULES = ("fixed", "temporal", "transpose")
_RESCALINGS = ("none", "unit", "clip")
_TEACHINGS = ("coupled", "small")
_REDUCTIONS = ("sum", "mean", "sum_then_mean")
_KINDS = ("R", "W", "E", "b", "c", "G", "B", "rate", "angle")

_address: Any = Tensor.data_ptr
_is_contiguous: Any = Tensor.is_contiguous

Outputs = tuple[Tensor, Tensor, list[Tensor], list[Tensor], list[Tensor]]


class Sharing(Protocol):
    """How processes divide the products of a step among them, for `kernels/step.h`."""

    def fields(self, dtype: torch.dtype) -> dict[str, int]:
        """Fields of `Step`: `split`, `part`, `parts`, `exchange` and `arrive`."""

    def raise_failure(self) -> None:
        """Raise the error of a failed exchange, if there was one."""

    @property
    def by_columns(self) -> bool:
        """Whether a process changes only some columns of the weights."""


@dataclass(frozen=True)
class _Plan:
    """The data that calls with the same number of rows share; each call copies `step`."""

    rows: int
    sizes: list[int]
    """Elements of prediction, logits, e⁰ …, z¹ … and y¹ …, which are stored one after the other."""
    total: int
    offsets: tuple[int, ...]
    """Bytes from the first of them to prediction, logits, e, z and y."""
    step: Any


class Kernel:
    """The kernel bound to the weights and moments of one network.

    After construction nothing changes except caches, which are replaced as a whole, so calls of several threads share
    neither arguments nor scratch memory.
    """

    def __init__(
        self,
        layers: list[Layer],
        learning: LocalLearning,
        feedback: UsualFeedback | None,
        output: Distribution,
        config: Config,
        sharing: Sharing | None = None,
    ) -> None:
        library = kernels.load()
        assert library is not None
        self._function = library.ptncn_step
        self._step_type = kernels.structure("Step")
        self.weights = {name: part for layer in layers for name, part in layer.synapses().items()}
        self.small = sum(part.weight.numel() for part in self.weights.values()) <= SMALL
        self.small = self.small and not (sharing is not None and sharing.by_columns)  # rows of weights are incomplete
        self.sharing = sharing
        self.dtype = layers[0].W.weight.dtype
        self.sizes = [layers[0].W.weight.shape[1], *(layer.W.weight.shape[0] for layer in layers)]
        self.learning = learning
        self.feedback = feedback
        self.clock: Tensor | None = None
        self._names = [f"{kind}{layer.number}" for layer in layers for kind in _KINDS]
        self._groups = [Group(), Group(lr_factor=config.error_lr_factor), Group(regularized=False)]
        self._memories = [layer.memory for layer in layers]
        self._queues = [name for name, part in self.weights.items() if learning.postpones(part, name)]
        self._moments = learning.optimizer._buffers
        self._places = self._places_of_moments()
        self._held: list[Any] = []  # keeps alive what the structures point to
        self._plan: _Plan | None = None
        self._network = self._describe(layers, output, config)

    def takes(self, state: PTNCNState) -> bool:
        """Whether the kernel can step or read this state; PyTorch can always."""
        return state.batch_size <= kernels.MOST_ROWS and state.is_contiguous()

    def is_current(self) -> bool:
        """Whether the optimiser's moments are still in the same place: `.data` may be rebound at any time."""
        return self._places == self._places_of_moments()

    def __call__(
        self, x: Tensor, state: PTNCNState, *, learn: bool, mask: Tensor | None = None, teaches: Tensor | None = None
    ) -> Outputs:
        """Take a step: return prediction, logits, e⁰ … e^{L−1}, z¹ … zᴸ and y¹ … yᴸ, each (B, n).

        State and, with `learn`, weights are updated in place. Rows outside `mask` (B,) are not observed, rows outside
        `teaches` (B,) are not learnt from.
        """
        rows, dtype, depth = state.batch_size, self.dtype, len(self.sizes) - 1
        plan, step, outputs = self._begin(rows, _LEARN if learn else _OBSERVE)
        x, corrected, uncorrected, displacement = x.contiguous(), state.corrected, state.uncorrected, state.displacement
        step.x, step.x_count = kernels.span(x, dtype)
        step.corrected, step.corrected_count = kernels.span(corrected, dtype)
        if uncorrected is not None:
            step.uncorrected, step.uncorrected_count = kernels.span(uncorrected, dtype)
        if displacement is not None:
            step.displacement, step.displacement_count = kernels.span(displacement, dtype)
        memories = self._add_memories(step, state.held)
        mask, teaches = _contiguous(mask), _contiguous(teaches)
        if mask is not None:
            step.observed, step.observed_count = kernels.span(mask, torch.bool)
        if teaches is not None:
            step.teaches, step.teaches_count = kernels.span(teaches, torch.bool)
        postponed = self._make_room(step, rows) if learn and self._queues else []
        held = self._add_queues(step)
        if (feedback := self.feedback) is not None:
            step.squares, step.squares_count = kernels.span(feedback.square, dtype)
            step.square_decay, step.square_weight = feedback.decay, feedback.weight(feedback.updates + learn)
        if learn:
            step.rule, step.rule_error, step.rule_bias = self.learning.rules(self._groups)
        self._call(step)
        del held, memories
        if learn:
            self.learning.note_update(self.weights, postponed, rows, projected=self.small)
            if feedback is not None:
                feedback.updates += 1
        parts = outputs.split_with_sizes(plan.sizes, 1)
        prediction, logits, *others = parts if rows == 1 else [part.view(rows, -1) for part in parts]
        return prediction, logits, others[:depth], others[depth : 2 * depth], others[2 * depth :]

    def predict(self, state: PTNCNState) -> Tensor:
        """(B, n₀) the prediction of the next observation, without side effects."""
        plan, step, outputs = self._begin(state.batch_size, _PREDICT)
        step.corrected, step.corrected_count = kernels.span(state.corrected, self.dtype)
        held = self._add_queues(step), self._add_memories(step, state.held)
        self._call(step)
        del held
        return outputs[:, : plan.sizes[0]].view(plan.rows, -1)

    def describe_elsewhere(self, state: PTNCNState, places: Mapping[int, int]) -> tuple[Any, Any, Any]:
        """The structures of the network and of a learning step of one row, with addresses replaced by `places`, and
        the memory that they point to, which the caller keeps alive."""
        kind, count = kernels.structure("Matrix"), self._network.matrices_count
        matrices = (kind * count).from_buffer_copy((kind * count).from_address(self._network.matrices))
        for matrix in matrices:
            for name in ("weight", "first", "second"):
                if (address := getattr(matrix, name)) is not None:
                    setattr(matrix, name, places[address])
        network = type(self._network).from_buffer_copy(self._network)
        network.matrices = ctypes.addressof(matrices)
        _, step, outputs = self._begin(1, _LEARN)
        step.threads = 1
        x = outputs.new_empty(self.sizes[0])
        step.x, step.x_count = kernels.span(x, self.dtype)
        for name in ("corrected", "uncorrected", "displacement"):
            if (part := getattr(state, name)) is not None:
                setattr(step, name, places[part.data_ptr()])
                setattr(step, f"{name}_count", part.numel())
        step.rule, step.rule_error, step.rule_bias = self.learning.rules(self._groups)
        return network, step, (matrices, outputs, x, self)

    def watch(self) -> Tensor:
        """(4,) seconds spent in each of `CLOCKS` from now on, updated at every step."""
        self.clock = torch.zeros(len(CLOCKS), dtype=torch.float64)
        return self.clock

    def _call(self, step: Any) -> None:
        code = self._function(ctypes.byref(self._network), ctypes.byref(step))
        if code and self.sharing is not None:
            self.sharing.raise_failure()
        kernels.check("step", code)

    def _begin(self, rows: int, phase: int) -> tuple[_Plan, Any, Tensor]:
        """The arguments of a call, and memory for its results."""
        plan = self._plan
        if plan is None or plan.rows != rows:
            plan = self._plan = self._make_plan(rows)
        outputs = torch.empty((1, plan.total), dtype=self.dtype)
        step, start = self._step_type.from_buffer_copy(plan.step), outputs.data_ptr()
        step.phase, step.threads = phase, kernels.threads()
        prediction, logits, e, z, y = plan.offsets
        step.prediction, step.logits, step.z = start + prediction, start + logits, start + z
        step.e, step.y = start + e, start + y
        if self.clock is not None:
            step.clock, step.clock_count = kernels.span(self.clock, torch.float64)
        return plan, step, outputs

    def _make_plan(self, rows: int) -> _Plan:
        below, own = self.sizes[:-1], self.sizes[1:]
        sizes = [rows * size for size in (self.sizes[0], self.sizes[0], *below, *own, *own)]
        counts = [sizes[0], sizes[1], rows * sum(below), rows * sum(own), rows * sum(own)]
        bytes_each = self._network.real_bytes
        offsets = tuple(bytes_each * sum(counts[:i]) for i in range(len(counts)))
        fields = ("prediction_count", "logits_count", "e_count", "z_count", "y_count")
        step = kernels.new("Step", rows=rows, **dict(zip(fields, counts, strict=True)))
        for name, value in (self.sharing.fields(self.dtype) if self.sharing is not None else {}).items():
            setattr(step, name, value)
        return _Plan(rows, sizes, sum(sizes), offsets, step)

    def _make_room(self, step: Any, rows: int) -> list[str]:
        """The names of the queues that a learning step extends; all other queues are applied."""
        later = self.weights[self._queues[0]].postpones(rows)
        for name in self._queues:
            part = self.weights[name]
            if later:
                part.make_room(rows)
            else:
                part.write()
        step.postpone = later
        return self._queues if later else []

    def _add_queues(self, step: Any) -> Any:
        """Pass the number of rows in each queue."""
        if not self._queues:
            return None
        counts = [self.weights[name].queued if name in self.weights else 0 for name in self._names]
        held, step.queued, step.queued_count = kernels.array(ctypes.c_int64, counts)
        return held

    def _add_memories(self, step: Any, held: Mapping[str, Tensor]) -> Any:
        """Pass the memories."""
        if not held:
            return None
        kind = kernels.structure("Held")
        parts = [kind() if own is None else kind(**self._held_by(own, held)) for own in self._memories]
        array, step.held, step.held_count = kernels.array(kind, parts)
        return array

    def _held_by(self, memory: Memory, held: Mapping[str, Tensor]) -> dict[str, int]:
        h, T_B, T_a, T_angle = memory.names()
        return kernels.spans(self.dtype, h=held[h], trace=held.get(T_B), rate=held[T_a], angle=held[T_angle])

    def _describe(self, layers: list[Layer], output: Distribution, config: Config) -> Any:
        scope = config.beta if config.beta_scope == "all" else 1.0
        phi = [_code(layer.phi) for layer in layers]
        phi_o = [output.kernel_code, *(_code(layer.phi_o) for layer in layers[1:])]
        arrays: dict[str, tuple[Any, list[Any]]] = {
            "sizes": (ctypes.c_int64, self.sizes),
            "phi": (ctypes.c_int64, phi),
            "phi_o": (ctypes.c_int64, phi_o),
            "memory": (ctypes.c_int64, [0 if own is None else own.rate.weight.numel() for own in self._memories]),
            "traced": (ctypes.c_int64, [own is not None and own.traced for own in self._memories]),
            "matrices": (kernels.structure("Matrix"), [self._matrix(name) for name in self._names]),
        }
        fields: dict[str, int] = {}
        for name, (kind, values) in arrays.items():
            held, fields[name], fields[f"{name}_count"] = kernels.array(kind, values)
            self._held.append(held)
        return kernels.new(
            "Network",
            real_bytes=layers[0].W.weight.element_size(),
            layers=len(layers),
            **fields,
            corrections=config.corrections,
            presynaptic_z=config.presynaptic == "z",
            teach_with_displacement=config.prediction_error == "e_z",
            error_rule=_ERROR_RULES.index(config.error_rule),
            rescale=_RESCALINGS.index(config.rescale),
            reduction=_REDUCTIONS.index(config.reduction),
            teaching=_TEACHINGS.index(config.teaching),
            kappa=config.displacement,
            reach=config.reach,
            beta=config.beta,
            gamma=scope * config.gamma,
            lam=scope * config.lam * (1 if config.sparsity_sign == "derived" else -1),
            temporal_sign=config.temporal_sign,
            radius=config.radius,
            max_norm=config.max_norm or 0.0 if self.small else 0.0,
        )

    def _places_of_moments(self) -> tuple[list[int], bool]:
        moments = [moment for moment in self._moments.values() if moment is not None]
        return list(map(_address, moments)), all(map(_is_contiguous, moments))

    def _matrix(self, name: str) -> Any:
        part, optimizer = self.weights.get(name), self.learning.optimizer
        if part is None:
            return kernels.structure("Matrix")()
        moments = [moment.detach() for moment in optimizer.held(name)]  # which keep their memory if `.data` is rebound
        first, second = optimizer.places(*moments) if moments else (None, None)
        pre, post = part.room() if name in self._queues else (None, None)
        tensors = {"weight": part.weight, "first": first, "second": second, "pre": pre, "post": post}
        self._held.append(tensors)
        return kernels.structure("Matrix")(**kernels.spans(self.dtype, **tensors))


def _contiguous(rows: Tensor | None) -> Tensor | None:
    return None if rows is None else rows.contiguous()


def _code(phi: Activation) -> int | None:
    """The kernel's code of an activation, or None if it has none."""
    names = (code for code, name in enumerate(_ACTIVATIONS) if ACTIVATIONS[name] is phi)
    return next(names, None)


def bind_kernel(
    layers: list[Layer],
    learning: LocalLearning,
    feedback: UsualFeedback | None,
    output: Distribution,
    config: Config,
    sharing: Sharing | None = None,
) -> Kernel | None:
    """The kernel for this network, or None if its rules or the machine need PyTorch."""
    codes = [_code(phi) for phi in (*(layer.phi for layer in layers), *(layer.phi_o for layer in layers[1:]))]
    known = None not in (*codes, output.kernel_code, learning.optimizer.kernel_code) and not config.xi
    known = known and config.readout == "delta"
    parts = [part for layer in layers for part in layer.synapses().values()]
    known = known and all(part.whole for part in parts)
    weights = [part.weight for part in parts]
    shapes = [weight.shape for weight in weights]
    usable = all(weight.is_cpu and weight.is_contiguous() for weight in weights)
    usable = usable and len(layers) <= kernels.MOST_LAYERS and max(map(max, shapes)) <= kernels.MOST_UNITS
    if not known or not usable or kernels.load() is None:
        return None
    return Kernel(layers, learning, feedback, output, config, sharing)
