"""Streams: a prediction before each observation, then forecasts, surprise and alarms; checkpoints resume exactly."""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ptncn.checkpoint import CheckpointError
from ptncn.learner import Learner
from ptncn.streaming.drift import Detector, DriftListener
from ptncn.streaming.options import TARGET, LearnerSpec, StreamOptions, hidden_sizes
from ptncn.streaming.processor import Processor
from ptncn.streaming.results import Forecast, Observation, Results
from ptncn.streaming.sources import Block, IterableSource, LineError, RowError, Source, StreamError
from ptncn.streaming.storage import MALFORMED, BlobError, pack, read_checkpoint, unpack
from ptncn.system import write_atomically


class Stream(Processor):
    """Predicts each row of a feed before it arrives, then learns from it, in constant memory.

    Iterating over a stream gives one `Observation` per row: the values, their prediction, a forecast if `horizon` is
    set, the surprise, an anomaly score, and whether there is an alarm.

    Arguments:
        source: any iterable of arrays, lists or dicts, or a source from `open_source`.
        learner: None for the built-in forecaster, a learner, or a function that builds one for a number of inputs.
        network: a function that builds the forecaster's network for a number of inputs. By default it has two layers of
            32 units, and with a key one.
        drift: a detector that watches the surprise, or a `DriftListener` with an action; not with a key.
        report: called with a one-line message whenever something is skipped, masked or left out.
        options: see `StreamOptions`, such as `horizon`, `alarm_rate`, `key` and `timestamp`.

    Missing values are replaced by their prediction, so their error is zero and nothing is learnt from them.

    >>> rows = [{"load": float(t % 4)} for t in range(200)]
    >>> for out in Stream(rows, horizon=2):
    ...     pass
    >>> out.index, out.observed, round(out.prediction["load"])
    (199, {'load': 3.0}, 3)

    Any learner can replace the forecaster; this one predicts the last change again:

    >>> from ptncn.learners import make
    >>> learner = make("copy", input_size=1, output="gaussian")
    >>> for out in Stream([[1.0], [2.0], [3.0], [None], [5.0]], learner, target="change"):
    ...     print(out.observed, out.prediction)
    {'x0': 1.0} None
    {'x0': 2.0} None
    {'x0': 3.0} {'x0': 3.0}
    {'x0': None} {'x0': 4.0}
    {'x0': 5.0} {'x0': 5.0}
    """

    def __init__(
        self,
        source: Source | Iterable[Any] = (),
        learner: Learner | Callable[[int], Learner] | None = None,
        *,
        network: Callable[[int], Learner] | None = None,
        drift: DriftListener | Detector | None = None,
        report: Callable[[str], None] = lambda line: None,
        **options: Any,
    ) -> None:
        if options.get("target") is None:
            options["target"] = "change" if isinstance(learner, Learner) else TARGET
        checked = StreamOptions(**options)
        if checked.key is not None and drift is not None:
            raise ValueError("drift: cannot be combined with a key")
        if checked.key is not None and isinstance(learner, Learner) and checked.weights == "own":
            raise ValueError("learner: own weights for each key need a function that builds learners, got a learner")
        listener = drift if drift is None or isinstance(drift, DriftListener) else DriftListener(drift)
        if network is None:
            network = LearnerSpec(hidden=hidden_sizes(checked.key is not None))
        super().__init__(checked, learner, network, listener, report)
        self.source: Source = source if isinstance(source, Source) else IterableSource(source)
        self._position = self.source.position()

    def __iter__(self) -> Iterator[Observation]:
        return self

    def __next__(self) -> Observation:
        """The next observation. After an error, the position is still before the row that caused it."""
        while (results := self.read(1)) is not None:
            if len(results):
                return results.row(0)
        raise StopIteration

    def read(self, most: int) -> Results | None:
        """Process up to `most` available rows; empty results if there are none yet, None at the end."""
        self._raise_failure()
        try:
            block = self.source.read(most)
        except RowError as error:
            return self._process_bad(error, self.source.name)
        if block is None:
            if not self.stats.observations:
                raise StreamError(f"{self.source.name}: expected at least one observation, got none")
            return None
        results = self._process(block, self.source.name)
        if len(block):
            self._position = self.source.position(len(block) if self._failure is None else self._reached)
        return results

    def feed(self, rows: Iterable[Any]) -> list[Observation]:
        """Process rows that do not come from the source, for use inside other engines."""
        source = IterableSource(rows)
        observations: list[Observation] = []
        while (block := source.read(256)) is not None:
            observations += self.feed_block(block)
        return observations

    def feed_block(self, block: Block) -> Results:
        """The same for a block of rows, with the results as arrays."""
        results = self._process(block, "rows")
        self._raise_failure()
        return results

    def forecast(
        self, horizon: int, *, key: str | None = None, features: Iterable[Mapping[str, Any]] | None = None
    ) -> Forecast:
        """Forecast the next `horizon` rows, given the future values of features where known."""
        slot = self._slot_of(key)
        known = np.full((horizon, self.columns.width - self.columns.target_width), np.nan)
        for row, values in zip(known, features or (), strict=False):
            row[:] = self.columns.encode_features(values, key)
        calendar = self.clock.calendar([slot], self.clock.last[[slot]], horizon)[0, 1:]
        entries, lower, upper = self.engine.forecast(slot, known, calendar)
        times = self.clock.ahead(slot, horizon, self._last_timestamp) if self.columns.timestamp else None
        return Forecast(self.columns, entries, lower, upper, self.history.pairs, times, key)

    def save(self, path: str | os.PathLike[str], extra: Any = None) -> None:
        """Write everything needed to continue; `load` returns `extra`."""
        write_atomically(Path(path), pack({**self._tree(), "position": self._position, "extra": extra}))

    def load(self, path: str | os.PathLike[str], *, live: bool = False) -> Any:
        """Continue from a file of `save` with the next observation of the source. The learner comes from the file.
        `live`: the source is a pipe that is already at that position. Returns the saved `extra`."""
        tree = read_checkpoint(path)
        try:
            self._load_tree(tree)
            extra = tree["extra"]
            self._position = tree["position"]
        except MALFORMED as error:
            raise CheckpointError(f"{path}: not a checkpoint of a stream like this one: {error!r}") from error
        self.source.seek(self._position, live=live)
        return extra

    def to_bytes(self) -> bytes:
        """Return everything except the source as a small versioned blob that other engines can store; see `from_bytes`.

        >>> first = Stream()
        >>> _ = first.feed([[1.0], [2.0]])
        >>> second = Stream.from_bytes(first.to_bytes())
        >>> first.feed([[3.0]]) == second.feed([[3.0]])
        True
        """
        return pack(self._tree())

    @classmethod
    def from_bytes(cls, data: bytes, source: Source | Iterable[Any] = (), **changes: Any) -> Self:
        """The stream that `to_bytes` wrote, bit for bit; `changes` sets options that may change, such as `horizon`."""
        tree = unpack(data)
        if not isinstance(tree, dict) or not isinstance(tree.get("options"), dict):
            raise BlobError("the content is not what a stream writes: there are no options in it")
        try:
            StreamOptions(**tree["options"])
        except MALFORMED as error:
            raise BlobError(f"the options are not those of a stream: {error}") from error
        stream = cls(source, **{**tree["options"], **changes})
        try:
            stream._load_tree(tree)
        except MALFORMED as error:
            raise BlobError(f"not the state of a stream like this one: {error!r}") from error
        return stream

    def load_bytes(self, data: bytes) -> None:
        """Restore the state that `to_bytes` wrote for a stream with the same options."""
        tree = unpack(data)
        if tree["options"] != self._options_tree:
            raise BlobError("state of a stream with other options")
        self._load_tree(tree)


