"""Which rows of a block are shown to the engine: late rows and gaps, as chosen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from ptncn.streaming.columns import Vector
from ptncn.streaming.errors import RowError
from ptncn.streaming.options import StreamOptions
from ptncn.streaming.sources import Block
from ptncn.streaming.status import RunningStats
from ptncn.streaming.times import Clock

MOST_FILLED = 1000
"""Rows that a gap is filled with at most."""


@dataclass(slots=True)
class Shown:
    """Rows to show to the engine, some of them only to fill a gap."""

    rows: list[int] = field(default_factory=list)
    slots: list[int] = field(default_factory=list)
    real: list[bool] = field(default_factory=list)
    failure: RowError | None = None
    """The row that stops the stream; those before it are to be shown."""

    def add(self, row: int, slot: int, *, real: bool, times: int = 1) -> None:
        self.rows += [row] * times
        self.slots += [slot] * times
        self.real += [real] * times


@dataclass(slots=True)
class Pace:
    """Follows `order` and `gaps`, counts in `stats`, and tells `report`."""

    options: StreamOptions
    clock: Clock
    stats: RunningStats
    report: Callable[[str], None]

    def follow(self, rows: list[int], slots: list[int], times: Vector, block: Block, name: str) -> Shown:
        """The rows to show, those that fill a gap among them."""
        passed = self.clock.advance(slots, times[rows])
        if passed is None:
            return Shown(rows, slots, [True] * len(rows))
        shown = Shown()
        for row, slot, steps in zip(rows, slots, passed, strict=True):
            where = f"{name}: line {block.lines[row]}"
            if steps == 0:
                self.stats.late_rows += 1
                if self.options.order == "stop":
                    shown.failure = RowError(name, block.lines[row], "not later than the row before; see --order")
                    break
                if self.options.order == "skip":
                    self.report(f"{where}: not later than the row before (skipped)")
                    continue
                if self.stats.late_rows == 1:
                    self.report(f"{where}: not later than the row before (kept); see --order")
            elif steps > 1 and self.options.gaps != "ignore":
                self.stats.gaps += 1
                if self.options.gaps == "fill":
                    shown.add(row, slot, real=False, times=min(steps - 1, MOST_FILLED))
                else:
                    self.report(f"{where}: {steps - 1:,} steps are missing before it")
            shown.add(row, slot, real=True)
        return shown
