"""The page of a stream, which shows the results of `ptncn stream` without changing them."""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Iterator
from typing import Any

import numpy as np

from ptncn.live.messages import Command, Visitor, fields, finite, flag, nothing, number, optional, pack, text, whole
from ptncn.live.pace import Pace, parse_speed
from ptncn.live.track import (
    AGAINST_COPY,
    ALARM,
    ANOMALY,
    DRIFT,
    EACH,
    MIDDLE,
    ROW,
    TARGETS,
    Alarm,
    Table,
    Track,
    X,
    thin_out,
)
from ptncn.streaming import Observation, Results, Stream
from ptncn.streaming.session import BLOCK, KEYED_BLOCK
from ptncn.system import one_line

ROWS, KEYED_ROWS = 100_000, 5_000
"""Rows kept in memory: for a single stream, and for each of many."""
MOST_KEYS = 1_000
MOST_TARGETS = 12
MOST_ALARMS = 500
LISTED = 100
"""Maximum number of keys listed on a page."""
PERIOD, SLOWER = 0.15, 20_000
"""Seconds between updates of a visitor's view, and the number of visible rows that doubles this time."""
SILENCE = 5.0
"""Seconds without a row after which visitors are notified, repeatedly."""
PARTS = ("", ".predicted", ".lower", ".upper", ".lower50", ".upper50")
NAMES = ("at", "row", "anomaly", "alarm", "drift", "against_copy")