class Advance:
    """Takes the state of a stream and new rows; returns its next state and the result of each row.

    A state is what the last call returned for the same stream, or None for a new one. The result depends on nothing
    else, so an engine that stores states together with its position in the source processes every row exactly once.

    Arguments:
        keep: number of recent streams to keep in memory. The last state returned for such a stream is not decoded
            again.
        options: those of `Stream`.

    >>> advance = Advance(horizon=1)
    >>> state, first = advance(None, [{"load": 1.0}, {"load": 2.0}])
    >>> state, then = advance(state, [{"load": 3.0}])
    >>> [out.observed["load"] for out in first + then]
    [1.0, 2.0, 3.0]
    """

    def __init__(self, *, keep: int = 1, **options: Any) -> None:
        if keep < 1:
            raise ValueError(f"keep: expected at least 1, got {keep}")
        Stream(**options)  # reject bad options now, not at the first row
        self.options, self.keep = options, keep
        self._streams: OrderedDict[bytes, Stream] = OrderedDict()
        """By state, the most recent last."""

    def __call__(self, state: bytes | None, rows: Iterable[Any]) -> tuple[bytes, list[Observation]]:
        stream = self._stream(state)
        observations = stream.feed(rows)
        return self._put(stream), observations

    def _stream(self, state: bytes | None) -> Stream:
        if state is None:
            return Stream(**self.options)
        known = self._streams.pop(state, None)
        if known is not None:
            return known
        full = len(self._streams) >= self.keep
        stream = self._streams.popitem(last=False)[1] if full else Stream(**self.options)
        stream.load_bytes(state)
        return stream

    def _put(self, stream: Stream) -> bytes:
        state = stream.to_bytes()
        self._streams[state] = stream
        while len(self._streams) > self.keep:
            self._streams.popitem(last=False)
        return state


