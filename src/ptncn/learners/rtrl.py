"""Real-time recurrent learning: the exact gradient forward in time, and two unbiased approximations of it."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ptncn.learners.base import DTYPES, RecurrentState, check_choice, check_positive, check_size
from ptncn.learners.cells import CELLS
from ptncn.learners.forward_mode import WORKSPACE, ForwardMode, balance, row_norms, rows
from ptncn.learners.linearisation import Linearisation, group_shapes
from ptncn.system import available_memory, in_words

USABLE = 0.9
"""Share of the available memory for the influence; the rest is for the arrays of a step."""


@dataclass(kw_only=True)
class RTRLState(RecurrentState):
    influence: tuple[Tensor, ...] = ()
    """(B, R, H, Q, m) per group of weights: d state / d weights; () while it is zero."""


class RTRL(ForwardMode):
    """Carries the influence of every weight on every unit, which gives the exact gradient at each step [^1].

    With B rows, H units, n inputs and P ≈ G·H·(n + H + 1) weights the influence is B·R·H·P numbers, and a step
    multiplies it by an H × H matrix. The structure of the cell is exploited: a weight enters through one
    pre-activation, the derivative by an LSTM's c is diagonal, and the two biases of a gate count once. If the
    influence does not fit into memory, nothing is allocated, and a MemoryError says what would fit.

    [^1]: Williams and Zipser (1989), A learning algorithm for continually running fully recurrent neural networks.

    >>> from ptncn.learners import make
    >>> make("lstm-rtrl", input_size=4096, hidden_size=1000, memory_limit=16e9)
    Traceback (most recent call last):
    MemoryError: LSTM with 1,000 units on 4,096 inputs needs 163 GB for exact RTRL (batch of 1, float32), \
