"""Linear recurrent units (Orvieto et al., 2023): a stack as a cell, taught online by traces (Zucchet et al., 2023)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import gelu, layer_norm, linear

from ptncn.learners.base import RecurrentState, check_choice, check_size, keep_masked
from ptncn.learners.cells import Cell, Hidden
from ptncn.learners.forward_mode import WORKSPACE, ForwardMode, rows

SLOWEST, FASTEST = 0.999, 0.3
"""|λ| at first lies between these, |λ|² uniformly."""

Pair = tuple[Tensor, Tensor]
"""The real and the imaginary part."""


class LRULayer(nn.Module):
    """One layer: a diagonal linear recurrence of complex units, and a gated mixing of them.

        h' = λ h + s (B u)          λ = exp(−exp(decay) + i angle),  s = exp(scale)
        y  = C [Re h'; Im h'] + D r
        r' = r + m σ(K m + k),      m = gelu(y)

    u is what the recurrence sees, r the stream of width H that layers add to.
    """

    def __init__(self, input_size: int, width: int, dtype: torch.dtype) -> None:
        super().__init__()

        def parameter(*shape: int) -> nn.Parameter:
            return nn.Parameter(torch.zeros(*shape, dtype=dtype))

        self.decay, self.angle, self.scale = parameter(width), parameter(width), parameter(width)
        self.input_weight = parameter(2 * width, input_size)
        """Re B, then Im B."""
        self.output_weight = parameter(width, 2 * width)
        """C: for Re h, then for Im h."""
        self.skip = parameter(width)
        self.gate_weight, self.gate_bias = parameter(width, width), parameter(width)

    @torch.no_grad()
    def draw(self, input_scaling: float, generator: torch.Generator) -> None:
        """Decays between `FASTEST` and `SLOWEST`, angles on half the circle, s so that h keeps the size of B u."""

        def normal(like: Tensor, size: float) -> Tensor:
            return size * torch.randn(like.shape, generator=generator, dtype=torch.float64)

        width = len(self.decay)
        share, angle = torch.rand(2, width, generator=generator, dtype=torch.float64)
        squared = FASTEST**2 + share * (SLOWEST**2 - FASTEST**2)  # |λ|²
        self.decay.copy_(torch.log(-0.5 * torch.log(squared)))
        self.angle.copy_(math.pi * angle)
        self.scale.copy_(0.5 * torch.log(1 - squared))
        self.input_weight.copy_(normal(self.input_weight, input_scaling))
        self.output_weight.copy_(normal(self.output_weight, 1 / math.sqrt(2 * width)))
        self.skip.copy_(normal(self.skip, 1.0))
        self.gate_weight.copy_(normal(self.gate_weight, 1 / math.sqrt(width)))

    def rotation(self) -> Pair:
        """(H,) λ."""
        size = torch.exp(-torch.exp(self.decay))
        return size * torch.cos(self.angle), size * torch.sin(self.angle)

    def drive(self, u: Tensor) -> Pair:
        """(B, H) each: s (B u)."""
        real, imaginary = linear(u, self.input_weight).chunk(2, dim=1)
        scale = torch.exp(self.scale)
        return scale * real, scale * imaginary

    def mix(self, h: Pair, skipped: Tensor, stream: Tensor) -> Tensor:
        """(B, H) the stream after this layer."""
        y = linear(torch.cat(h, dim=1), self.output_weight) + self.skip * skipped
        m = gelu(y)
        return stream + m * torch.sigmoid(linear(m, self.gate_weight, self.gate_bias))


class LRU(Cell):
    """A stack of layers. The recurrence of the first layer sees x, the others the normalised stream, which starts as a
    linear map of x. `hidden` is the normalised stream after the last layer, then Re h and Im h of each layer.
    """

    def __init__(self, input_size: int, hidden_size: int, layers: int, dtype: torch.dtype) -> None:
        super().__init__()
        self.input_size, self.hidden_size = input_size, hidden_size
        self.embedding = nn.Parameter(torch.zeros(hidden_size, input_size, dtype=dtype))
        widths = [input_size] + [hidden_size] * (layers - 1)
        self.layers = nn.ModuleList(LRULayer(width, hidden_size, dtype) for width in widths)

    def draw(self, input_scaling: float, generator: torch.Generator) -> None:
        with torch.no_grad():
            first = torch.randn(self.embedding.shape, generator=generator, dtype=torch.float64)
            self.embedding.copy_(input_scaling * first)
        for number, layer in enumerate(self.stack):
            layer.draw(1 / math.sqrt(self.hidden_size) if number else input_scaling, generator)

    @property
    def stack(self) -> Sequence[LRULayer]:
        return self.layers  # type: ignore[return-value]

    def begin(self, batch_size: int) -> Hidden:
        parts = 1 + 2 * len(self.layers)
        return tuple(self.embedding.new_zeros(batch_size, self.hidden_size) for _ in range(parts))

    def forward(self, x: Tensor, hidden: Hidden) -> Hidden:
        return self.move(x, hidden)[0]

    def move(self, x: Tensor, hidden: Hidden) -> tuple[Hidden, list[Tensor]]:
        """One step, and the input of each layer's recurrence."""
        stream = linear(x, self.embedding)
        inputs: list[Tensor] = []
        after: list[Tensor] = []
        for number, layer in enumerate(self.stack):
            u = normalise(stream) if number else x
            (re, im), (real, imaginary), (d_re, d_im) = pair(hidden, number), layer.rotation(), layer.drive(u)
            h = (real * re - imaginary * im + d_re, real * im + imaginary * re + d_im)
            stream = layer.mix(h, u if number else stream, stream)
            inputs.append(u)
            after += h
        return (normalise(stream), *after), inputs

    def recompute(self, x: Tensor, hidden: Hidden) -> tuple[Tensor, list[Pair]]:
        """Recompute the visible state of the last step, differentiable in all but the recurrences, and the states of
        the layers. A state depends on its current input; its past is a constant."""
        stream = linear(x, self.embedding)
        states = []
        for number, layer in enumerate(self.stack):
            re, im = pair(hidden, number)
            if number:
                u = normalise(stream)
                linear_part = linear(u, (torch.exp(layer.scale).repeat(2)[:, None] * layer.input_weight).detach())
                d_re, d_im = (linear_part - linear_part.detach()).chunk(2, dim=1)  # zero, with a derivative
                h = (re + d_re, im + d_im)
            else:
                u, h = stream, (re.detach().requires_grad_(), im.detach().requires_grad_())
            stream = layer.mix(h, u, stream)
            states.append(h)
        return normalise(stream), states


