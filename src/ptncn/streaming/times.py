"""Timestamps: their formats, the usual step of each stream, gaps, late rows, and the calendar."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import numpy as np

from ptncn.streaming.columns import Vector
from ptncn.streaming.options import StreamOptions
from ptncn.streaming.results import RunningStats
from ptncn.streaming.sources import Block, RowError

DAY = 86400.0
PERIODS = (DAY, 7 * DAY, 365.2425 * DAY)
"""The cycles of the calendar, in seconds."""
CALENDAR = 2 * len(PERIODS)
"""Number of calendar inputs: sine and cosine of each cycle."""
UNITS = ((1e17, 1e-9), (1e14, 1e-6), (1e11, 1e-3), (1e8, 1.0))
"""Above these thresholds, a number counts nanoseconds, microseconds, milliseconds or seconds since 1970."""
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class TimeParser:
    """Turns timestamps into seconds since 1970 and back; smaller numbers are plain counts.

    Arguments:
        format: the format of text, as for `datetime.strptime`; None accepts ISO 8601.
    """

    def __init__(self, format: str | None = None) -> None:
        self.format = format

    def parse(self, values: Sequence[Any]) -> Vector:
        """(n,) seconds, NaN for anything that is not a time.

        >>> TimeParser().parse(["1970-01-02", "1970-01-01T00:00:05Z", 1.5e12, "soon", 7])
        array([8.64e+04, 5.00e+00, 1.50e+09,      nan, 7.00e+00])
        """
        if self.format is None and all(type(value) is str for value in values):
            try:
                with warnings.catch_warnings():  # numpy warns about time zones, which fromisoformat understands
                    warnings.simplefilter("error")
                    return np.array(values, dtype="datetime64[us]").astype(np.int64) / 1e6
            except (ValueError, UserWarning, DeprecationWarning):
                pass
        if values and all(type(value) is float for value in values):
            numbers = np.array(values)
            size = np.abs(numbers)
            units: Vector = np.select([size >= least for least, _ in UNITS], [unit for _, unit in UNITS], 1.0)
            return numbers * units
        return np.array([self._parse_one(value) for value in values], dtype=np.float64)

    def _parse_one(self, value: Any) -> float:
        if isinstance(value, datetime):
            moment = value
        elif isinstance(value, str):
            try:
                text = value.strip()
                moment = datetime.strptime(text, self.format) if self.format else datetime.fromisoformat(text)
            except ValueError:
                try:
                    return self._from_number(float(value))
                except ValueError:
                    return math.nan
        else:
            try:
                return self._from_number(float(value))
            except (TypeError, ValueError):
                return math.nan
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        return (moment - EPOCH).total_seconds()

    def _from_number(self, number: float) -> float:
        return number * next((unit for least, unit in UNITS if abs(number) >= least), 1.0)

    def render(self, seconds: float, like: Any) -> str | float | None:
        """A time in the form of the timestamp `like`.

        >>> TimeParser().render(86400.0, "1970-01-01 00:00"), TimeParser().render(3e12 / 1e3, 1.5e12)
        ('1970-01-02 00:00', 3000000000000.0)
        """
        if not math.isfinite(seconds):
            return None
        if isinstance(like, int | float):
            number = seconds / next((unit for least, unit in UNITS if abs(like) >= least), 1.0)
            return round(number) if isinstance(like, int) else number
        moment = EPOCH + timedelta(seconds=seconds)
        if self.format:
            return moment.strftime(self.format)
        text = str(like).strip()
        try:
            zone = datetime.fromisoformat(text).tzinfo
        except ValueError:
            try:
                return self.render(seconds, float(text))
            except ValueError:
                return None
        moment = moment.astimezone(zone) if zone else moment.replace(tzinfo=None)
        if len(text) <= 10:
            whole_day = (moment.hour, moment.minute, moment.second) == (0, 0, 0)
            return moment.date().isoformat() if whole_day else moment.isoformat(" ")
        rendered = moment.isoformat(text[10], "auto" if "." in text or len(text) > 16 else "minutes")
        return rendered.replace("+00:00", "Z") if text.endswith("Z") else rendered


class Clock:
    """The clock of many streams in slots: usual steps, gaps, rows out of order, and the calendar.

    A step is usual once it has occurred twice in a row; a step of at least 1.5 times its length is a gap.

    Arguments:
        gaps: "ignore" them, "report" them, or "fill" them with unobserved rows.
        order: what to do with a row that is not later than the last one: "keep" it, "skip" it, or "stop".
    """

    def __init__(self, *, gaps: str = "report", order: str = "keep", format: str | None = None) -> None:
        if gaps not in ("ignore", "report", "fill"):
            raise ValueError(f"gaps: expected ignore, report or fill, got {gaps!r}")
        if order not in ("keep", "skip", "stop"):
            raise ValueError(f"order: expected keep, skip or stop, got {order!r}")
        self.gaps, self.order = gaps, order
        self.parser = TimeParser(format)
        self.first, self.last, self.step, self.candidate = (np.full(1, np.nan) for _ in range(4))

    def resize(self, slots: int) -> None:
        more = max(0, slots - len(self.last))
        for name in ("first", "last", "step", "candidate"):
            setattr(self, name, np.append(getattr(self, name), np.full(more, np.nan)))

    def reset(self, slot: int) -> None:
        for values in (self.first, self.last, self.step, self.candidate):
            values[slot] = np.nan

    def advance(self, slots: Sequence[int], times: Vector) -> list[int] | None:
        """Record the times of rows. Returns, for each, the number of usual steps since the last row of its slot, at
        least 1, or 0 for a row that is not later; None if all are 1."""
        if not times.size or np.isnan(times).all():
            return None
        index = np.asarray(slots)
        ends = [*(np.flatnonzero(np.diff(index)) + 1).tolist(), len(index)]
        if len(ends) > len(index) // 4 and len(ends) > 1:  # rows of several streams in turn
            passed = [self._advance(slot, time) for slot, time in zip(slots, times.tolist(), strict=True)]
        else:
            passed = []
            for start, end in pairwise([0, *ends]):
                passed += self._advance_one(slots[start], times[start:end])
        return None if all(steps == 1 for steps in passed) else passed

    def _advance_one(self, slot: int, times: Vector) -> list[int]:
        """The same for several rows of one stream."""
        if self._is_regular(slot, times):
            self.last[slot] = times[-1]
            return [1] * len(times)
        return [self._advance(slot, time) for time in times.tolist()]

    def _is_regular(self, slot: int, times: Vector) -> bool:
        step = self.step[slot]
        taken = np.diff(times, prepend=self.last[slot])
        return step == self.candidate[slot] and bool((taken == step).all())

    def _advance(self, slot: int, time: float) -> int:
        last = float(self.last[slot])
        if time != time:
            return 1
        if last != last:
            self.first[slot] = self.last[slot] = time
            return 1
        taken = time - last
        if taken <= 0:
            return 0
        self.last[slot] = time
        usual = float(self.step[slot])
        if usual != usual or abs(taken - self.candidate[slot]) <= 1e-6 * taken:
            self.step[slot] = usual = taken
        self.candidate[slot] = taken
        return round(taken / usual) if taken >= 1.5 * usual else 1

    def calendar(self, slots: Sequence[int], times: Vector, horizon: int) -> Vector:
        """(n, 1 + horizon, c) sine and cosine of the time of day, of the week and of the year at each row and at the
        steps ahead; 0 for a cycle that the stream has not covered twice, or that is not longer than a step."""
        index = np.asarray(slots)
        step = np.nan_to_num(self.step[index])
        ahead = times[:, None] + step[:, None] * np.arange(horizon + 1)  # (n, 1 + h)
        covered = np.nan_to_num(times - self.first[index])
        inputs = np.zeros((len(times), horizon + 1, CALENDAR))
        for place, period in enumerate(PERIODS):
            shown = (covered >= 2 * period) & (step > 0) & (2 * step < period)
            if shown.any():
                angle = 2 * np.pi * (ahead[shown] % period) / period
                inputs[shown, :, 2 * place], inputs[shown, :, 2 * place + 1] = np.sin(angle), np.cos(angle)
        return inputs

    def ahead(self, slot: int, horizon: int, like: Any) -> list[str | float | None]:
        """The times of the next rows, in the form of the timestamp `like`."""
        steps = self.last[slot] + self.step[slot] * np.arange(1, horizon + 1)
        return [self.parser.render(float(seconds), like) for seconds in steps]

    def state(self, slots: Sequence[int]) -> dict[str, Vector]:
        index = list(slots)
        return {name: getattr(self, name)[index] for name in ("first", "last", "step", "candidate")}

    def restore(self, slots: Sequence[int], state: dict[str, Vector]) -> None:
        for name, values in state.items():
            getattr(self, name)[list(slots)] = values


MOST_FILLED = 1000
"""Maximum number of rows that fill a gap."""


@dataclass(slots=True)
class EngineRows:
    """Rows for the engine, including rows that only fill a gap."""

    rows: list[int] = field(default_factory=list)
    slots: list[int] = field(default_factory=list)
    real: list[bool] = field(default_factory=list)
    failure: RowError | None = None
    """The row that stops the stream; the rows before it are processed."""

    def add(self, row: int, slot: int, *, real: bool, times: int = 1) -> None:
        self.rows += [row] * times
        self.slots += [slot] * times
        self.real += [real] * times


@dataclass(slots=True)
class TimeRules:
    """Applies `order` and `gaps`, counts late rows and gaps in `stats`, and reports them."""

    options: StreamOptions
    clock: Clock
    stats: RunningStats
    report: Callable[[str], None]

    def apply(self, rows: list[int], slots: list[int], times: Vector, block: Block, name: str) -> EngineRows:
        """The rows for the engine, including those that fill a gap."""
        passed = self.clock.advance(slots, times[rows])
        if passed is None:
            return EngineRows(rows, slots, [True] * len(rows))
        selected = EngineRows()
        for row, slot, steps in zip(rows, slots, passed, strict=True):
            where = f"{name}: line {block.lines[row]}"
            if steps == 0:
                self.stats.late_rows += 1
                if self.options.order == "stop":
                    selected.failure = RowError(name, block.lines[row], "not later than the row before; see --order")
                    break
                if self.options.order == "skip":
                    self.report(f"{where}: not later than the row before (skipped)")
                    continue
                if self.stats.late_rows == 1:
                    self.report(f"{where}: not later than the row before (kept); see --order")
            elif steps > 1 and self.options.gaps != "ignore":
                self.stats.gaps += 1
                if self.options.gaps == "fill":
                    selected.add(row, slot, real=False, times=min(steps - 1, MOST_FILLED))
                else:
                    self.report(f"{where}: {steps - 1:,} steps are missing before it")
            selected.add(row, slot, real=True)
        return selected
