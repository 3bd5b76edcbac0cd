"""Recursive least squares with forgetting, over many streams at once."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptncn.streaming.forecaster.layout import Array

EVERY = 4
"""Rows between reminders of the prior."""
YOUNG = 20.0
"""Initial memory of readouts in rows; it grows by one with each row until forgetting takes over."""

Rows = NDArray[np.int64]


def absorb(P: Array, z: Array, mu: Array) -> tuple[Array, Array]:
    """P (B, n, n) and the gain (B, n) of recursive least squares after features z."""
    k = np.einsum("bij,bj->bi", P, z)
    gain = k / (mu + np.einsum("bi,bi->b", z, k))[:, None]
    return (P - gain[:, :, None] * k[:, None, :]) / mu[:, None, None], gain


def pull(P: Array, W: Array, j: Rows, certainty: Array) -> tuple[Array, Array]:
    """P and W after an artificial observation that weight j of each stream is 0, as in the prior."""
    at = np.arange(len(P))
    k = P[at, j]
    q = 1.0 / (1.0 / certainty + k[at, j])
    W = W - (q[:, None] * W[at, :, j])[:, :, None] * k[:, None, :]
    return P - q[:, None, None] * k[:, :, None] * k[:, None, :], W


def absorb_rows(
    v: dict[str, Array],
    name: str,
    slot: Rows,
    time: Rows,
    z: Array,
    mu: float,
    ridge: float,
    where: NDArray[np.bool_],
    age: NDArray[Any],
) -> None:
    """Update P with rows of features (B, groups, n) `where` (B, groups); gains are stored with them until targets
    arrive.

    :param age: (B, groups) number of rows learnt from.
    """
    b, g = np.nonzero(where)
    if not len(b):
        return
    n = z.shape[2]
    i, j = np.tril_indices(n)
    P = np.empty((len(b), n, n))
    P[:, i, j] = P[:, j, i] = v[f"{name}.P"][b, g]
    memory = np.minimum(mu, 1.0 - 1.0 / (YOUNG + age[b, g])) if mu < 1 else np.ones(len(b))
    P, gain = absorb(P, z[b, g], memory)
    v[f"{name}.z"][b, slot[b], g], v[f"{name}.gain"][b, slot[b], g] = z[b, g], gain
    due = time[b] % EVERY == 0
    if mu < 1 and due.any():
        certainty = ridge * (1.0 - memory[due]) * n * EVERY
        W = v[f"{name}.W"]
        P[due], W[b[due], g[due]] = pull(P[due], W[b[due], g[due]], time[b[due]] // EVERY % n, certainty)
    v[f"{name}.P"][b, g] = P[:, i, j]


def put(array: Array, where: NDArray[np.bool_], value: Array) -> None:
    np.copyto(array, value, where=where)