def pair(hidden: Hidden, number: int) -> Pair:
    """Re h and Im h of a layer."""
    return hidden[1 + 2 * number], hidden[2 + 2 * number]


def normalise(stream: Tensor) -> Tensor:
    """Layer norm without weights, since the linear map that follows has its own."""
    return layer_norm(stream, stream.shape[-1:])


CREDITS = ("trace", "immediate")


@dataclass(kw_only=True)
class LRUState(RecurrentState):
    x: Tensor | None = None
    """(B, n) the last observation; None before the first learning step."""
    input_traces: tuple[Tensor, ...] = ()
    """(B, 2, H, m) per layer: dh/dB, real and imaginary; the last input (B, m) where credit is immediate."""
    rotation_traces: tuple[Tensor, ...] = ()
    """(B, 2, H) per layer: dh/dλ."""
    scale_traces: tuple[Tensor, ...] = ()
    """(B, 2, H) per layer: dh/d scale."""


class LRURTRL(ForwardMode):
    """Exact traces within each layer, and credit between layers at the same moment only.

    The recurrence is linear and diagonal, so for constant weights the traces are exact for the whole past::

        dh/dB ← λ dh/dB + s u        dh/dλ ← λ dh/dλ + h        dh/d scale ← λ dh/d scale + s (B u)

    With one layer the gradient is that of back-propagation through time. With more, the influence of a lower layer on
    the past of a higher one is left out.

    >>> from ptncn.learners import make
    >>> make("lru-rtrl", input_size=3, hidden_size=4, layers=2).registry_name
    'lru-rtrl'
    """

    rule = "rtrl"
    state_type = LRUState
    cell: LRU

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        *,
        cell: str = "lru",
        output: str = "bernoulli",
        layers: int = 1,
        credit: str = "trace",
        input_scaling: float | None = None,
        **common: Any,
    ) -> None:
        """
        Arguments:
            layers: number of stacked recurrences.
            credit: "trace" for B, at B·H·n numbers per layer, or "immediate": only its last input.
            input_scaling: size of the first layer's weights; None for 1 with a categorical output, whose
                observations have unit length, otherwise 1/√n.
            common: see `RecurrentLearner`.
        """
        check_choice("cell", cell, ["lru"])
        check_size("layers", layers)
        check_choice("credit", credit, CREDITS)
        if input_scaling is None:
            input_scaling = 1.0 if output == "categorical" else 1 / math.sqrt(input_size)
        self.layers, self.credit, self.input_scaling = layers, credit, input_scaling
        super().__init__(input_size, hidden_size, cell=cell, output=output, **common)

    def build_cell(self, name: str, *, depth: int, gate_bias: float | None, dtype: torch.dtype) -> LRU:
        if depth != 1 or gate_bias is not None:
            raise ValueError(f"the cell {name!r} has neither depth nor gate_bias, got {depth} and {gate_bias}")
        cell = LRU(self.input_size, self.hidden_size, self.layers, dtype)
        cell.draw(self.input_scaling, self.generator)
        return cell

    def options(self) -> dict[str, Any]:
        own = {"layers": self.layers, "credit": self.credit, "input_scaling": self.input_scaling}
        return {**super().options(), **own}

    def carries(self, state: LRUState) -> bool:
        return state.x is not None

    def observe(self, x: Tensor, state: LRUState, mask: Tensor | None) -> None:
        hidden, inputs = self.cell.move(x, state.hidden)
        if state.x is None:
            self._begin_traces(state, inputs)
        assert state.x is not None
        rotation_traces, scale_traces, input_traces = [], [], []
        for number, (layer, u) in enumerate(zip(self.cell.stack, inputs, strict=True)):
            real, imaginary = (part.expand(len(x), -1) for part in layer.rotation())
            turn = rows(mask, real, 1.0), rows(mask, imaginary, 0.0)  # (B, H) each
            before = rows(mask, torch.stack(pair(state.hidden, number), dim=1), 0.0)  # (B, 2, H)
            driven = rows(mask, torch.stack(layer.drive(u), dim=1), 0.0)
            rotation_traces.append(rotate(state.rotation_traces[number], turn) + before)
            scale_traces.append(rotate(state.scale_traces[number], turn) + driven)
            kept = state.input_traces[number]
            if self.credit == "trace":
                advance_complex(kept, turn, rows(mask, torch.exp(layer.scale).expand(len(x), -1), 0.0), u)
                input_traces.append(kept)
            else:
                input_traces.append(rows(mask, u.clone(), kept))
        state.rotation_traces, state.scale_traces = tuple(rotation_traces), tuple(scale_traces)
        state.input_traces = tuple(input_traces)
        state.x = rows(mask, x.clone(), state.x)
        state.hidden = keep_masked(mask, hidden, state.hidden)

    def recurrent_gradient(self, adjoint: Tensor, state: LRUState) -> dict[str, Tensor]:
        assert state.x is not None
        present = {name: weight for name, weight in self.cell.named_parameters() if not is_recurrent(name)}
        with torch.enable_grad():
            visible, states = self.cell.recompute(state.x, state.hidden)
            variables = [*present.values(), *(part for h in states for part in h)]
            gradients = torch.autograd.grad(visible, variables, adjoint)
        gradient = dict(zip(present, gradients, strict=False))
        state_gradients = gradients[len(present) :]
        for number, layer in enumerate(self.cell.stack):
            g = torch.stack(state_gradients[2 * number : 2 * number + 2], dim=1)  # (B, 2, H)
            own = self._recurrence_gradient(layer, g, state, number)
            gradient |= {f"layers.{number}.{name}": value for name, value in own.items()}
        return gradient

    def _recurrence_gradient(self, layer: LRULayer, g: Tensor, state: LRUState, number: int) -> dict[str, Tensor]:
        """The gradient by λ, s and B; g (B, 2, H) is that by Re h and Im h."""
        rotated = rotate(state.rotation_traces[number], layer.rotation())  # dh/d log λ
        traces = state.input_traces[number]
        if self.credit == "trace":
            grad_input = contract_complex(g, traces)
        else:
            grad_input = (torch.exp(layer.scale) * g).flatten(1).T @ traces  # (2H, m)
        return {
            "decay": -torch.exp(layer.decay) * (g * rotated).sum((0, 1)),
            "angle": (g[:, 1] * rotated[:, 0] - g[:, 0] * rotated[:, 1]).sum(0),
            "scale": (g * state.scale_traces[number]).sum((0, 1)),
            "input_weight": grad_input,
        }

    def _begin_traces(self, state: LRUState, inputs: list[Tensor]) -> None:
        zeros = inputs[0].new_zeros(state.batch_size, 2, self.hidden_size)
        state.x = torch.zeros_like(inputs[0])
        state.rotation_traces = state.scale_traces = tuple(zeros for _ in inputs)
        state.input_traces = tuple(
            u.new_zeros(*zeros.shape, u.shape[1]) if self.credit == "trace" else torch.zeros_like(u) for u in inputs
        )


