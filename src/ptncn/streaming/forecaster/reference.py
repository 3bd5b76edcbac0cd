"""The forecaster's step in NumPy, over many streams at once; `kernels/forecast.c` computes the same."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ptncn.streaming.forecaster.layout import LINEAR, SEASONS, Array, Setting, features, views
from ptncn.streaming.forecaster.readouts import CLIP, REACH, Nonlinear, Rows, absorb_rows, put

SETTLED = 8
"""Rows before readouts learn, or half of their lags if that is more; there is no scale until then."""
MEMORY = 1000
"""Memory of the scale of changes, in rows."""
GAIN = 20.0
"""Maximum regret of an expert per row, in usual errors."""
LASTING, LEAST_SHARE = 2000, 0.1
"""Length of a longer mean of the errors, in rows, and the share of it that is the lower limit of a usual error. If only
one row in a hundred distinguishes the experts, rounding errors on the other rows must not outweigh it."""
MIDDLE = 0.01
"""Rate at which the median follows."""
TINY = 1e-150
"""Smallest usual error in comparisons, chosen so that its square does not underflow."""
DRIFT = 1000
"""Memory of the mean change from one value to the next, in rows."""
MOST_GROWTH = 3.0
"""Logarithm of the largest growth factor of a value from a season ago."""
PRIOR, TOWARD = 2.0, 0.75
"""Prior weight of copying the last value at a horizon, as a multiple of its steps; and, if there is a season, which is
more informative than the last value, the share of that weight that goes to the mixture instead."""
SEASONED = 400
"""Rows after which a season no longer counts as a reason by itself, because a random walk may have one by chance."""
FIRST_BOUND = 2.5
LEAST_BOUND, WIDEN = 0.1, 1.2
OWED = 2000.0
"""Memory of excess misses, in rows."""
LATE = 8.0
"""The spread has twice the memory this many steps after the first: errors of late steps share most of what caused them,
so that they tell less."""
WILD, WILD_FROM = 5.0, 10
"""Errors count for the spread up to this multiple of it, once so many were scored: a jump must not widen the bounds for
hundreds of rows."""
GROSS, PROVEN = 2.0, 100
"""A value jumps if its error one step ahead exceeds the bounds of a horizon by this factor. The horizon must have
scored more than so many forecasts."""
EXCUSED, REPAID = 0.7, 2500.0
"""A jump makes the forecasts miss that were made before it. This share of these misses does not widen the bounds at
once, but over this many rows: else the next thousand rows would be covered too well."""
LEAST_SQUARE = 1e-300


def weigh(regret: Array, square: Array) -> Array:
    """(…, experts) weights proportional to positive regrets, divided by their squares."""
    weights: Array = np.maximum(regret, 0.0) / (square + 1.0) + 1e-9
    weights /= weights.sum(-1, keepdims=True)
    return weights


def begins(setting: Setting, name: str) -> int:
    """The row from which each block starts to learn."""
    return max(SETTLED, setting.lags // 2) if name == "long" else SETTLED


class Step:
    """Lets the streams `rows` of a state observe one row each."""

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        self._sizes = features(setting)
        self._nonlinear = Nonlinear(setting)
        H = setting.horizon
        self._h = np.arange(H)
        self._line = self._h * (self._h + 1) // 2

    def __call__(
        self,
        state: Array,
        rows: Rows,
        values: Array,
        states: Array,
        extra: Array,
        out: tuple[Array, Array, Array, Array],
    ) -> int:
        """Like the kernel; returns the number of rows processed, up to the first stream that occurs again."""
        again = np.flatnonzero(np.tril(rows[:, None] == rows, -1).any(1)) if len(rows) > 1 else rows[:0]
        if len(again):
            n = int(again[0])
            early = tuple(each[:n] for each in out)
            return self(state, rows[:n], values[:n], states[:n], extra[:n], (early[0], early[1], early[2], early[3]))
        mine = state[rows]
        v = views(mine, self.setting)
        time = v["count"].astype(np.int64)
        out[0][...] = np.where((time == 0)[:, None], np.nan, v["made"][:, :, 0, 0])
        self._score(v, time, values)
        self._take(v, time, values)
        self._look(v, time, states, extra)
        v["count"] += 1
        self._forecast(v, time, out[1:])
        state[rows] = mine
        return len(rows)

    def _seasons(self, v: dict[str, Array]) -> Rows:
        """(B, C, SEASONS) the seasons, 0 for none."""
        season = v["season"]
        return np.where((season >= 1) & (season <= self.setting.history // 2), season, 0).astype(np.int64)

    def _kept(self, origin: Rows) -> Rows:
        """(B, H) the slot in which a forecast made at `origin` (B, H) is stored until its value arrives."""
        return self._line + origin % (self._h + 1)

    def _seasonal(self, v: dict[str, Array], time: Rows, last: Array) -> Array:
        """(B, C, SEASONS, H) the value a whole number of seasons before `time` (B, H), known h steps earlier."""
        season, ahead, L = self._seasons(v)[..., None], self._h + 1, self.setting.history
        back = -(-ahead // np.maximum(season, 1)) * season
        at = time[:, None, None, :]
        value = np.take_along_axis(v["history"][:, :, None, :], np.maximum(at - back, 0) % L, axis=3)
        nothing = (back == 0) | (back > at) | (back - ahead >= L)
        return np.where(nothing, last[:, :, None, :], value)

    def _experts(self, v: dict[str, Array], time: Rows, slot: Rows, outputs: Array) -> Array:
        """(B, C, H, experts) the forecasts from `slot` (B, H): simple rules, then outputs (B, C, H, BLOCKS)."""
        last, median, drift, growth = (self._known(v[name], slot) for name in ("last", "medians", "drifts", "growths"))
        seasonal = np.moveaxis(self._seasonal(v, time, last), 2, 3)
        season, ahead = self._seasons(v)[..., :1], self._h + 1
        steps = np.where(season > 0, -(-ahead // np.maximum(season, 1)) * season, ahead)
        drifted = seasonal[..., 0] + drift * steps
        grown = np.where(np.isnan(growth) | (season == 0), 0.0, np.clip(growth * steps, -MOST_GROWTH, MOST_GROWTH))
        rules = np.stack([last, median, drifted, seasonal[..., 0] * np.exp(grown)], axis=3)
        return np.concatenate([rules[..., :1], seasonal, rules[..., 1:], outputs], axis=3)

    def _known(self, kept: Array, slot: Rows) -> Array:
        """(B, C, H) the entries (B, H, C) in the slot of each horizon."""
        return np.swapaxes(kept[np.arange(len(kept))[:, None], slot], 1, 2)

    def _read_out(self, v: dict[str, Array], slot: Rows, last: Array, base: Array) -> tuple[Array, Array]:
        """(B, C, H, LINEAR) bases and predictions in scales, from the features in `slot` (B, H)."""
        B, C, H = last.shape
        bases = np.concatenate([np.repeat(last[..., None], len(LINEAR) - SEASONS, axis=3), base], axis=3)
        found = []
        for name in LINEAR:
            W, z = v[f"{name}.W"], v[f"{name}.z"][np.arange(B)[:, None], slot]  # (B, H, groups, n)
            if name == "network":
                found.append(np.einsum("bchn,bhn->bch", W.reshape(B, C, H, -1), z[:, :, 0]))
            else:
                found.append(np.einsum("bchn,bhcn->bch", W, z))
        return bases, np.where(np.isnan(bases), 0.0, np.stack(found, axis=3))

    def _score(self, v: dict[str, Array], time: Rows, y: Array) -> None:
        """Reweight the experts by their forecasts of y, update the readouts, move the bounds."""
        s, B, C, H = self.setting, len(y), self.setting.columns, self.setting.horizon
        origin = time[:, None] - self._h - 1
        known = ~np.isnan(y)[:, :, None] & (origin >= 0)[:, None, :]  # (B, C, H)
        if not known.any():
            return
        value = np.where(np.isnan(y), 0.0, y)[:, :, None]
        slot, kept = origin % H, self._kept(origin)
        at = (np.arange(B)[:, None, None], np.arange(C)[None, :, None], kept[:, None, :])
        last, scale = self._known(v["last"], slot), self._known(v["scale"], slot)
        experts = self._experts(v, np.repeat(time[:, None], H, axis=1), slot, v["outputs"][at])
        mixed = (weigh(v["regret"], v["square"]) * experts).sum(-1)
        n = v["scored"] + known
        rate, off = np.maximum(1.0 / np.maximum(n, 1.0), 0.005), np.abs(mixed - value)
        size = v["size"] + rate * (
            np.where((n > 10) & (v["size"] > 0) & (off > 5 * v["size"]), 5 * v["size"], off) - v["size"]
        )
        lasting = v["lasting"] + np.maximum(1.0 / np.maximum(n, 1.0), 1.0 / LASTING) * (off - v["lasting"])
        usual = np.maximum(size, LEAST_SHARE * lasting)
        positive = known & (usual > TINY)
        usual = np.where(usual > TINY, usual, 1.0)
        gain = np.clip(np.sign(mixed - value)[..., None] * (mixed[..., None] - experts) / usual[..., None], -GAIN, GAIN)
        fade = (1.0 - (1.0 - s.fade) / np.sqrt(self._h + 1.0))[:, None]
        put(v["regret"], positive[..., None], fade * v["regret"] + gain)
        put(v["square"], positive[..., None], fade * v["square"] + gain * gain)
        weight = 1.0 / np.where(off > usual, off * usual, usual * usual)
        moved, came = mixed - last, value - last
        trust = np.stack([weight * moved * came, weight * moved * moved], axis=3)
        put(v["trust"], positive[..., None], s.trust * v["trust"] + trust)
        put(v["size"], known, size)
        put(v["lasting"], known, lasting)
        put(v["scored"], known, n)
        self._follow(v, known, n, value, v["made"][at])
        base = v["base"][at]
        self._teach(v, slot, origin, known, value, scale, *self._read_out(v, slot, last, base))
        self._nonlinear.teach(v, time, y)

    def _follow(self, v: dict[str, Array], known: NDArray[np.bool_], n: Array, y: Array, made: Array) -> None:
        """Move exceeded bounds out, and others slightly back, in units of the spread; count misses, and those that
        were inevitable."""
        s, error = self.setting, y - made[..., 0]
        tail, rate = (1.0 - s.level) / 2, np.maximum(1.0 / np.maximum(n, 1.0), s.widen / (1.0 + self._h / LATE))
        first = n == 1
        below, above = -error > made[..., 1], error > made[..., 2]
        jump = error[..., :1]
        gross = (n > PROVEN) & (np.abs(jump) > GROSS * (np.where(jump > 0, v["high"], v["low"]) * v["spread"]))
        most = EXCUSED * s.level * self._h
        left = np.maximum(v["excused"] - most / REPAID, 0.0)
        put(v["excused"], known, np.where(gross, np.maximum(v["excused"], most), left))
        put(v["owed"], known, v["owed"] + ((below - tail) + (above - tail) - v["owed"] / OWED))
        for name, over in (("low", below), ("high", above)):
            moved = np.where(first, FIRST_BOUND, v[name]) + s.step * (over - tail)
            put(v[name], known, np.maximum(moved, LEAST_BOUND))
        far = np.abs(error)
        spread = np.where(first, far, v["spread"])
        far = np.where((n > WILD_FROM) & (spread > 0), np.minimum(far, WILD * spread), far)
        put(v["spread"], known, spread + rate * (far - spread))

    def _teach(
        self,
        v: dict[str, Array],
        slot: Rows,
        origin: Rows,
        known: NDArray[np.bool_],
        y: Array,
        scale: Array,
        bases: Array,
        predicted: Array,
    ) -> None:
        B, C, H = known.shape
        for j, name in enumerate(LINEAR):
            network = name == "network"
            learns = known & ~np.isnan(bases[..., j]) & (origin >= begins(self.setting, name))[:, None, :]
            u = v[f"{name}.usual"].reshape(B, C, H, 2)
            error = np.clip((y - np.where(learns, bases[..., j], 0.0)) / scale, -REACH, REACH) - predicted[..., j]
            count = u[..., 1] + learns
            limit = np.where(count > 32, self.setting.clip * u[..., 0], np.inf)
            error = np.where(learns, np.clip(error, -limit, limit), 0.0)
            rate = np.maximum(1.0 / np.maximum(count, 1.0), 0.005)
            put(u[..., 0], learns, u[..., 0] + rate * (np.abs(error) - u[..., 0]))
            u[..., 1] = count
            gain = v[f"{name}.gain"][np.arange(B)[:, None], slot]  # (B, H, groups, n)
            W = v[f"{name}.W"].reshape(B, C, H, -1)
            W += error[..., None] * (gain[:, None, :, 0] if network else np.swapaxes(gain, 1, 2))

    def _take(self, v: dict[str, Array], time: Rows, y: Array) -> None:
        """Add values to history, scale and profiles; a forecast replaces a missing value.

        Where nothing was observed, a profile moves by as much as it last moved where something was. Otherwise the
        phases at which a sensor is off each night would lag behind when the level changes.
        """
        s, B, L = self.setting, len(y), self.setting.history
        missing, first = np.isnan(y), v["variance"] < 0
        expected = np.where(first | (time == 0)[:, None], 0.0, v["made"][:, :, 0, 0])
        y = np.where(missing, expected, y)
        begins = first & ~missing
        v["history"][begins] = y[begins][:, None]
        rate = 1.0 / np.minimum(time + 1, 5000)[:, None]
        limit = np.where((time > 32)[:, None] & (v["variance"] > 0), CLIP * np.sqrt(np.abs(v["variance"])), np.inf)
        off = np.clip(y - v["mean"], -limit, limit)
        put(v["mean"], ~missing, np.where(first, y, v["mean"] + rate * off))
        spread = v["variance"] + rate * (off * off * (1.0 - rate) - v["variance"])
        put(v["variance"], ~missing, np.where(first, 0.0, spread))
        at = np.arange(B)
        young = 1.0 / (time + 1.0)[:, None]
        season = self._seasons(v)
        whole = season[..., 0]  # over whole seasons there is no cycle
        back = np.where((whole > 0) & (whole <= time[:, None]), whole, 1)
        before = np.take_along_axis(v["history"], ((time[:, None] - back) % L)[..., None], axis=2)[..., 0]
        moved, off = y - before, y - v["median"]
        deviation = v["deviation"] + np.maximum(young, MIDDLE) * (np.abs(off) - v["deviation"])
        median = v["median"] + np.maximum(2 * young, MIDDLE) * deviation * np.sign(off)
        drift = v["drift"] + np.maximum(young, 1.0 / DRIFT) * (moved / back - v["drift"])
        positive = (y > 0) & (moved < y)
        ratio = np.where(positive, y, 1.0) / np.where(positive, y - moved, 1.0)
        growth = v["growth"] + np.maximum(young, 1.0 / DRIFT) * (np.log(ratio) / back - v["growth"])
        growth = np.where(positive, growth, np.nan)
        for name, now in (("median", median), ("deviation", deviation), ("drift", drift), ("growth", growth)):
            put(v[name], ~missing, np.where(first, y if name == "median" else 0.0, now))
        v["history"][at, :, time % L] = y
        b, c, k = np.nonzero(season)
        phase = time[b] % season[b, c, k]
        old, new, gone = v["profile"][b, c, k, phase], y[b, c], missing[b, c]
        off = np.where(np.isnan(old), 0.0, new - old)
        v["residual"][b, c, k, time[b] % s.profile_lags] = np.where(gone, 0.0, off)
        moved = np.where(gone, v["moved"][b, c, k], s.smoothing * off)
        v["profile"][b, c, k, phase] = np.where(np.isnan(old) & ~gone, new, old + moved)
        v["moved"][b, c, k] = moved

    def _look(self, v: dict[str, Array], time: Rows, states: Array, extra: Array) -> None:
        """Compute and store the features of all blocks, and update their P."""
        s, B, C, L = self.setting, len(time), self.setting.columns, self.setting.history
        at, slot = np.arange(B), time % s.horizon
        lags = (time[:, None] - np.arange(1, s.lags + 1)) % L
        y = v["history"][at, :, time % L]  # (B, C)
        floor = 1e-9 * (1.0 + np.abs(v["mean"]))
        spread = np.maximum(np.sqrt(np.maximum(v["variance"], 0.0)), floor)
        change = y[..., None] - np.take_along_axis(v["history"], lags[:, None, :], axis=2)  # (B, C, lags)
        scale = np.maximum(self._measure(v["reach"], np.square(change).sum(2) / s.lags, time), floor)
        v["last"][at, slot], v["scale"][at, slot] = y, scale
        v["medians"][at, slot], v["drifts"][at, slot], v["growths"][at, slot] = v["median"], v["drift"], v["growth"]
        change = np.clip(change / scale[..., None], -CLIP, CLIP)
        level = np.clip((y - v["mean"]) / spread, -CLIP, CLIP)[..., None]
        one = np.ones((B, C, 1))
        shared = np.concatenate([change[..., : s.few], level], axis=2).reshape(B, -1)
        network = np.concatenate([np.ones((B, 1)), states, extra, shared], axis=1)
        everywhere = np.ones((B, C), dtype=bool)
        self._learn(v, "long", slot, time, np.concatenate([change, level, one], axis=2), s.forgetting, everywhere)
        few = np.concatenate([change[..., : s.short_lags], level, one], axis=2)
        self._learn(v, "short", slot, time, few, s.quick, everywhere)
        season, ahead = self._seasons(v), time[:, None] + 1 + self._h
        kept = self._kept(np.repeat(time[:, None], s.horizon, axis=1))
        back = (time[:, None] - np.arange(s.profile_lags)) % s.profile_lags
        for k in range(SEASONS):
            length = season[:, :, k, None]
            base = np.take_along_axis(v["profile"][:, :, k], ahead[:, None, :] % np.maximum(length, 1), axis=2)
            v["base"][at[:, None, None], np.arange(C)[None, :, None], kept[:, None, :], k] = np.where(
                length > 0, base, np.nan
            )
            residual = np.take_along_axis(v["residual"][:, :, k], back[:, None, :], axis=2)
            z = np.concatenate([np.clip(residual / scale[..., None], -CLIP, CLIP), one], axis=2)
            self._learn(v, f"profile {k + 1}", slot, time, z, s.forgetting, season[:, :, k] > 0)
        self._learn(v, "network", slot, time, network[:, None], s.forgetting, everywhere[:, :1])

    def _measure(self, mean: Array, square: Array, time: Rows) -> Array:
        """The root of a slow moving mean square, in which the influence of a row is bounded."""
        rate = 1.0 / np.minimum(time + 1, MEMORY)[:, None]
        most = np.where((time > 32)[:, None] & (mean > 0), CLIP * CLIP * mean, np.inf)
        mean += rate * (np.minimum(square, most) - mean)
        return np.sqrt(mean)

    def _learn(
        self, v: dict[str, Array], name: str, slot: Rows, time: Rows, z: Array, mu: float, where: NDArray[np.bool_]
    ) -> None:
        """Update P with one row of features (B, groups, n); the gain is stored with them until the targets arrive."""
        where = where & (time >= begins(self.setting, name))[:, None]
        age = np.repeat(time[:, None], z.shape[1], axis=1)
        absorb_rows(v, name, slot, time, z, mu, self.setting.ridge, where, age)

    def _forecast(self, v: dict[str, Array], time: Rows, out: tuple[Array, Array, Array]) -> None:
        B, C, H = len(time), self.setting.columns, self.setting.horizon
        slot = np.repeat((time % H)[:, None], H, axis=1)
        kept = self._kept(np.repeat(time[:, None], H, axis=1))
        at = (np.arange(B)[:, None, None], np.arange(C)[None, :, None], kept[:, None, :])
        last, scale = self._known(v["last"], slot), self._known(v["scale"], slot)
        bases, predicted = self._read_out(v, slot, last, v["base"][at])
        moved = np.clip(predicted, -REACH, REACH) * scale[..., None]
        outputs = np.where(np.isnan(bases), last[..., None], np.where(np.isnan(bases), 0.0, bases) + moved)
        outputs = np.append(outputs, self._nonlinear.ahead(v, time)[..., None], axis=3)
        v["outputs"][at] = outputs
        experts = self._experts(v, time[:, None] + 1 + self._h, slot, outputs)
        mixed = (weigh(v["regret"], v["square"]) * experts).sum(-1)
        prior = PRIOR * (self._h + 1.0)
        young = np.maximum(0.0, 1.0 - v["scored"] / SEASONED)
        toward = TOWARD * prior * young * (self._seasons(v)[..., :1] > 0)
        share = np.clip((v["trust"][..., 0] + toward) / (v["trust"][..., 1] + prior), 0.0, 1.0)
        mean = last + share * (mixed - last)
        owed = v["owed"] - v["excused"] + self._foresee(v, time, kept, mean)
        spread = v["spread"] * np.exp(np.clip(self.setting.debt * owed, -WIDEN, WIDEN))
        below, above = v["low"] * spread, v["high"] * spread
        v["made"][at] = np.stack([mean, below, above], axis=3)
        out[0][...], out[1][...], out[2][...] = mean, mean - below, mean + above

    def _foresee(self, v: dict[str, Array], time: Rows, kept: Rows, mean: Array) -> Array:
        """(B, C, H) the misses expected among the outcomes that are still unknown, beyond those that bounds allow.

        The forecast made half of the steps later stands for all of them. Its value is taken to have a distribution with
        heavier tails than the normal one, which exceeds its bounds as often as it should.
        """
        h, k, level = self._h, (self._h + 1) // 2, self.setting.level
        later, place = np.maximum(k - 1, 0), self._line + (kept - self._line + k) % (h + 1)
        at = (np.arange(len(mean))[:, None, None], np.arange(mean.shape[1])[None, :, None], place[:, None, :])
        old, inside = v["made"][at], np.zeros_like(mean)
        for name, distance in (
            ("low", mean[..., later] - (old[..., 0] - old[..., 1])),
            ("high", old[..., 0] + old[..., 2] - mean[..., later]),
        ):
            usual = (v[name] * v["spread"])[..., later]
            square = (1.0 / (level * level) - 1.0) * usual * usual + distance * distance
            inside += distance / np.sqrt(square + LEAST_SQUARE)
        made = (h > 0) & (time[:, None] + k > h)
        return np.where(made[:, None], h * (level - 0.5 * inside), 0.0)
