"""Readouts of the NumPy reference: recursive least squares over many streams, and a nonlinear autoregression."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptncn.streaming.forecaster.layout import Array, Setting, features, unit_weights

Rows = NDArray[np.int64]

EVERY = 4
"""Rows between two restorations of the prior."""
YOUNG = 20.0
"""Initial memory of readouts in rows; it grows by one with each row until forgetting takes over."""
CLIP = 6.0
"""Features are clipped at this many scales from 0."""
REACH = 20.0
"""Maximum distance of a readout from its base, in scales."""
AWAKE = 32
"""Rows before the nonlinear units start."""
OUTGROWN = 1.6
"""A change of the spread by this factor restarts the nonlinear units."""


def absorb(P: Array, z: Array, mu: Array) -> tuple[Array, Array]:
    """P (B, n, n) and the gain (B, n) of recursive least squares after features z."""
    k = np.einsum("bij,bj->bi", P, z)
    gain = k / (mu + np.einsum("bi,bi->b", z, k))[:, None]
    return (P - gain[:, :, None] * k[:, None, :]) / mu[:, None, None], gain


def pull(P: Array, W: Array, j: Rows, certainty: Array) -> tuple[Array, Array]:
    """P and W after an artificial observation that weight j of each stream is 0, as the prior says."""
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

    Arguments:
        age: (B, groups) number of rows learnt from.
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


class Nonlinear:
    """Fixed random units over the last values, read out by recursive least squares.

    The readout covers as many steps as there are lags; for later steps, its own forecasts replace the last values.

    Units see values in the scales from when they started, because a readout is invalid in other scales.
    """

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        self._n = features(setting)["nonlinear"]
        self._units = unit_weights(setting)

    def teach(self, v: dict[str, Array], time: Rows, y: Array) -> None:
        """The values that followed the rows with stored features."""
        s, B = self.setting, len(y)
        targets = v["nonlinear.W"].shape[2]
        origin = time[:, None] - np.arange(targets) - 1  # (B, S)
        learns = ~np.isnan(y)[..., None] & (v["span"] > 0)[..., None] & (origin[:, None] >= v["begun"][..., None])
        if not self._n or not learns.any():
            return
        at, slot = np.arange(B)[:, None], origin % targets
        last = np.swapaxes(v["history"][at, :, origin % s.history], 1, 2)  # (B, C, S)
        z, gain = (np.swapaxes(v[f"nonlinear.{name}"][at, slot], 1, 2) for name in ("z", "gain"))  # (B, C, S, n)
        u, W = v["nonlinear.usual"], v["nonlinear.W"]
        moved = np.where(learns, (y[..., None] - last) / np.where(v["span"] > 0, v["span"], 1.0)[..., None], 0.0)
        error = np.clip(moved, -REACH, REACH) - np.einsum("bcsn,bcsn->bcs", W, z)
        count = u[..., 1] + learns
        limit = np.where(count > 32, s.clip * u[..., 0], np.inf)
        error = np.where(learns, np.clip(error, -limit, limit), 0.0)
        rate = np.maximum(1.0 / np.maximum(count, 1.0), 0.005)
        put(u[..., 0], learns, u[..., 0] + rate * (np.abs(error) - u[..., 0]))
        u[..., 1] = count
        W += error[..., None] * gain

    def _center_units(self, v: dict[str, Array], time: Rows) -> NDArray[np.bool_]:
        """(B, C) whether there is a scale. Units restart if location or spread of the values change too much."""
        spread, span = np.sqrt(np.maximum(v["variance"], 0.0)), v["span"]
        awake = (time >= AWAKE)[:, None] & (spread > 1e-9 * (1.0 + np.abs(v["mean"]))) & (self._n > 0)
        near = (spread < span * OUTGROWN) & (spread * OUTGROWN > span) & (np.abs(v["mean"] - v["centre"]) < span)
        anew = awake & ~(near & (span > 0))
        for name, now in (
            ("centre", v["mean"]),
            ("span", spread),
            ("begun", np.repeat(time[:, None], span.shape[1], 1)),
        ):
            put(v[name], anew, now.astype(float))
        n = self._n
        prior = np.zeros(n * (n + 1) // 2)
        prior[np.cumsum(np.arange(1, n + 1)) - 1] = 1.0 / self.setting.unit_ridge
        for name, begun in (("P", prior), ("W", 0.0), ("usual", 0.0)):
            v[f"nonlinear.{name}"][anew] = begun
        return awake

    def _bend(self, v: dict[str, Array], window: Array) -> Array:
        """(B, C, n) the features of a window of values (B, C, lags), newest first: 1, the values, and the units."""
        span = np.where(v["span"] > 0, v["span"], 1.0)
        x = np.clip((window - v["centre"][..., None]) / span[..., None], -CLIP, CLIP)
        a = self._units[0] + x @ self._units[1:]
        return np.concatenate([np.ones((*x.shape[:2], 1)), x, a / np.sqrt(1.0 + a * a)], axis=2)

    def ahead(self, v: dict[str, Array], time: Rows) -> Array:
        """(B, C, H) forecasts, the last value if there is no scale; P is updated with the features."""
        s, H = self.setting, self.setting.horizon
        back = (time[:, None] - np.arange(s.unit_lags)) % s.history
        window = np.take_along_axis(v["history"], back[:, None, :], axis=2)
        awake = self._center_units(v, time)
        ahead = np.repeat(window[..., :1], H, axis=2)
        if not awake.any():
            return ahead
        targets = v["nonlinear.W"].shape[2]
        z = self._bend(v, window)
        age = time[:, None] - v["begun"]
        absorb_rows(v, "nonlinear", time % targets, time, z, s.forgetting, s.unit_ridge, awake, age)
        made = ahead[..., :0]
        while made.shape[2] < H:
            if made.shape[2]:
                window = made[..., : -s.unit_lags - 1 : -1]
                z = self._bend(v, window)
            moved = np.clip(np.einsum("bcsn,bcn->bcs", v["nonlinear.W"], z), -REACH, REACH)
            made = np.concatenate([made, window[..., :1] + v["span"][..., None] * moved], axis=2)
        return np.where(awake[..., None], made[..., :H], ahead)
