"""How unusual rows are, in numpy; `kernels/anomaly.c` does the same."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ptncn.streaming.anomaly.layout import COMMON, KINDS, PARTS, PAST, SUMS, AnomalySetting, Array, split

EVENTS = len(COMMON) - PAST
"""Where the counts of past events begin."""
WARM = 30
"""Rows before a tail can be trusted."""
LEAST = {"point": 0.15, "burst": 0.05, "quiet": 0.1}
"""The least mean excess; that of levels is 1 % of the range of values."""
BEYOND, BEYOND_NINES = 0.05, 3.5
"""A value outside of all before by this share of their range has so many nines; one more for ten times the share."""
LEAST_PAST, PAST_STEP = 2.0, 0.25
"""Events are counted by their nines, from these on, in such steps."""
LONG = 2000
"""Rows over which the usual change from one value to the next is measured."""
FIRST_BUDGET, MOST_BUDGET = 0.6, 5.0
"""Alarms that may be raised: at the beginning, and at most, after a long time without any."""
SEVERE = 1.0
"""An event so many nines over the threshold and the peak before may overdraw the budget; where alarms are raised for
each row, it is enough to be over the threshold."""
AGAIN = 2.0
"""So many nines over the peak, an event that lasts is another one."""
OVERDRAFT, MOST_OVERDRAFT = 0.3, 10.0
"""By how much: a share of the alarms that were to be expected so far."""
MANY = 10.0
"""More nines than these, of which no data can tell, grow like a logarithm."""
TOGETHER = 20
"""Rows over the threshold that are at most so far apart belong to one alarm."""


def nines(tail: Array, x: Array, least: Array | float, setting: AnomalySetting) -> Array:
    """log₁₀ of one over the chance to exceed x, by an exponential tail over a high quantile [^1]; then learn from x.

    `tail` (…, 4) holds the quantile, the mean excess over it, how many values were seen, and their spread. A value
    counts as at most twenty excesses, so that an anomaly does not hide the next.

    [^1]: Pickands: Statistical inference using extreme order statistics. Annals of Statistics 3, 1975.
    """
    quantile, number = tail[..., 0], tail[..., 2] + 1
    excess, p = np.maximum(tail[..., 1], least), setting.share
    top, over = -np.log10(p), x > quantile
    below = np.where((x > 0) & (quantile > 0), top * x / np.where(quantile > 0, quantile, 1.0), 0.0)
    found: Array = np.where(over, top + (x - quantile) / excess / np.log(10), below)
    found = np.where(number > WARM, found, 0.0)
    first = number == 1
    x = np.where(number > WARM + 1, np.minimum(x, quantile + 20 * excess), x)
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


def columns(own: Array, y: Array, expected: Array, s: AnomalySetting) -> tuple[Array, Array]:
    """(B, C) how many nines each value has, by the least likely of `KINDS`; and how far its level is from the mean of
    all values, in their spread."""
    part = {name: own[..., i] for i, name in enumerate(SUMS)}
    part["seen"] += 1
    n = part["seen"]
    error = np.where(np.isnan(expected), 0.0, np.abs(y - expected))
    for name in ("least", "most", "last", "level", "mean"):
        part[name][...] = np.where(n == 1, y, part[name])
    np.maximum(part["largest"], np.abs(y), out=part["largest"])
    floor = 1e-9 * part["largest"] + 1e-300
    usual, moved = part["usual"].copy(), np.abs(y - part["last"])
    near = 0.01 * (part["most"] - part["least"]) + floor / 2
    surprise = np.where((n > 2) & (error > floor), np.minimum(error / np.maximum(usual, floor), 1e6), 0.0)
    taken = np.where((n > WARM) & (usual > 0), np.minimum(error, s.cap * usual), error)
    for name, x, rows in (
        ("usual", taken, s.memory),
        ("burst", np.minimum(surprise, s.cap), s.window),
        ("moves", moved, s.quiet),
        ("usual moves", moved, LONG),
        ("level", y, s.level),
    ):
        part[name] += np.maximum(1 / n, 1 / rows) * (x - part[name])
    changes = part["usual moves"] > floor
    ratio = part["moves"] / np.where(changes, part["usual moves"], 1.0)
    still = np.where(changes, -np.log(np.maximum(ratio, 1e-3)), 0.0)
    tails = own[..., len(SUMS) :].reshape(*own.shape[:-1], len(KINDS), len(PARTS))
    found = np.where(surprise > 0, nines(tails[..., 0, :], np.log1p(surprise), LEAST["point"], s), 0.0)
    found = np.maximum(found, beyond(part, y, floor))
    level = part["level"].copy()
    for kind, x, least, weight in (
        ("burst", part["burst"].copy(), LEAST["burst"], 1.0),
        ("level high", level, near, s.level_weight),
        ("level low", -level, near, s.level_weight),
        ("quiet", still, LEAST["quiet"], s.quiet_weight),
    ):
        each = nines(tails[..., KINDS.index(kind), :], x, least, s)
        known = (each > -np.log10(s.share)) & ((surprise > 0) | (kind != "burst"))
        found = np.maximum(found, np.where(known, weight * each, 0.0))
    novelty = distance(part, y, floor, s)
    np.minimum(part["least"], y, out=part["least"])
    np.maximum(part["most"], y, out=part["most"])
    part["last"][...] = y
    return found, novelty


def beyond(part: dict[str, Array], y: Array, floor: Array) -> Array:
    """(B, C) how many nines a value has that is outside of the range of all before."""
    extent = part["most"] - part["least"]
    outside = np.maximum(y - part["most"], part["least"] - y)
    known = (part["seen"] > WARM) & (extent > floor) & (outside > 0)
    share = np.where(known, outside, 1.0) / np.where(known, extent, 1.0)
    return np.where(known, np.maximum(0.0, BEYOND_NINES + np.log10(share / BEYOND)), 0.0)


def distance(part: dict[str, Array], y: Array, floor: Array, s: AnomalySetting) -> Array:
    """(B, C) how far the level is from the mean of all values before, in their spread, at most 4; then learn from y."""
    n, spread, off = part["seen"], np.sqrt(part["variance"]), y - part["mean"]
    known, rate = (n > WARM) & (spread > floor), np.maximum(1 / n, 1 / s.bulk)
    far = np.abs(part["level"] - part["mean"]) / np.where(known, spread, 1.0)
    off = np.where((n > WARM) & (spread > 0), np.clip(off, -3 * spread, 3 * spread), off)
    part["mean"] += rate * off
    part["variance"] += rate * (off * off * (1 - rate) - part["variance"])
    novelty: Array = np.where(known, np.minimum(far, 4.0), 0.0)
    return novelty


def step(
    setting: AnomalySetting, state: Array, rows: NDArray[np.int64], values: Array, expected: Array, out: Array
) -> None:
    """As the kernel does: (B, 5) events, nines, alarms, the column and the novelty of each row, in their order."""
    for i, row in enumerate(rows.tolist()):
        common, own = split(state[row : row + 1], setting)
        known = ~np.isnan(values[i])
        each, novelty = np.zeros(setting.columns), 0.0
        if known.any():
            mine = own[:, known]
            found, far = columns(mine, values[i : i + 1, known], expected[i : i + 1, known], setting)
            each[known], novelty = found[0], float(far.mean())
            own[:, known] = mine
        out[i] = *judge(setting, common[0], each), novelty


def step_of(nines: float) -> int:
    """Where events of so many nines are counted."""
    return min(max(int((nines - LEAST_PAST) / PAST_STEP), 0), PAST - 1)


def repeated(past: Array, nines: float) -> float:
    """How many events before were as strong; of those of the same step, half."""
    now = step_of(nines)
    return float(past[now] / 2 + past[now + 1 :].sum())


def judge(setting: AnomalySetting, common: Array, each: Array) -> tuple[float, float, float, float]:
    """Event, nines, alarm and column of a row, from the nines of each column."""
    which = int(np.argmax(each)) if each.max() > 0 else 0
    found = max(0.0, float(each.max()) - float(np.log10(setting.columns)))
    found = MANY * (1 + float(np.log(found / MANY))) if found > MANY else found
    count, bar, left, threshold, active, budget, since = common[:EVENTS].tolist()
    if not count:
        threshold, budget = -float(np.log10(setting.rate)), FIRST_BUDGET
    past, lasts = common[EVENTS:], left > 0
    past *= 1 - 1 / setting.bulk
    left, bar = (left - 1, bar) if lasts else (left, bar * setting.fade)
    event, worse_by = 0.0, found - max(bar if setting.events else 0.0, threshold)
    if found > bar * (1 + setting.worse if lasts else 1.0):
        event = max(1e-9, found - setting.repeat * float(np.log10(1 + repeated(past, found))))
        if count + 1 > setting.hold:
            past[step_of(bar)] = max(0.0, past[step_of(bar)] - lasts)
            past[step_of(found)] += 1
        bar, left = found, float(setting.hold)
    over = found > 0 and found > threshold
    budget = min(budget + setting.spend * setting.rate, MOST_BUDGET)
    since += 1
    same = setting.events and active > 0 and since * setting.rate < 1
    overdraft = min(MOST_OVERDRAFT, OVERDRAFT * setting.rate * (count + 1)) if worse_by > SEVERE else 0.0
    alarm = over and (worse_by > AGAIN or not same) and budget >= 1 - overdraft
    active = float(int(min(TOGETHER, 0.2 / setting.rate))) if over else max(0.0, active - 1)
    budget, since = (budget - 1, 0.0) if alarm else (budget, since)
    move = 1 - setting.rate if alarm else setting.rate * (4 if over else -max(1.0, 2 * budget - 1))
    threshold = max(threshold + (setting.step + setting.haste / setting.rate) * move, 0.1)
    common[:EVENTS] = count + 1, bar, left, threshold, active, budget, since
    return event, found, float(alarm), float(which)
