"""Streams in the hands of another system, which keeps their states as bytes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ptncn.streaming.results import Observation
from ptncn.streaming.stream import Stream


class Advance:
    """From the state of a stream and new rows to its next state, and what was made of each row.

    A state is what the call before returned for the same stream, or None where it begins. Nothing else is remembered
    from call to call, so an engine that stores states together with its position in the source processes every row
    exactly once. `options` are those of `Stream`.

    >>> advance = Advance(horizon=1)
    >>> state, first = advance(None, [{"load": 1.0}, {"load": 2.0}])
    >>> state, then = advance(state, [{"load": 3.0}])
    >>> [out.observed["load"] for out in first + then]
    [1.0, 2.0, 3.0]
    """

    def __init__(self, **options: Any) -> None:
        Stream(**options)  # refuses bad options now, not at the first row
        self.options = options
        self._stream: Stream | None = None

    def __call__(self, state: bytes | None, rows: Iterable[Any]) -> tuple[bytes, list[Observation]]:
        if state is None:
            stream = Stream(**self.options)
        else:
            stream = self._stream = self._stream or Stream(**self.options)
            stream.load_bytes(state)
        observations = stream.feed(rows)
        return stream.to_bytes(), observations
