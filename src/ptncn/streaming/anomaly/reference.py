"""How unusual rows are, in numpy; `kernels/anomaly.c` does the same."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ptncn.streaming.anomaly.layout import KINDS, OWN, PARTS, AnomalySetting, Array, split

WARM = 30
"""Rows before a tail can be trusted."""
LEAST = (0.15, 0.05)
"""The least mean excess of log(1 + surprise) and of bursts; that of values is 2 % of their range."""


def nines(tail: Array, x: Array, least: Array | float, setting: AnomalySetting) -> Array:
    """log₁₀ of one over the chance to exceed x, by an exponential tail over a high quantile [^1]; then learn from x.

    `tail` (…, 4) holds the quantile, the mean excess over it, how many values were seen, and their spread. A value
    counts as at most eight excesses, so that an anomaly does not hide the next.

    [^1]: Pickands: Statistical inference using extreme order statistics. Annals of Statistics 3, 1975.
    """
    quantile, number = tail[..., 0], tail[..., 2] + 1
    excess, p = np.maximum(tail[..., 1], least), setting.share
    top, over = -np.log10(p), x > quantile
    below = np.where((x > 0) & (quantile > 0), top * x / np.where(quantile > 0, quantile, 1.0), 0.0)
    found: Array = np.where(over, top + (x - quantile) / excess / np.log(10), below)
    found = np.where(number > WARM, found, 0.0)
    first = number == 1
    x = np.where(number > WARM + 1, np.minimum(x, quantile + 8 * excess), x)
    rate = np.maximum(1 / number, 1 / setting.bulk)
    spread = tail[..., 3] + rate * (np.abs(x - quantile) - tail[..., 3])
    step = np.maximum(4 / number, 8 / setting.bulk) * np.maximum(spread, 0.1 * np.asarray(least))
    moved = quantile + step * np.where(x > quantile, 1 - p, np.where(x < quantile, -p, 0.0))
    rate = np.maximum(1 / (6 + p * number), 1 / (p * setting.bulk))
    mean = np.where(x > moved, tail[..., 1] + rate * (x - moved - tail[..., 1]), tail[..., 1])
    tail[..., 0] = np.where(first, x, moved)
    tail[..., 1] = np.where(first, tail[..., 1], mean)
    tail[..., 2] = number
    tail[..., 3] = np.where(first, tail[..., 3], spread)
    return found


def columns(own: Array, y: Array, expected: Array, s: AnomalySetting) -> Array:
    """(B, C) how many nines each value has: as a surprise, in a burst of them, as a high or a low value."""
    part = {name: own[..., OWN.index(name)] for name in OWN[: OWN.index("burst") + 1]}
    part["seen"] += 1
    n = part["seen"]
    error = np.where(np.isnan(expected), 0.0, np.abs(y - expected))
    for name in ("least", "most"):
        part[name][...] = np.where(n == 1, y, part[name])
    np.maximum(part["largest"], np.abs(y), out=part["largest"])
    floor = 1e-9 * part["largest"] + 1e-300
    usual = part["usual"].copy()
    near = 0.02 * (part["most"] - part["least"]) + floor
    surprise = np.where((n > 2) & (error > floor), np.minimum(error / np.maximum(usual, floor), 1e6), 0.0)
    taken = np.where((n > WARM) & (usual > 0), np.minimum(error, s.cap * usual), error)
    part["usual"] += np.maximum(1 / n, 1 / s.memory) * (taken - usual)
    part["burst"] += np.maximum(1 / n, 1 / s.window) * (np.minimum(surprise, s.cap) - part["burst"])
    tails = own[..., OWN.index("burst") + 1 :].reshape(*own.shape[:-1], len(KINDS), len(PARTS))
    top = -np.log10(s.share)
    found = np.where(surprise > 0, nines(tails[..., 0, :], np.log1p(surprise), LEAST[0], s), 0.0)
    for kind, x, least, weight in (
        (1, part["burst"].copy(), LEAST[1], s.burst_weight),
        (2, y, near, 1.0),
        (3, -y, near, 1.0),
    ):
        each = nines(tails[..., kind, :], x, least, s)
        known = (each > top) & ((surprise > 0) | (kind > 1))
        found = np.maximum(found, np.where(known, weight * each, 0.0))
    np.minimum(part["least"], y, out=part["least"])
    np.maximum(part["most"], y, out=part["most"])
    return found


def step(
    setting: AnomalySetting, state: Array, rows: NDArray[np.int64], values: Array, expected: Array, out: Array
) -> None:
    """As the kernel does: (B, 4) events, nines, alarms and the column of each row. A stream may come more than once."""
    for i, row in enumerate(rows.tolist()):
        common, own = split(state[row : row + 1], setting)
        known = ~np.isnan(values[i])
        each = np.zeros(setting.columns)
        if known.any():
            mine = own[:, known]
            each[known] = columns(mine, values[i : i + 1, known], expected[i : i + 1, known], setting)[0]
            own[:, known] = mine
        out[i] = judge(setting, common[0], each)


def judge(setting: AnomalySetting, common: Array, each: Array) -> tuple[float, float, float, float]:
    """Event, nines, alarm and column of a row, from the nines of each column."""
    which = int(np.argmax(each)) if each.max() > 0 else 0
    found = max(0.0, float(each.max()) - float(np.log10(setting.columns)))
    count, bar, left, threshold, active = common.tolist()
    if not count:
        threshold = -float(np.log10(setting.rate))
    left, bar = (left - 1, bar) if left > 0 else (left, bar * setting.fade)
    event = found if found > bar else 0.0
    if event:
        bar, left = found, float(setting.hold)
    over = found > 0 and found > threshold
    alarm = over and not (setting.events and active > 0)
    active = float(int(min(setting.hold, 0.2 / setting.rate))) if over else max(0.0, active - 1)
    move = 1 - setting.rate if alarm else 3 * setting.rate if over else -setting.rate
    threshold = max(threshold + (setting.step + setting.haste / setting.rate) * move, 0.1)
    common[:] = count + 1, bar, left, threshold, active
    return event, found, float(alarm), float(which)