and 16.0 GB may be used. The largest hidden size that fits is 335; lstm-uoro and lstm-kf-rtrl need far less
    """

    rule = "rtrl"
    state_type = RTRLState

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        *,
        cell: str = "lstm",
        depth: int = 1,
        dtype: str = "float32",
        memory_limit: float | None = None,
        **common: Any,
    ) -> None:
        """
        Arguments:
            memory_limit: bytes that the influence may take; None for most of the available memory.
            common: see `RecurrentLearner`.
        """
        check_size("input_size", input_size)
        check_size("hidden_size", hidden_size)
        check_size("depth", depth)
        check_choice("cell", cell, CELLS)
        check_choice("dtype", dtype, DTYPES)
        if memory_limit is not None:
            check_positive("memory_limit", memory_limit)
        sizes: dict[str, Any] = {
            "cell": cell,
            "input_size": input_size,
            "hidden_size": hidden_size,
            "dtype": dtype,
            "depth": depth,
        }
        self.check_memory(memory_limit, batch_size=1, **sizes)
        super().__init__(**sizes, **common)
        self.memory_limit, self._sizes = memory_limit, sizes

    @staticmethod
    def required_bytes(
        cell: str,
        input_size: int,
        hidden_size: int,
        batch_size: int = 1,
        dtype: str = "float32",
        depth: int = 1,
    ) -> int:
        """Bytes of the influence.

        >>> RTRL.required_bytes("lstm", input_size=4096, hidden_size=1000)
        163104000000
        """
        units = CELLS[cell].parts * hidden_size
        weights = sum(q * m for q, m in group_shapes(cell, input_size, hidden_size, depth))
        return batch_size * units * weights * DTYPES[dtype].itemsize

    def options(self) -> dict[str, Any]:
        return {**super().options(), "memory_limit": self.memory_limit}

    def begin_state(self, batch_size: int) -> RecurrentState:
        self.check_memory(self.memory_limit, batch_size=batch_size, **self._sizes)
        return super().begin_state(batch_size)

    def carries(self, state: RTRLState) -> bool:
        return bool(state.influence)

    def contract(self, adjoint: Tensor, state: RTRLState) -> list[Tensor]:
        gradients = []
        for influence in state.influence:
            influence_on_h = influence[:, 0].flatten(2)  # (B, H, Qm)
            product = torch.bmm(adjoint[:, None], influence_on_h).sum((0, 1))  # (Qm,)
            gradients.append(product.view(influence.shape[3:]))
        return gradients

    def carry(self, linear: Linearisation, state: RTRLState, mask: Tensor | None) -> None:
        if state.influence:
            self._apply_transition(linear, state.influence, mask)
        else:
            state.influence = self._zeros(state.batch_size)
        for k, (influence, group) in enumerate(zip(state.influence, linear.groups, strict=True)):
            if linear.is_diagonal(k):
                slopes = rows(mask, linear.slopes(k), 0.0)  # (B, R, G, H)
                B, R, G, H = slopes.shape
                own = influence.view(B, R, H, G, H, -1).diagonal(dim1=2, dim2=4)  # (B, R, G, m, H)
                own.addcmul_(slopes[:, :, :, None], group.vector[:, None, None, :, None])
            else:
                sensitivity = rows(mask, linear.sensitivity(k), 0.0)  # (B, R, H, Q)
                influence.addcmul_(sensitivity[..., None], group.vector[:, None, None, None])

    def _zeros(self, batch_size: int) -> tuple[Tensor, ...]:
        """(B, R, H, Q, m) per group."""
        sizes = {name: size for name, size in self._sizes.items() if name != "dtype"}
        units = (batch_size, self.cell.parts, self.hidden_size)
        return tuple(self.readout.weight.new_zeros(*units, *shape) for shape in group_shapes(**sizes))

    def _apply_transition(self, linear: Linearisation, influences: tuple[Tensor, ...], mask: Tensor | None) -> None:
        """influence ← ∂s'/∂s · influence, in place, some columns at a time."""
        dense, carry = linear.transition()
        B, R, H, _ = dense.shape
        columns = max(64, WORKSPACE // (B * R * H * dense.element_size()))
        for influence in influences:
            for old in torch.split(influence.flatten(3), columns, dim=3):  # (B, R, H, columns)
                new = torch.bmm(dense.view(B, R * H, H), old[:, 0]).view(B, R, H, -1)
                if carry is not None:
                    new.addcmul_(carry[..., None], old[:, 1:])  # (B, R, H, ·) += (B, R, H, 1) * (B, 1, H, ·)
                old.copy_(rows(mask, new, old))

    @classmethod
    def check_memory(cls, memory_limit: float | None, hidden_size: int, **others: Any) -> None:
        """Raise MemoryError if the influence would be larger than the limit, or than what is available."""
        limit = USABLE * available_memory() if memory_limit is None else memory_limit
        needed = cls.required_bytes(hidden_size=hidden_size, **others)
        if needed <= limit:
            return
        fits = bisect_right(
            range(1, hidden_size), limit, key=lambda units: cls.required_bytes(hidden_size=units, **others)
        )
        cell, name = others["cell"], others["cell"].upper()
        raise MemoryError(
            f"{name} with {hidden_size:,} units on {others['input_size']:,} inputs needs {in_words(needed)} for exact "
            f"RTRL (batch of {others['batch_size']}, {others['dtype']}), and {in_words(limit)} may be used. "
            f"{f'The largest hidden size that fits is {fits:,}' if fits else 'Not even one unit fits'}; "
            f"{cell}-uoro and {cell}-kf-rtrl need far less"
        )


@dataclass(kw_only=True)
class UOROState(RecurrentState):
    tangent: Tensor | None = None
    """(B, R, H) the factor s̃ in the space of the state; None while the influence is zero."""
    weights: tuple[Tensor, ...] = ()
    """(B, Q, m) per group: the factor θ̃ in the space of the weights."""


class UORO(ForwardMode):
    """Keeps s̃ and θ̃ whose outer product has the influence as its mean [^1], for each row of a batch.

    With independent random signs ν (one per number of the state), J = ∂s'/∂s and any ρ₀, ρ₁ > 0,

        s̃' = ρ₀ J s̃ + ρ₁ ν            θ̃' = θ̃ / ρ₀ + (ν · ∂s'/∂θ) / ρ₁
        ρ₀ = √(‖θ̃‖ / ‖J s̃‖)          ρ₁ = √(‖ν · ∂s'/∂θ‖ / ‖ν‖)

    E[s̃' ⊗ θ̃'] = J E[s̃ ⊗ θ̃] + ∂s'/∂θ, since E[ν νᵀ] = I and E[ν] = 0. The ρ only keep the variance down.

    [^1]: Tallec and Ollivier (2017), Unbiased online recurrent optimization.
    """

    rule = "uoro"
    state_type = UOROState

    def carries(self, state: UOROState) -> bool:
        return state.tangent is not None

    def contract(self, adjoint: Tensor, state: UOROState) -> list[Tensor]:
        assert state.tangent is not None
        weight = (adjoint * state.tangent[:, 0]).sum(1)  # (B,)
        return [torch.tensordot(weight, traces, 1) for traces in state.weights]  # (Q, m) = (B,) · (B, Q, m)

    def carry(self, linear: Linearisation, state: UOROState, mask: Tensor | None) -> None:
        B, H = state.hidden[0].shape
        nu = self.signs(B, self.cell.parts, H)
        vectors = [group.vector for group in linear.groups]  # (B, m) each
        pulled = linear.pull(nu)  # (B, Q) each; with its vector, the outer product is ν · ∂s'/∂θ
        rho_1 = balance(_outer_norm(pulled, vectors), row_norms(nu))  # (B,)
        if state.tangent is None:
            state.tangent = torch.zeros_like(nu)
            state.weights = tuple(v.new_zeros(B, p.shape[1], v.shape[1]) for p, v in zip(pulled, vectors, strict=True))
        pushed = linear.push(state.tangent)  # (B, R, H)
        rho_0 = balance(_norm(state.weights), row_norms(pushed))  # (B,)
        tangent = rho_0[:, None, None] * pushed + rho_1[:, None, None] * nu
        state.tangent = rows(mask, tangent, state.tangent)
        shrink = rows(mask, 1 / rho_0, 1.0)
        for traces, p, v in zip(state.weights, pulled, vectors, strict=True):
            added = rows(mask, p / rho_1[:, None], 0.0)
            traces.mul_(shrink[:, None, None]).baddbmm_(added[:, :, None], v[:, None])  # (B, Q, m)


def _norm(tensors: tuple[Tensor, ...]) -> Tensor:
    """(B,) the norm of all of a row's numbers together."""
    return row_norms(torch.stack([row_norms(tensor) for tensor in tensors], dim=1))


def _outer_norm(left: list[Tensor], right: list[Tensor]) -> Tensor:
    """(B,) the norm of the outer products of (B, Q) and (B, m), without making them."""
    return row_norms(torch.stack([row_norms(a) * row_norms(b) for a, b in zip(left, right, strict=True)], dim=1))


@dataclass(kw_only=True)
class KFRTRLState(RecurrentState):
    vectors: tuple[Tensor, ...] = ()
    """(B, m) per group: the factor u, in the space of the multiplied vector; () while the influence is zero."""
    matrices: tuple[Tensor, ...] = ()
    """(B, R, H, Q) per group: the factor A from pre-activations to the state."""


class KFRTRL(ForwardMode):
    """Keeps u and A whose Kronecker product has the influence as its mean [^1], for each row of a batch.

    For weights that multiply one vector v (here [x, h, 1]) to make pre-activations a, ∂s'/∂θ = v ⊗ D with
    D = ∂s'/∂a, exactly. With random signs c₁, c₂, J = ∂s'/∂s and any p₁, p₂ > 0,

        u' = c₁ p₁ u + c₂ p₂ v            A' = (c₁ / p₁) J A + (c₂ / p₂) D
        p₁ = √(‖J A‖ / ‖u‖)               p₂ = √(‖D‖ / ‖v‖)

    E[u' ⊗ A'] = J E[u ⊗ A] + v ⊗ D, since E[c₁ c₂] = 0. Weights that multiply different vectors (a GRU's
    candidate, the micro-steps of a deep RHN) have separate pairs (u, A) and signs: the influence is their
    concatenation, so each part can be estimated separately.

    [^1]: Mujika, Meier and Steger (2018), Approximating real-time recurrent learning with random Kronecker factors.
    """

    rule = "kf-rtrl"
    state_type = KFRTRLState

    def carries(self, state: KFRTRLState) -> bool:
        return bool(state.vectors)

    def contract(self, adjoint: Tensor, state: KFRTRLState) -> list[Tensor]:
        gradients = []
        for u, A in zip(state.vectors, state.matrices, strict=True):
            grad_a = torch.bmm(adjoint[:, None], A[:, 0])[:, 0]  # (B, Q) = (B, H) · (B, H, Q)
            gradients.append(grad_a.T @ u)  # (Q, m) = (Q, B) @ (B, m)
        return gradients

    def carry(self, linear: Linearisation, state: KFRTRLState, mask: Tensor | None) -> None:
        sensitivities = [linear.sensitivity(k) for k in range(len(linear.groups))]  # (B, R, H, Q) each
        if not state.vectors:
            state.vectors = tuple(torch.zeros_like(group.vector) for group in linear.groups)
            state.matrices = tuple(torch.zeros_like(D) for D in sensitivities)
        dense, diagonal = linear.transition()
        vectors, matrices = [], []
        for u, A, D, group in zip(state.vectors, state.matrices, sensitivities, linear.groups, strict=True):
            v = group.vector
            JA = _times_transition(dense, diagonal, A)  # (B, R, H, Q)
            p_1 = balance(row_norms(JA), row_norms(u))  # (B,)
            p_2 = balance(row_norms(D), row_norms(v))
            c_1, c_2 = self.signs(2, len(v))  # (B,) each
            new_u = (c_1 * p_1)[:, None] * u + (c_2 * p_2)[:, None] * v
            new_A = (c_1 / p_1)[:, None, None, None] * JA + (c_2 / p_2)[:, None, None, None] * D
            vectors.append(rows(mask, new_u, u))
            matrices.append(rows(mask, new_A, A))
        state.vectors, state.matrices = tuple(vectors), tuple(matrices)


def _times_transition(dense: Tensor, diagonal: Tensor | None, A: Tensor) -> Tensor:
    """(B, R, H, Q) the transition times A; `dense` (B, R, H, H) acts on h, `diagonal` (B, R, H) on c."""
    B, R, H, _ = dense.shape
    product = torch.bmm(dense.view(B, R * H, H), A[:, 0]).view_as(A)
    if diagonal is not None:
        product.addcmul_(diagonal[..., None], A[:, 1:])  # (B, R, H, Q) += (B, R, H, 1) * (B, 1, H, Q)
    return product
