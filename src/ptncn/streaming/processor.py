"""Process blocks of rows into results: columns, clock, keys and engine."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from ptncn.learner import Learner
from ptncn.learners import make
from ptncn.streaming.columns import Columns, Known, Vector
from ptncn.streaming.drift import DriftListener
from ptncn.streaming.engine import DivergedError, Engine, LearnerEngine
from ptncn.streaming.forecaster_engine import ForecasterEngine
from ptncn.streaming.options import TARGET, StreamOptions, default_learner
from ptncn.streaming.results import History, Results, RunningStats, Steps
from ptncn.streaming.sources import Block, LineError, RowError, StreamError
from ptncn.streaming.storage import KeyStore, KeyTable, pack, unpack
from ptncn.streaming.times import Clock, EngineRows, TimeRules


class Processor:
    """Turns blocks of rows into results, and holds the state of a stream; see `Stream`.

    Each key has a slot of the engine and of the clock; without a key there is one slot.
    """

    def __init__(
        self,
        options: StreamOptions,
        learner: Learner | Callable[[int], Learner] | None,
        network: Callable[[int], Learner],
        drift: DriftListener | None,
        report: Callable[[str], None],
    ) -> None:
        self.options, self.drift, self.report = options, drift, report
        self.stats = RunningStats()
        self.healthy = True
        """False once learning has diverged: the state must not be saved."""
        self.store_folder: str | None = None
        """Folder for streams in excess of `key_limit`; None uses the system's temporary folder."""
        self.columns = _make_columns(options)
        self.clock = Clock(gaps=options.gaps, order=options.order, format=options.time_format)
        self._learner, self.network = learner, network
        self._engine: Engine | None = None
        self._options_tree = asdict(options)
        self._described: tuple[Engine | None, dict[str, Any]] | None = None
        """The engine, and the way its learner was made."""
        self._made_for: Any = None
        """The learner and columns of the blob that the engine was built for; the blobs of many keys share them."""
        self._keys = KeyTable(options.key_limit if options.key is not None else None)
        self._store: KeyStore | None = None
        self._failure: StreamError | None = None
        self._reached = 0
        """Rows of the last block before the one that stopped the stream."""
        self._last_timestamp: str | float | None = None

    @property
    def engine(self) -> Engine:
        """The engine, which is built with the first row."""
        if self._engine is None:
            raise StreamError("nothing was observed yet")
        return self._engine

    @property
    def learner(self) -> Learner:
        """The learner; with keys, the one of the first key."""
        return self.engine.learner

    @property
    def keys(self) -> list[str]:
        """The keys in memory, the least recently used first."""
        return list(self._keys.slots)

    def knows(self, key: str) -> bool:
        """Whether there is a stream for this key, in memory or on disk."""
        return key in self._keys.slots or (self._store is not None and key in self._store)

    def close(self) -> None:
        """Remove temporary files."""
        if self._store is not None:
            self._store.close()
            self._store = None

    def _begin(self, block: Block, name: str) -> None:
        """Select columns by the first row, and build everything whose size depends on them."""
        if note := self.columns.begin(block, name):
            self.report(note)
        self._make_engine(self._learner)
        if self.drift is not None:
            self.drift.check(self.learner)

    def _make_engine(self, learner: Learner | Callable[[int], Learner] | None) -> None:
        options = self.options
        if learner is None:
            learner = None if self._can_forecast() else default_learner
        self._engine = (
            self._forecaster(options)
            if learner is None
            else LearnerEngine(
                (lambda inputs: learner) if isinstance(learner, Learner) else learner,
                self.columns,
                target=options.target or TARGET,
                horizon=options.horizon,
                alarm_rate=options.alarm_rate,
                learn=options.learn,
                layer_errors=options.layer_errors,
                shared=options.shared,
            )
        )
        self.history = History(self.columns.target_width)
        if options.key is None:
            self._keys.slots[""] = 0

    def _can_forecast(self) -> bool:
        """Whether the default engine can be used, which predicts only numbers and reports no layer errors."""
        numeric = not any(name in self.columns.categories for name in self.columns.names)
        return numeric and not self.options.layer_errors

    def _forecaster(self, options: StreamOptions) -> ForecasterEngine:
        return ForecasterEngine(
            self.network,
            self.columns,
            horizon=options.horizon,
            level=options.level,
            season=options.season,
            alarm_rate=options.alarm_rate,
            alarm_per=options.alarm_per,
            learn=options.learn,
            shared=options.shared,
            keyed=options.key is not None,
        )

    def _process(self, block: Block, name: str) -> Results:
        """The results of a block. An error that stops the stream is raised by the next call."""
        if not len(block):
            return self._no_results()
        if self._engine is None:
            self._begin(block, name)
        entries, bad, known = self.columns.encode(block, name)
        rows = list(range(len(block)))
        if bad:
            rows = self._drop_bad_rows(rows, bad)
        return self._run(block, entries, known, rows, name)

    def _process_bad(self, error: RowError, name: str) -> Results:
        """Handle a row that the source could not read."""
        self._report_bad_row(error)
        if self.options.on_error == "skip" or self._engine is None or self.options.key is not None:
            return self._no_results()
        block = Block((), [()], [error.line])
        nothing, known = np.full((1, self.columns.width), np.nan), self.columns.known_now(1)
        return self._run(block, nothing, known, [0], name)

    def _drop_bad_rows(self, rows: list[int], bad: list[tuple[int, RowError]]) -> list[int]:
        """Apply `on_error`; return the remaining rows."""
        for row, error in bad:
            if self.options.on_error == "stop":
                self._failure = error
                return rows[:row]
            self._report_bad_row(error)
        dropped = {row for row, _ in bad} if self.options.on_error == "skip" else set()
        return [row for row in rows if row not in dropped]

    def _report_bad_row(self, error: RowError) -> None:
        if self.options.on_error == "stop":
            raise error
        self.stats.bad_rows += 1
        self.report(f"{error} ({'skipped' if self.options.on_error == 'skip' else 'masked'})")

    def _raise_failure(self) -> None:
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure

    def _run(self, block: Block, entries: Vector, known: Known, rows: list[int], name: str) -> Results:
        """Pass rows to the engine, at most as many at a time as its slots can take."""
        columns = self.columns
        keys = columns.keys(block)
        stamps = None if columns.timestamp is None else list(map(_as_time, columns.column(columns.timestamp, block)))
        times = np.full(len(block), np.nan) if stamps is None else self.clock.parser.parse(stamps)
        time_rules = TimeRules(self.options, self.clock, self.stats, self.report)
        parts, done, at = [], [], 0
        self._reached = 0
        while at < len(rows):
            slots = self._assign_slots(keys, rows[at:])
            part = rows[at : at + len(slots)]
            at += len(slots)
            kept = time_rules.apply(part, slots, times, block, name)
            self._failure = kept.failure or self._failure
            if not kept.rows:
                continue
            parts.append(self._step(kept, entries, times, block, name))
            done += [row for row, real in zip(kept.rows, kept.real, strict=True) if real]
            self._reached = done[-1] + 1
            if self._failure is not None:
                break
        if not done:
            return self._no_results()
        if stamps is not None:
            self._last_timestamp = stamps[done[-1]]
        return self._update_stats(
            Results(
                columns,
                self.stats.observations,
                [block.lines[row] for row in done],
                None if keys is None else [keys[row] for row in done],
                None if stamps is None else [stamps[row] for row in done],
                entries[done, : columns.target_width],
                Steps.joined(parts),
                np.zeros(len(done), dtype=bool),
                {column: counts[done] for column, counts in known.items()},
            )
        )

    def _step(self, kept: EngineRows, entries: Vector, times: Vector, block: Block, name: str) -> Steps:
        slots, rows, real = kept.slots, kept.rows, np.array(kept.real)
        values = entries[rows]
        values[~real] = np.nan
        calendar = self.clock.calendar(slots, times[rows], self.options.horizon)
        try:
            steps = self.engine.run(np.array(slots), values, calendar)
        except DivergedError as error:
            self.healthy = False
            problem = "the prediction is no longer finite: learning has diverged; try a smaller --lr"
            raise LineError(name, block.lines[rows[error.row]], problem) from None
        return steps if real.all() else steps.take(real)

    def _assign_slots(self, keys: list[str] | None, rows: list[int]) -> list[int]:
        """Load the streams of the first rows into slots, and return the slots."""
        if keys is None:
            return [0] * len(rows)
        assignment = self._keys.assign([keys[row] for row in rows])
        for key, slot in assignment.evicted:
            self._evict(key, slot)
        if assignment.new:
            self.engine.resize(self._keys.room)
            self.clock.resize(self._keys.room)
        for key, slot in assignment.new:
            if not self._load_stream(key, slot):
                self.engine.reset(slot)
                self.clock.reset(slot)
        return assignment.slots

    def _evict(self, key: str, slot: int) -> None:
        """Move the stream of a key to disk."""
        self._key_store().put(key, pack(self._state([slot])))

    def _load_stream(self, key: str, slot: int) -> bool:
        """Load the stream of a key into a slot; False if it is new."""
        state = None if self._store is None else self._store.take(key)
        if state is not None:
            self._restore([slot], unpack(state))
        return state is not None

    def _key_store(self) -> KeyStore:
        if self._store is None:
            self._store = KeyStore(self.store_folder)
        return self._store

    def _update_stats(self, results: Results) -> Results:
        """Update the running statistics and the drift detector."""
        stats, steps = self.stats, results.steps
        stats.observations += len(results)
        stats.alarms += int(steps.alarm.sum())
        stats.score(steps.error.tolist(), steps.copy_error.tolist())
        if self.drift is not None:
            for row, (surprise, settled) in enumerate(zip(steps.surprise.tolist(), steps.anomaly, strict=True)):
                if surprise == surprise and settled == settled:
                    results.drift[row] = self.drift.listen(surprise, self.learner)
            stats.drifts += int(results.drift.sum())
        if self.columns.key is None:
            self.history.add(results.observed, steps.predicted)
        return results

    def _no_results(self) -> Results:
        steps = Steps.empty(0, self.columns.target_width, self.options.horizon, bounds=False)
        empty = np.empty((0, self.columns.target_width))
        no_drift, known = np.zeros(0, dtype=bool), self.columns.known_now(0)
        return Results(self.columns, self.stats.observations, [], [], [], empty, steps, no_drift, known)

    # What checkpoints hold

    def _state(self, slots: Sequence[int]) -> dict[str, Any]:
        return {"engine": self.engine.state(slots), "clock": self.clock.state(slots)}

    def _restore(self, slots: Sequence[int], state: Mapping[str, Any]) -> None:
        self.engine.restore(slots, state["engine"])
        self.clock.restore(slots, state["clock"])

    def _slot_of(self, key: str | None) -> int:
        """The slot of a stream, loaded from disk if necessary."""
        if (key is None) != (self.columns.key is None):
            raise StreamError("a key is needed" if key is None else f"key {key!r}: this stream has no keys")
        if key is not None and not self.knows(key):
            raise StreamError(f"unknown key {key!r}; known are {', '.join(self.keys[:5])}, …")
        return self._assign_slots([key] if key is not None else None, [0])[0]

    def _describe_learner(self) -> dict[str, Any]:
        """The name and options of the learner, cached because copying it out of the engine is slow."""
        if self._described is None or self._described[0] is not self._engine:
            learner = self.learner
            self._described = self._engine, {"kind": learner.registry_name, "options": learner.options()}
        return self._described[1]

    def _tree(self) -> dict[str, Any]:
        return {
            "options": self._options_tree,
            "learner": self._describe_learner(),
            "forecaster": isinstance(self.engine, ForecasterEngine),
            "columns": self.columns.tree(),
            "stats": self.stats.tree(),
            "history": self.history.tree(),
            "drift": None if self.drift is None else self.drift.tree(),
            "timestamp": self._last_timestamp,
            "shared": self.engine.shared_state(),
            "keys": list(self._keys.slots),
            "streams": self._state(list(self._keys.slots.values())),
            "stored": {} if self._store is None else dict(self._store),
        }

    def _load_tree(self, tree: Mapping[str, Any]) -> None:
        name, options = tree["learner"]["kind"], tree["learner"]["options"]
        self.columns.load_tree(tree["columns"])
        self.network = lambda inputs: make(name, **options)
        made_for = tree["learner"], tree["forecaster"], tree["columns"]
        if self._made_for != made_for:
            self._make_engine(None if tree["forecaster"] else self.network)
            self._made_for = made_for
        self.engine.restore_shared(tree["shared"])
        if not isinstance(tree["keys"], list) or not all(isinstance(key, str) for key in tree["keys"]):
            raise ValueError("keys: expected a list of strings")
        slots = list(range(len(tree["keys"])))
        self._keys.slots.clear()
        self._keys.free.clear()
        self._keys.slots.update(zip(tree["keys"], slots, strict=True))
        self.engine.resize(len(slots))
        self.clock.resize(len(slots))
        self._restore(slots, tree["streams"])
        for key, state in tree["stored"].items():
            self._key_store().put(key, state)
        self.stats.load_tree(tree["stats"])
        self.history.load_tree(tree["history"])
        if not isinstance(tree["timestamp"], str | int | float | None):
            raise ValueError(f"timestamp: expected a string or a number, got a {type(tree['timestamp']).__name__}")
        self._last_timestamp = tree["timestamp"]
        if self.drift is not None:
            if tree["drift"] is None:
                raise ValueError("it was saved without a drift detector")
            self.drift.load_tree(tree["drift"], self.learner)


def _make_columns(options: StreamOptions) -> Columns:
    return Columns(
        options.targets,
        features=options.features,
        categorical=options.categorical,
        timestamp=options.timestamp,
        key=options.key,
        slots=options.slots,
        missing=options.missing,
        decimal=options.decimal,
        change=options.columns_change,
        shared=options.shared,
    )


def _as_time(value: Any) -> str | float | None:
    """A timestamp in its original form, as text in one line."""
    return value if value is None or isinstance(value, str | int | float) else str(value)