class StreamPage:
    """The page of a stream.

    `observe` receives each block of results from the code that runs the stream; `replay` runs the stream itself at a
    given pace.
    """

    name = "stream"

    def __init__(self, stream: Stream, source: str, pace: Pace | None = None) -> None:
        self.stream, self.source, self.pace = stream, source, pace
        self.ended = False
        self.problem: str | None = None
        self.targets: list[str] = []
        self.timed = False
        """Whether x is a time in seconds since 1970; otherwise it is the number of the row."""
        self._not_drawn: list[str] = []
        self._places: list[int] = []
        self._tracks: dict[str, Track] = {}
        self._alarms: deque[Alarm] = deque(maxlen=MOST_ALARMS)
        self._alarm_changes = 0
        self._version = 0
        self._rates: deque[tuple[float, int]] = deque([(time.monotonic(), 0)], maxlen=10)
        """Arrival times of some recent rows, each with the number of rows until then."""
        self._last_arrival = time.monotonic()
        """Arrival time of the last row."""
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self.checks = {
            "view": fields(
                key=optional(text(1000)),
                find=optional(text(200)),
                start=optional(number(-1e15, 1e15)),
                end=optional(number(-1e15, 1e15)),
                last=optional(whole(1, ROWS)),
                points=whole(50, 4000),
            ),
            "acknowledge": whole(0, 1 << 53),
            "acknowledge_all": nothing,
        }
        if pace is not None:
            self.checks |= {"pause": flag, "speed": text(20)}

    # From the learner's thread

    def observe(self, results: Results) -> None:
        """Store what the page shows of a block."""
        if not len(results):
            return
        with self._lock:
            if not self._tracks:
                self._begin(results)
            x = self._positions(results)
            keys = np.array(results.keys or [""] * len(results), dtype=object)
            alarms = []
            for key in dict.fromkeys(keys.tolist()):
                rows = np.flatnonzero(keys == key)
                track = self._track(key)
                track.add(results, rows, x[rows], self._places)
                places = np.flatnonzero(results.steps.alarm[rows])[-MOST_ALARMS:]
                alarms += [(int(rows[place]), track, len(rows) - 1 - int(place)) for place in places]
            for row, track, skip in sorted(alarms, key=lambda alarm: alarm[0])[-MOST_ALARMS:]:
                self._alert(results, row, float(x[row]), track, skip)
            self._last_arrival = time.monotonic()
            if self._last_arrival - self._rates[-1][0] >= 0.3:
                self._rates.append((self._last_arrival, self.stream.stats.observations))
            self._version += 1

    def replay(self) -> None:
        """Run the stream at the pace of the page, until it ends or `stop` is called."""
        assert self.pace is not None
        most = BLOCK if self.stream.options.key is None else KEYED_BLOCK
        if self.stream.drift is not None:
            most = 1  # a drift has to take effect before the next row
        try:
            while not self._stop.is_set():
                due = self.pace.due(most)
                if due <= 0:
                    self._stop.wait(0.01)
                    continue
                results = self.stream.read(due)
                if results is None:
                    break
                if len(results):
                    self.observe(results)
                    self.pace.took(len(results), self._moment(results))
        except (ValueError, OSError, FloatingPointError) as error:
            self.problem = one_line(error)
        finally:
            self.stream.close()
            self.finish()

    def start(self) -> None:
        """Replay in a thread."""
        self._thread = threading.Thread(target=self.replay, name="ptncn replay", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join()

    def finish(self) -> None:
        """The stream has ended; the page stays open."""
        with self._lock:  # no version change may be lost, or a visitor would miss the last rows
            self.ended = True
            self._version += 1

    def _begin(self, results: Results) -> None:
        columns = results.columns
        numeric = [name for name in columns.names if name not in columns.categories][:MOST_TARGETS]
        self.targets = numeric
        self._not_drawn = [name for name in columns.names if name not in numeric]
        self._places = [columns.owners.index(columns.names.index(name)) for name in numeric]
        self.timed = math.isfinite(self._moment(results)) and self._moment(results) > 1e8

    def _positions(self, results: Results) -> Table:
        """The positions of rows on the x axis, ascending."""
        if not self.timed:
            return np.arange(results.first, results.first + len(results), dtype=np.float64)
        assert results.timestamps is not None
        x = self.stream.clock.parser.parse(results.timestamps)
        last = max((float(track.ring.last()[0, X]) for track in self._tracks.values() if len(track.ring)), default=x[0])
        ascending = x if results.keys is not None else np.concatenate([[last], x])
        ascending = np.fmax.accumulate(np.nan_to_num(ascending, nan=last))
        return ascending[-len(x) :]

    def _moment(self, results: Results) -> float:
        """The time of the last row, NaN if there is none."""
        if results.timestamps is None or self.stream.columns.timestamp is None:
            return math.nan
        return float(self.stream.clock.parser.parse(results.timestamps[-1:])[0])

    def _track(self, key: str) -> Track:
        """The track of a key, moved to the end of the dict; the least recently used one is dropped."""
        track = self._tracks.pop(key, None)
        if track is None:
            keyed = self.stream.options.key is not None
            track = Track(len(self._places), KEYED_ROWS if keyed else ROWS)
            if len(self._tracks) >= MOST_KEYS:
                quiet = next((name for name, each in self._tracks.items() if not each.open_alarms), None)
                self._tracks.pop(quiet if quiet is not None else next(iter(self._tracks)))
        self._tracks[key] = track
        return track

    def _alert(self, results: Results, row: int, x: float, track: Track, skip: int) -> None:
        seen = results.row(row)
        when = None if seen.timestamp is None else str(seen.timestamp)
        cause, why = self._explain(seen, track, skip)
        if len(self._alarms) == MOST_ALARMS and not self._alarms[0].acknowledged:
            self._count_open(self._alarms[0], -1)
        alarm = Alarm(seen.index, x, when, seen.key, cause, why, seen.severity)
        self._alarms.append(alarm)
        self._count_open(alarm, 1)
        self._alarm_changes += 1

    def _explain(self, seen: Observation, track: Track, skip: int) -> tuple[str | None, str]:
        """The target that an alarm is about, and what is unusual about it."""
        if seen.cause is not None and seen.cause not in self.targets:  # a category, or a target that is not shown
            expected = None if seen.prediction is None else seen.prediction[seen.cause]
            return seen.cause, f"observed {seen.observed[seen.cause]}, expected {expected}"
        explanation = track.explain(skip, None if seen.cause is None else self.targets.index(seen.cause))
        if explanation is None:
            return seen.cause, "several small deviations from the prediction"
        return self.targets[explanation[0]], explanation[1]

    def _count_open(self, alarm: Alarm, change: int) -> None:
        track = self._tracks.get(alarm.key or "")
        if track is not None:
            track.open_alarms += change
            track.open_severity = max(0.0, track.open_severity + change * alarm.severity) if track.open_alarms else 0.0

    # From the server

    def hello(self) -> dict[str, Any]:
        """Data that a new visitor needs once."""
        options = self.stream.options
        return {
            "source": self.source,
            "replay": self.pace is not None,
            "keyed": options.key,
            "horizon": options.horizon,
            "level": options.level,
            "middle": MIDDLE if options.level > MIDDLE else None,
            "alarm_rate": options.alarm_rate,
            "drift": self.stream.drift is not None,
            "kept": ROWS if options.key is None else KEYED_ROWS,
        }

    def receive(self, command: Command, visitor: Visitor) -> None:
        """Show a visitor another part of the stream, acknowledge an alarm, or change the pace of a replay."""
        kind, value = command
        if kind == "view":
            visitor.view = value
        elif kind == "acknowledge":
            self._acknowledge([alarm for alarm in self._alarms.copy() if alarm.row == value])
        elif kind == "acknowledge_all":
            self._acknowledge(list(self._alarms.copy()))
        elif kind == "pause" and self.pace is not None:
            self.pace.pause(value)
        elif kind == "speed" and self.pace is not None:
            if parse_speed(value)[0] is not None and self.targets and not self.timed:
                raise ValueError(f"speed: {value} needs timestamps, and there are none; try 20/s or max")
            self.pace.set(value)
        with self._lock:
            if kind in ("pause", "speed"):  # restart the rate
                self._rates = deque([(time.monotonic(), self.stream.stats.observations)], self._rates.maxlen)
            self._version += 1

    def news(self, visitor: Visitor) -> list[bytes | dict[str, Any]]:
        """The part of the stream that a visitor sees, if it has changed."""
        view, now = visitor.view, time.monotonic()
        rests = self.ended or (self.pace is not None and self.pace.paused)
        # visitors are also notified if nothing arrives
        silence = 0 if rests else int((now - self._last_arrival) / SILENCE)
        if not view or now < view.get("due", 0.0) or not visitor.changed("window", (self._version, silence)):
            return []
        with self._lock:
            header, first, rows, fan = self._view(visitor)
        # the more rows a window shows, the less a new row changes it
        view["due"] = time.monotonic() + PERIOD * (1 + len(rows) / SLOWER)
        low = [TARGETS + EACH * index + part for index in range(len(header["targets"])) for part in (2, 4)]
        high = [*(column + 1 for column in low), ANOMALY, ALARM, DRIFT, AGAINST_COPY, ROW]
        bucket, thin = thin_out(rows, first, view["points"], low=low, high=high)
        header |= {"rows": len(thin), "columns": thin.shape[1], "fan": len(fan), "seen": len(rows), "bucket": bucket}
        # columns, not rows: the chart needs one array per series
        return [pack(header, thin.T.tobytes() + fan.transpose(2, 1, 0).tobytes())]

    def download(self, key: str | None, start: float | None, end: float | None) -> Iterator[str]:
        """The visible rows as CSV."""
        with self._lock:
            track = self._tracks.get(key or "")
            rows = np.empty((0, TARGETS)) if track is None else track.ring.window(start, end)[1]
            names = [
                *NAMES,
                *(f"{name}{what}" for name in self.targets for what in PARTS),
            ]
        yield ",".join(f'"{name}"' if set(name) & set('",\n') else name for name in names) + "\n"
        for row in rows.tolist():
            x = np.datetime64(round(row[X] * 1000), "ms").item().isoformat() if self.timed else _csv_number(row[X])
            yield ",".join([x, *map(_csv_number, row[1:])]) + "\n"

    def _acknowledge(self, alarms: list[Alarm]) -> None:
        with self._lock:
            for alarm in alarms:
                if not alarm.acknowledged:
                    alarm.acknowledged = True
                    self._count_open(alarm, -1)
            self._alarm_changes += 1

    def _view(self, visitor: Visitor) -> tuple[dict[str, Any], int, Table, Table]:
        """A visitor's view: a header, the number of the first row, a copy of the rows, and the forecast."""
        view, keyed = visitor.view, self.stream.options.key is not None
        key = view["key"] if keyed and view["key"] is not None else self._most_severe_key()
        track = self._tracks.get(key)
        header: dict[str, Any] = {"type": "window", **self._status(), "key": key if keyed else None}
        if visitor.changed("alarms", self._alarm_changes):
            header["alarms"] = [vars(alarm) for alarm in reversed(self._alarms)]
        if keyed:
            header |= self._list_keys(view["find"] or "")
        if track is None:
            return {**header, "targets": [], "kept": 0}, 0, np.empty((0, 0)), np.empty((0, EACH - 1, 0))
        if view["last"] is None:
            first, rows = track.ring.window(view["start"], view["end"])
        else:
            rows = track.ring.last(view["last"])
            first = track.ring.total - len(rows)
        ends = track.ring.last(2)[:, X]
        step = float(ends[1] - ends[0]) if len(ends) == 2 else 1.0
        header |= {
            "targets": self.targets,
            "not_drawn": self._not_drawn,
            "kept": len(track.ring),
            "span": track.ring.span(),
            "step": step,
        }
        return header, first, rows, track.fan

    def _status(self) -> dict[str, Any]:
        stats, now, pace = self.stream.stats, time.monotonic(), self.pace
        (then, before), (latest, after) = self._rates[0], self._rates[-1]
        gap = (latest - then) / (after - before) if after > before else 0.0
        silence, wait = now - self._last_arrival, 0.0 if pace is None else pace.wait()
        silent = pace is None and silence > max(SILENCE, 5 * gap)
        return {
            "observations": stats.observations,
            "rate": finite((after - before) / (now - then)) if after > before and not silent else None,
            "silent": finite(silence) if silent else None,
            "wait": finite(wait) if wait > SILENCE else None,
            "against_copy": finite(stats.against_copy),
            "alarm_count": stats.alarms,
            "open_alarms": sum(track.open_alarms for track in self._tracks.values()),
            "drifts": stats.drifts,
            "bad_rows": stats.bad_rows,
            "timed": self.timed,
            "speed": None if pace is None else pace.speed,
            "paused": pace is not None and pace.paused,
            "ended": self.ended,
            "problem": self.problem,
        }

    def _most_severe_key(self) -> str:
        return max(self._tracks, key=self._severity, default="")

    def _severity(self, key: str) -> tuple[float, float]:
        return self._tracks[key].open_severity, self._tracks[key].highest

    def _list_keys(self, find: str) -> dict[str, Any]:
        """Keys whose names contain this text, sorted by the severity of open alarms and the highest recent score, and
        their number."""
        matching = [key for key in self._tracks if find.casefold() in key.casefold()]
        keys = sorted(matching, key=self._severity, reverse=True)[:LISTED]
        listed = [
            {"key": key, "alarms": track.open_alarms, "highest": finite(track.highest), "rows": track.ring.total}
            for key, track in ((key, self._tracks[key]) for key in keys)
        ]
        return {"keys": listed, "found": len(matching), "key_count": len(self._tracks)}


def _csv_number(value: float) -> str:
    """A number in a CSV file; nothing for NaN."""
    return "" if value != value else str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