def is_recurrent(name: str) -> bool:
    """Whether a parameter of the cell takes part in a recurrence."""
    return name.rpartition(".")[2] in ("decay", "angle", "scale", "input_weight")


def rotate(trace: Tensor, turn: Pair) -> Tensor:
    """(B, 2, H) the complex product of a trace (B, 2, H) and λ (H,) or (B, H)."""
    (re, im), (real, imaginary) = trace.unbind(1), turn
    return torch.stack([real * re - imaginary * im, real * im + imaginary * re], dim=1)


def advance_complex(trace: Tensor, turn: Pair, scale: Tensor, u: Tensor) -> None:
    """trace ← λ trace + s u, in place, in blocks that fit into a cache.

    trace (B, 2, H, m), λ as two (B, H), s (B, H), u (B, m).
    """
    B, _, H, m = trace.shape
    units = max(1, WORKSPACE // (3 * m * trace.element_size()))
    batch = max(1, units // H)
    for b in range(0, B, batch):
        batch_rows = slice(b, b + batch)
        for i in range(0, H, units):
            unit_range = slice(i, i + units)
            re, im = trace[batch_rows, :, unit_range].unbind(1)  # (b, i, m) each
            real, imaginary = (part[batch_rows, unit_range, None] for part in turn)
            product = imaginary * im
            im.mul_(real).addcmul_(imaginary, re)
            re.mul_(real).sub_(product).addcmul_(scale[batch_rows, unit_range, None], u[batch_rows, None])


def contract_complex(g: Tensor, trace: Tensor) -> Tensor:
    """(2H, m) the gradient by Re B and Im B: sums over rows of g (B, 2, H) and dh/dB (B, 2, H, m)."""
    B, _, H, m = trace.shape
    real, imaginary = g.unbind(1)
    grad_real = torch.stack([real, imaginary], dim=1)  # with dh/d Re B
    grad_imaginary = torch.stack([imaginary, -real], dim=1)  # dh/d Im B is i times that
    left = torch.stack([grad_real, grad_imaginary]).view(2, 2 * B, H).permute(2, 0, 1)  # (H, 2, 2B)
    product = torch.bmm(left, trace.view(2 * B, H, m).transpose(0, 1))  # (H, 2, m)
    return product.transpose(0, 1).reshape(2 * H, m)
