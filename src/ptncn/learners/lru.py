"""A stack of linear recurrent units (Orvieto et al., 2023), as a cell."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn.functional import gelu, layer_norm, linear

from ptncn.learners.cells import Cell, Hidden

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
    """The whole stack. The first layer's recurrence sees x itself, the others see the normalised stream, which begins
    as a linear map of x. `hidden` is the normalised stream after the last layer, then Re h and Im h of each layer.
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
        """One step, and what the recurrence of each layer saw."""
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

    def again(self, x: Tensor, hidden: Hidden) -> tuple[Tensor, list[Pair]]:
        """The visible state of the last step once more, differentiable in everything but the recurrences, and the
        states that it goes through. A state answers to its input at this moment, and is given otherwise."""
        stream = linear(x, self.embedding)
        states = []
        for number, layer in enumerate(self.stack):
            re, im = pair(hidden, number)
            if number:
                u = normalise(stream)
                held = linear(u, (torch.exp(layer.scale).repeat(2)[:, None] * layer.input_weight).detach())
                d_re, d_im = (held - held.detach()).chunk(2, dim=1)  # zero, but for its derivative
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
    """Layer norm without weights: what follows is linear, and has its own."""
    return layer_norm(stream, stream.shape[-1:])
