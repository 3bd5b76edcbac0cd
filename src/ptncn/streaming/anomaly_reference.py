"""The model of anomaly scores: settings, the state of a stream, and each rule in NumPy.

The state of a stream is one row of float64. `kernels/anomaly.c` computes the same numbers; without a compiler, `step`
takes its place.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

PAST = 6
"""Number of strength classes by which past events are counted."""
EVENTS = ("point", "burst", "high", "low", "quiet", "range")
"""Kinds of events; each event is compared with earlier ones of the same kind."""
ALARM = ("count", "bar", "left", "threshold", "active", "budget", "since")
KEPT = ("bar", "left", *(f"past {k}" for k in range(PAST)))
COMMON = (*ALARM, *(f"{kind} {part}" for kind in EVENTS for part in KEPT))
TAILS = ("point", "burst", "lean", "level high", "level low", "brief high", "brief low", "quiet")
PARTS = ("quantile", "excess", "number", "spread")
SUMS = (
    *("seen", "largest", "least", "most", "usual", "burst", "lean", "last"),
    *("moves", "usual moves", "busy", "level", "brief", "mean", "variance"),
)
OWN = (*SUMS, *(f"{tail} {part}" for tail in TAILS for part in PARTS))
"""Parts of the state of each column."""

WARM = 30
"""Rows that a tail needs before it is reliable."""
LEAST = {"point": 0.15, "burst": 0.05, "lean": 0.05, "quiet": 0.1}
"""Smallest mean excess; for levels it is 1 % of the range of values."""
BEYOND = 0.05
"""A value that leaves the range of n earlier ones by this share of the range counts as one in n; ten times as far adds
a nine."""
LEAST_EVENT, LEAST_PAST, PAST_STEP = 1.0, 2.0, 0.5
"""The fewest nines of an event, then the first class of past events, and the step between classes."""
LONG = 2000
"""Rows over which the usual change from one value to the next is measured, and the share of rows that change."""
MOSTLY, EXPECTED = 0.5, 0.5
"""If fewer rows than the first share change their value, a row without a change is usual, unless its error exceeds the
second share of a usual change: then a change was expected."""
STIRRING = 2.0
"""Minimum number of changes that a window usually has: with fewer, a window without changes is not unusual."""
FIRST_BUDGET, MOST_BUDGET = 0.6, 5.0
"""Alarms that are due at the start, and at most, after a long time without one. While alarms are due, the threshold
falls faster; after too many, each alarm raises it farther."""
HALF = 3.0
"""Nines at which the anomaly score is ½: one in a thousand rows."""
LEAST_THRESHOLD = 0.1
AGAIN = 2.0
"""A continuing event that reaches this multiple of the nines of its peak is a new one."""
OVERDRAFT, MOST_OVERDRAFT = 0.3, 10.0
"""Alarms allowed in excess of those that are due: a share of the number expected so far, and a maximum."""
MANY = 10.0
"""Beyond this many nines, which no data can confirm, the score grows logarithmically."""
TOGETHER = 20
"""Rows above the threshold that are at most this far apart belong to one alarm."""
AFTER = 0.25
"""Maximum score of a row that does not start an event, which depends on the novelty of its level."""


@dataclass(frozen=True)
class AnomalySetting:
    """Fixed defaults for all streams, chosen on planted anomalies: see `benchmarks/anomalies.py`."""

    columns: int = 1
    hold: int = 100
    """Rows after a peak in which only a worse row is a new event."""
    share: float = 0.1
    """A tail begins at the quantile that this share of the rows exceeds."""
    cap: float = 5.0
    """Errors are clipped at this multiple of the usual error when they update it and when they count in bursts."""
    memory: float = 1000.0
    """Memory of the usual error, in rows."""
    window: float = 10.0
    """Length of a burst, in rows."""
    quiet: float = 20.0
    """Rows over which a value that hardly moves is detected."""
    level: float = 40.0
    """Rows over which a long-term level is measured."""
    brief: float = 5.0
    """Rows over which a short-term level is measured."""
    bulk: float = 10_000.0
    """Memory of tails and event counts, in rows."""
    fade: float = 0.96
    """Decay of a peak per row, after `hold` rows."""
    worse: float = 0.2
    """A row is much worse than a peak if it exceeds its nines by this share."""
    repeat: float = 1.0
    """Discount for recurring events: nines subtracted for ten times as many earlier events of the same kind."""
    single: float = 0.5
    """Discount for a single surprise, in nines, because one-row spikes are usual in many streams."""
    level_weight: float = 1.0
    quiet_weight: float = 1.0
    rate: float = 0.01
    """Alarms per row."""
    step: float = 0.1
    """How far an alarm raises the threshold, in nines."""
    haste: float = 0.0005
    """Additional rise, divided by the rate: rare alarms must move the threshold farther to become rare soon enough."""
    events: int = 1
    """1: one alarm per event, and another if the event lasts longer than 1 / rate rows; 0: one alarm for each row."""

    def __post_init__(self) -> None:
        if not 0 < self.rate < 1:
            raise ValueError(f"alarm_rate: expected a share above 0 and below 1, such as 0.01, got {self.rate!r}")
        if self.columns < 1:
            raise ValueError(f"columns: expected a positive integer, got {self.columns!r}")


def width(setting: AnomalySetting) -> int:
    """Numbers in the state of a stream."""
    return len(COMMON) + setting.columns * len(OWN)


def split(state: Array, setting: AnomalySetting) -> tuple[Array, Array]:
    """(B, COMMON) and (B, C, OWN) views of (B, width) state."""
    return state[:, : len(COMMON)], state[:, len(COMMON) :].reshape(len(state), setting.columns, len(OWN))


def nines(tail: Array, x: Array, least: Array | float, setting: AnomalySetting) -> Array:
    """The nines of x, log₁₀ of one over the probability of exceeding it, from an exponential tail above a high quantile
    [^1]; then update the tail.

    `tail` (…, 4) holds the quantile, the mean excess over it, the number of values, and their spread. Values are
    clipped at twenty mean excesses, so that an anomaly does not hide the next one.

    [^1]: Pickands: Statistical inference using extreme order statistics. Annals of Statistics 3, 1975.
    """
    quantile, number = tail[..., 0], tail[..., 2] + 1
    excess, p = np.maximum(tail[..., 1], least), setting.share
    top, over = -np.log10(p), x > quantile
    below = np.where((x > 0) & (quantile > 0), top * x / np.where(quantile > 0, quantile, 1.0), 0.0)
    rarity: Array = np.where(over, top + (x - quantile) / excess / np.log(10), below)
    rarity = np.where(number > WARM, rarity, 0.0)
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
    return rarity


def score_columns(own: Array, y: Array, expected: Array, s: AnomalySetting) -> tuple[Array, Array]:
    """(B, C, EVENTS) the nines of each value for each kind of event; and the distance of its level from the mean of all
    values, relative to their spread."""
    part = {name: own[..., i] for i, name in enumerate(SUMS)}
    part["seen"] += 1
    n = part["seen"]
    signed = np.where(np.isnan(expected), 0.0, y - expected)
    error = np.abs(signed)
    for name in ("least", "most", "last", "level", "brief", "mean"):
        part[name][...] = np.where(n == 1, y, part[name])
    np.maximum(part["largest"], np.abs(y), out=part["largest"])
    floor = 1e-9 * part["largest"] + 1e-300
    usual, moved = part["usual"].copy(), np.abs(y - part["last"])
    rests = (moved <= floor) & (part["busy"] < MOSTLY)
    error = np.where(rests & (error * part["busy"] <= EXPECTED * part["usual moves"]), 0.0, error)
    near = 0.01 * (part["most"] - part["least"]) + floor / 2
    surprise = np.where((n > 2) & (error > floor), np.minimum(error / np.maximum(usual, floor), 1e6), 0.0)
    taken = np.where((n > WARM) & (usual > 0), np.minimum(error, s.cap * usual), error)
    capped = np.minimum(surprise, s.cap)
    for name, x, rows in (
        ("usual", taken, s.memory),
        ("burst", capped, s.window),
        ("lean", np.copysign(capped, signed), s.window),
        ("moves", moved, s.quiet),
        ("usual moves", moved, LONG),
        ("busy", np.where(moved > floor, 1.0, 0.0), LONG),
        ("level", y, s.level),
        ("brief", y, s.brief),
    ):
        part[name] += np.maximum(1 / n, 1 / rows) * (x - part[name])
    changes = (part["usual moves"] > floor) & (part["busy"] * s.quiet > STIRRING)
    ratio = part["moves"] / np.where(changes, part["usual moves"], 1.0)
    still = np.where(changes, -np.log(np.maximum(ratio, 1e-3)), 0.0)
    tails = own[..., len(SUMS) :].reshape(*own.shape[:-1], len(TAILS), len(PARTS))
    level, brief = part["level"].copy(), part["brief"].copy()
    rarity = np.zeros((*y.shape, len(EVENTS)))
    point = nines(tails[..., 0, :], np.log1p(surprise), LEAST["point"], s) - s.single
    rarity[..., 0] = np.where(surprise > 0, np.maximum(0.0, point), 0.0)
    for event, tail, x, least, weight in (
        ("burst", "burst", part["burst"].copy(), LEAST["burst"], 1.0),
        ("burst", "lean", np.abs(part["lean"]), LEAST["lean"], 1.0),
        ("high", "level high", level, near, s.level_weight),
        ("low", "level low", -level, near, s.level_weight),
        ("high", "brief high", brief, near, s.level_weight),
        ("low", "brief low", -brief, near, s.level_weight),
        ("quiet", "quiet", still, LEAST["quiet"], s.quiet_weight),
    ):
        each = nines(tails[..., TAILS.index(tail), :], x, least, s)
        known = (each > -np.log10(s.share)) & {"burst": surprise > 0, "quiet": ~np.isnan(y)}.get(event, ~rests)
        kind = rarity[..., EVENTS.index(event)]
        np.maximum(kind, np.where(known, weight * each, 0.0), out=kind)
    rarity[..., EVENTS.index("range")] = beyond(part, y, floor, s)
    novelty = distance(part, y, floor, s)
    np.minimum(part["least"], y, out=part["least"])
    np.maximum(part["most"], y, out=part["most"])
    part["last"][...] = y
    return rarity, novelty


def beyond(part: dict[str, Array], y: Array, floor: Array, s: AnomalySetting) -> Array:
    """(B, C) the nines of a value outside the range of all earlier ones; of n rows, one is expected to be a record."""
    n, extent = part["seen"], part["most"] - part["least"]
    outside = np.maximum(y - part["most"], part["least"] - y)
    known = (n > WARM) & (extent > floor) & (outside > 0)
    share = np.where(known, outside, 1.0) / np.where(known, extent, 1.0)
    return np.where(known, np.maximum(0.0, np.log10(np.minimum(n, s.bulk) * share / BEYOND)), 0.0)


def distance(part: dict[str, Array], y: Array, floor: Array, s: AnomalySetting) -> Array:
    """(B, C) the distance of the level from the mean of earlier values, in spreads, at most 4; then update."""
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
    """Like the kernel: (B, 5) event, nines, alarm, column and novelty of each row, in order."""
    for i, row in enumerate(rows.tolist()):
        common, own = split(state[row : row + 1], setting)
        known = ~np.isnan(values[i])
        each, novelty = np.zeros((setting.columns, len(EVENTS))), 0.0
        if known.any():
            observed = own[:, known]
            rarity, far = score_columns(observed, values[i : i + 1, known], expected[i : i + 1, known], setting)
            each[known], novelty = rarity[0], float(far.mean())
            own[:, known] = observed
        out[i] = *judge(setting, common[0], each), novelty


def step_of(nines: float) -> int:
    """The class in which events with these nines are counted."""
    return min(max(int((nines - LEAST_PAST) / PAST_STEP), 0), len(KEPT) - 3)


def begins(rarity: float, bar: float, left: float, s: AnomalySetting) -> bool:
    """Whether an event starts or gets much worse; for `hold` rows after a peak, only a worse row counts."""
    return rarity > LEAST_EVENT and rarity > bar * (1 + s.worse if left > 0 else 1.0)


def weigh(kept: Array, rarity: float, count: float, s: AnomalySetting) -> float:
    """The nines of an event, discounted by earlier events of its kind; 0 if none starts."""
    bar, left = kept[:2].tolist()
    past, lasts, worth = kept[2:], left > 0, 0.0
    past *= 1 - 1 / s.bulk
    left, bar = (left - 1, bar) if lasts else (left, bar * s.fade)
    if begins(rarity, bar, lasts, s):
        now, before = step_of(rarity), step_of(bar)
        as_strong = float(past[now] / 2 + past[now + 1 :].sum())  # half of those in the same class
        worth = max(1e-9, rarity - s.repeat * float(np.log10(1 + as_strong)))
        if count > s.hold:
            past[before] = max(0.0, past[before] - lasts)
            past[now] += 1
        bar, left = rarity, float(s.hold)
    kept[:2] = bar, left
    return worth


def judge(s: AnomalySetting, common: Array, each: Array) -> tuple[float, float, float, float]:
    """Event, nines, alarm and column of a row, from the nines of each column and kind of event."""
    column = int(np.argmax(each.max(1))) if each.max() > 0 else 0
    kinds = np.maximum(0.0, each.max(0) - np.log10(s.columns))
    kinds = np.where(kinds > MANY, MANY * (1 + np.log(np.maximum(kinds, MANY) / MANY)), kinds)
    rarest = float(kinds.max())
    count, bar, left, threshold, active, budget, since = common[: len(ALARM)].tolist()
    if not count:
        threshold, budget = -float(np.log10(s.rate)), FIRST_BUDGET
    count, lasts = count + 1, left > 0
    left, bar = (left - 1, bar) if lasts else (left, bar * s.fade)
    kept = common[len(ALARM) :].reshape(len(EVENTS), len(KEPT))
    event = max(weigh(kept[k], float(kinds[k]), count, s) for k in range(len(EVENTS)))
    peak = max(bar if s.events else 0.0, threshold)
    if event > bar * (1 + s.worse if lasts else 1.0):
        bar, left = event, float(s.hold)
    else:
        event = 0.0
    # rows that do not start an event rank below all that do
    shown = max(event, rarest / (rarest + HALF)) if s.events else rarest
    over = shown > 0 and shown > threshold
    budget = min(budget + s.rate, MOST_BUDGET)
    since += 1
    same = s.events and active > 0 and since * s.rate < 1
    overdraft = min(MOST_OVERDRAFT, OVERDRAFT * s.rate * count)
    alarm = over and (shown > AGAIN * peak or not same) and budget >= 1 - overdraft
    active = float(int(min(TOGETHER, 0.2 / s.rate))) if over else max(0.0, active - 1)
    budget, since = (budget - 1, 0.0) if alarm else (budget, since)
    fall = -4.0 if over else max(1.0, 2 * budget - 1)
    move = (1 - s.rate) * max(1.0, 1 - budget) if alarm else -s.rate * fall
    threshold = max(threshold + (s.step + s.haste / s.rate) * move, LEAST_THRESHOLD)
    common[: len(ALARM)] = count, bar, left, threshold, active, budget, since
    return event, rarest, float(alarm), float(column)