class StoredStreams(Stream):
    """The streams of many keys, stepped together, while another system stores the state of each by its key.

    Arguments:
        keep: number of streams in memory. The state of another is decoded when its key gets rows.
        options: those of `Stream`, with a key and separate weights for each.

    >>> store: dict[str, bytes] = {}
    >>> for value in (1.0, 2.0):
    ...     streams = StoredStreams(keep=2, key="device")  # such as after a restart
    ...     rows = [[key, value] for key in "aabc"]
    ...     for indices, results in streams.advance(("device", "load"), rows, store.get, store.__setitem__):
    ...         print(results.keys, indices.tolist())
    ['a', 'a', 'b'] [0, 1, 0]
    ['c'] [0]
    ['a', 'a', 'b'] [2, 3, 1]
    ['c'] [1]
    """

    def __init__(self, *, keep: int, **options: Any) -> None:
        if keep < 1:
            raise ValueError(f"keep: expected at least 1, got {keep}")
        super().__init__(**options, key_limit=keep)
        self._keep = keep
        self._seen: dict[str, int] = {}
        """Rows of each key in memory."""
        self._take: Callable[[str], bytes | None] = lambda key: None

    def begin(self, names: tuple[str, ...], rows: list[Sequence[Any]]) -> dict[str, Any]:
        """Properties that the states of all keys share; only streams with equal ones can read these states."""
        if self._engine is None:
            self._begin(Block(names, rows[:1], [1]), "rows")
        columns = {name: part for name, part in self.columns.tree().items() if name != "categories"}
        options = {name: option for name, option in self._options_tree.items() if name != "key_limit"}
        return {"options": options, "learner": self._describe_learner(), "columns": columns}

    def advance(
        self,
        names: tuple[str, ...],
        rows: list[Sequence[Any]],
        take: Callable[[str], bytes | None],
        put: Callable[[str, bytes], None],
    ) -> Iterator[tuple[NDArray[np.int64], Results]]:
        """The results of rows that are grouped by key, for as many keys at a time as fit in memory; and the number of
        earlier rows of each row's key.

        `take` returns the stored state of a key, or None for a new one; `put` stores the next one. After an error, or
        if what was put is lost, memory is ahead of the store: `forget` the keys.
        """
        self.begin(names, rows)
        place = names.index(str(self.options.key))
        keys = [str(row[place]) for row in rows]
        starts = {key: at for at, key in reversed(list(enumerate(keys)))}  # the first row of each
        bounds = [*sorted(starts.values())[:: self._keep], len(rows)]
        self._take = take
        for first, last in pairwise(bounds):
            held = list(dict.fromkeys(keys[first:last]))
            # before the rows are encoded, which needs the labels of the keys
            self._assign_slots(held, list(range(len(held))))
            try:
                results = self.feed_block(Block(names, rows[first:last], list(range(first, last))))
            except LineError as error:
                key = keys[error.line]
                at = error.line - starts[key] + 1
                raise StreamError(f"{self.options.key} {key}: row {at} of the batch: {error.problem}") from None
            indices = self._count(results.keys or [])
            for key in held:
                put(key, self._to_bytes(key))
            yield indices, results

    def forget(self, key: str) -> None:
        """Remove a key from memory if it is there."""
        if key in self._keys.slots:
            self._keys.forget(key)
            self._remove(key)

    def seen(self, key: str, state: bytes) -> int:
        """Rows of a key before its state was stored."""
        with self._named(key):
            return int(unpack(state)["seen"])

    @contextmanager
    def _named(self, key: str) -> Iterator[None]:
        """Add the key to errors about its state."""
        try:
            yield
        except MALFORMED as error:  # a BlobError is a ValueError
            problem = error if isinstance(error, BlobError) else f"not the state of a stream like this one: {error!r}"
            raise BlobError(f"{self.options.key} {key}: {problem}") from None

    def _count(self, keys: list[str]) -> NDArray[np.int64]:
        seen, indices = self._seen, []
        for key in keys:
            indices.append(seen[key])
            seen[key] += 1
        return np.array(indices, dtype=np.int64)

    def _to_bytes(self, key: str) -> bytes:
        labels = {name: own.get(key, []) for name, own in self.columns.categories.items()}
        return pack({"seen": self._seen[key], "labels": labels, "state": self._state([self._keys.slots[key]])})

    def _load_stream(self, key: str, slot: int) -> bool:
        state = self._take(key)
        with self._named(key):
            tree: Any = {"seen": 0, "labels": {}} if state is None else unpack(state)
            if state is not None:
                self._restore([slot], tree["state"])
            self._seen[key] = int(tree["seen"])
            for name, own in tree["labels"].items():
                self.columns.categories[name][key] = list(own)
        return state is not None

    def _evict(self, key: str, slot: int) -> None:
        self._remove(key)  # its state is in the store

    def _remove(self, key: str) -> None:
        self._seen.pop(key, None)
        for own in self.columns.categories.values():
            own.pop(key, None)


def forecast_from(
    path: str | os.PathLike[str],
    horizon: int,
    *,
    key: str | None = None,
    features: Iterable[Mapping[str, Any]] | None = None,
) -> Forecast:
    """Forecast from a checkpoint of a stream, without changing it."""
    tree = read_checkpoint(path)
    try:
        stream = Stream(**tree["options"])
        stream._load_tree({**tree, "drift": None})
    except MALFORMED as error:
        raise CheckpointError(f"{path}: not a checkpoint of a stream: {error!r}") from error
    try:
        return stream.forecast(horizon, key=key, features=features)
    finally:
        stream.close()
