"""The reservoir of an echo state network: fixed random weights, leaky tanh units."""

from __future__ import annotations

import numpy as np
import torch
from scipy.sparse import csr_array
from scipy.sparse.linalg import eigs
from torch import Tensor, nn

DENSE_UP_TO = 200
"""Units up to which all eigenvalues are computed; above, ARPACK finds the largest ones many times faster."""


class Reservoir(nn.Module):
    """z ← (1 − α) z + α tanh(W_x [1; x] + W_r z), as in the paper and in ReservoirPy; α is `leak_rate`.

    W_x [1; x] is kept as `bias` (H,) and `input_weights` (n, H), W_r as `recurrent_weights` (H, H), so that rows
    of a batch are multiplied from the left. Inputs and bias are ± their scaling, the reservoir is normal and
    scaled to the spectral radius `sr`. Each unit hears a share of the units (`rc_connectivity`) and of the
    inputs (`input_connectivity`), at least one of each. W_r is dense all the same: at a connectivity of 0.1 a
    sparse product saves less than a tenth of a step with many rows, and loses time with one.
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
            self.register_buffer(name, torch.empty(shape, dtype=dtype))  # claimed first: checkpoints check sizes
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
    start = np.random.default_rng(0).standard_normal(len(matrix))  # ARPACK would draw another one each time
    # Asked for one eigenvalue in its small default subspace, ARPACK may settle on the second largest.
    largest = eigs(csr_array(matrix), k=6, ncv=120, v0=start, return_eigenvectors=False)
    return float(abs(largest).max())


def _connections(shape: tuple[int, int], share: float, generator: np.random.Generator) -> np.ndarray:
    """Which of the sources (rows) each unit (column) hears: the same number for all.

    At least one, so that there is a cycle in any reservoir: without one its spectral radius would be 0.
    """
    heard = max(1, round(share * shape[0]))
    rank = generator.random(shape)
    among_first: np.ndarray = rank <= np.partition(rank, heard - 1, axis=0)[heard - 1]
    return among_first
