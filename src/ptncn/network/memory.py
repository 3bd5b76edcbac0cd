"""Trace memory: a diagonal linear recurrence with exact credit through the whole past, without unrolling.

A layer has H complex units with bottom-up input u, the observation or the corrected state below::

    λ = exp(−exp(a) + iθ)        ν = √(1 − |λ|²)
    h ← λ ⊙ h + ν ⊙ (B u)        G [Re h ; Im h] is added to the drive of the next step

The recurrence is diagonal and linear, so each unit can keep the derivatives of its state with respect to its own
weights. With fixed weights, these traces are exactly those of real-time recurrent learning::

    T_B[j, i] = ∂h_i / ∂B[j, i]  ←  λ_i T_B[j, i] + ν_i u_j
    T_a = ∂h / ∂a                ←  λ ⊙ T_a − exp(a) λ ⊙ h + ∂ν/∂a ⊙ (B u)
    T_θ = ∂h / ∂θ                ←  λ ⊙ T_θ + iλ ⊙ h

The displacement e_z of the layer's state is the error signal; with q = e_z Gᵀ, its gradient on [Re h ; Im h]::

    ΔG = [Re h ; Im h] e_zᵀ      Δa = Re(q̄ T_a)      Δθ = Re(q̄ T_θ)      ΔB = Σ_rows q̄ T_B      (q̄ = q_re − i q_im)

The real part of ΔB updates Re B, and its negative imaginary part Im B. With immediate credit ΔB = ν q uᵀ: only the last
input counts, and B needs no trace; a and θ keep theirs, which are only as large as h.

Complex numbers are stored as blocks, [real ; imaginary]. The compiled step (`kernels/memory.inc`) sums `write_credit`
and advances T_B, (B, n₋, 2, H), in one pass, because nothing else here is as large.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from ptncn.updates.factors import Activity, Factors, Synapses

TRACED = 1 << 16
"""Largest T_B of a row, in numbers, for which `credit="auto"` traces."""
FLOOR = 1e-30
"""Added to the inputs of traces, which would otherwise decay to denormal numbers and become very slow."""
SHORTEST, LONGEST = 0.3, 0.999
"""Range of the initial |λ|."""


@dataclass(frozen=True)
class Memory:
    """The synapses of a layer's memory, stored (from, to)."""

    number: int
    B: Synapses  # (n₋, 2H) writes
    G: Synapses  # (2H, n) reads
    rate: Synapses  # (1, H) a: the logarithm of the rate of decay
    angle: Synapses  # (1, H) θ
    traced: bool  # whether credit to B is traced through time, or immediate

    def synapses(self) -> dict[str, Synapses]:
        parts = {"G": self.G, "B": self.B, "rate": self.rate, "angle": self.angle}
        return {f"{name}{self.number}": part for name, part in parts.items()}

    def held(self) -> dict[str, tuple[int, ...]]:
        """The tensors of this layer in the state, with the shape of a row."""
        inputs, twice = self.B.shape
        h, T_B, T_a, T_angle = self.names()
        shapes: dict[str, tuple[int, ...]] = dict.fromkeys((h, T_a, T_angle), (2, twice // 2))
        return {**shapes, T_B: (inputs, 2, twice // 2)} if self.traced else shapes

    def names(self) -> tuple[str, str, str, str]:
        """The names of this layer's h, T_B, T_a and T_θ in the state."""
        return f"h{self.number}", f"T_B{self.number}", f"T_rate{self.number}", f"T_angle{self.number}"


def initial_memory(inputs: int, units: int, H: int, one_hot: bool, generator: torch.Generator) -> dict[str, Tensor]:
    """B, G, rate and angle; squares of |λ| and angles are spread evenly."""
    draw = {"generator": generator, "dtype": torch.float64}
    squares = SHORTEST**2 + (LONGEST**2 - SHORTEST**2) * torch.rand(H, **draw)  # type: ignore[call-overload]
    return {
        "B": torch.randn(inputs, 2 * H, **draw) / (1.0 if one_hot else math.sqrt(inputs)),  # type: ignore[call-overload]
        "G": torch.randn(2 * H, units, **draw) / math.sqrt(2 * H),  # type: ignore[call-overload]
        "rate": torch.log(-0.5 * torch.log(squares)),
        "angle": math.pi * torch.rand(H, **draw),  # type: ignore[call-overload]
    }


def begin(memory: Memory, rows: int) -> dict[str, Tensor]:
    """The initial memory and traces: zeros."""
    return {name: memory.B.weight.new_zeros(rows, *shape) for name, shape in memory.held().items()}


def recall(held: Mapping[str, Tensor], memory: Memory) -> Tensor:
    """(B, n) G [Re h ; Im h], which is added to the drive."""
    return memory.G.send(held[memory.names()[0]].flatten(1))


def decays(memory: Memory) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Re λ, Im λ, ν and exp(a), each (H,)."""
    pace = memory.rate.weight[0].exp()
    size, angle = torch.exp(-pace), memory.angle.weight[0]
    return size * torch.cos(angle), size * torch.sin(angle), torch.sqrt(-torch.expm1(-2 * pace)), pace


def advance(held: dict[str, Tensor], u: Tensor, memory: Memory, mask: Tensor | None) -> None:
    """Advance the memory by the input u (B, n₋); rows outside the mask (B,) stay unchanged."""
    h, T_B, T_a, T_angle = memory.names()
    re, im, nu, pace = decays(memory)
    sent = memory.B.send(u)
    memory.B.arrive()
    sent = sent.view(len(u), 2, -1)  # (B, 2, H)
    slope = (1 - nu.square()) * pace / nu  # ∂ν/∂a
    now = held[h]
    turned = times(re, im, now)
    moved = {
        T_a: times(re, im, held[T_a]) - pace * turned + slope * sent,
        T_angle: times(re, im, held[T_angle]) + torch.stack([-turned[:, 1], turned[:, 0]], 1),
        h: turned + nu * sent,
    }
    for name, value in moved.items():
        held[name] = value if mask is None else torch.where(mask[:, None, None], value, held[name])
    if memory.traced:
        _advance_trace(held[T_B], u, re, im, nu, mask)


def _advance_trace(T_B: Tensor, u: Tensor, re: Tensor, im: Tensor, nu: Tensor, mask: Tensor | None) -> None:
    """λ T_B + ν u, in place; unobserved rows stay unchanged.

    The traces of an input that has always been 0 are exactly 0.
    """
    written = (u != 0) | T_B[..., 0].any(2)  # (B, n₋)
    u = u + FLOOR * written
    if mask is not None:
        re, im = (torch.where(mask[:, None, None], part, rest) for part, rest in ((re, 1.0), (im, 0.0)))  # (B, 1, H)
        u = torch.where(mask[:, None], u, 0.0)
    real, imaginary = T_B.unbind(2)  # (B, n₋, H)
    turned = torch.addcmul(u[:, :, None] * nu, real, re).addcmul_(imaginary, im, value=-1)
    imaginary.mul_(re).addcmul_(real, im)
    real.copy_(turned)


def times(re: Tensor, im: Tensor, value: Tensor) -> Tensor:
    """λ ⊙ value, for (B, 2, H)."""
    real, imaginary = value.unbind(1)
    return torch.stack([re * real - im * imaginary, im * real + re * imaginary], 1)


def teach(held: Mapping[str, Tensor], u: Activity, e_z: Activity, memory: Memory) -> dict[str, Factors]:
    """The updates of G, B, rate and angle; u (B, n₋) is the last input; e_z (B, n) includes row weights."""
    h, T_B, T_a, T_angle = memory.names()
    q = memory.G.back(e_z.value).view(len(e_z.value), 2, -1)  # (B, 2, H)
    once = Activity(q.new_ones(1, 1))
    if memory.traced:
        everything = Activity(torch.eye(memory.B.weight.shape[0], dtype=q.dtype, device=q.device))
        dB = Factors([everything], Activity(write_credit(q, held[T_B])))
    else:
        dB = Factors([u], Activity((q * decays(memory)[2]).flatten(1)))
    updates = {
        "G": Factors([Activity(held[h].flatten(1))], e_z),
        "B": dB,
        "rate": Factors([once], Activity((q * held[T_a]).sum((0, 1))[None])),
        "angle": Factors([once], Activity((q * held[T_angle]).sum((0, 1))[None])),
    }
    return {f"{name}{memory.number}": update for name, update in updates.items()}


def write_credit(q: Tensor, T_B: Tensor) -> Tensor:
    """(n₋, 2H) Σ_rows of Re(q̄ T_B) for Re B, and of −Im(q̄ T_B) for Im B."""
    q_re, q_im = q[:, None].unbind(2)  # (B, 1, H)
    real, imaginary = T_B.unbind(2)
    for_real = torch.addcmul(q_re * real, q_im, imaginary).sum(0)
    return torch.cat([for_real, torch.addcmul(q_im * real, q_re, imaginary, value=-1).sum(0)], 1)
