"""Flink: a keyed process function with the blob as a value state; Flink's checkpoints make it exactly once."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from ptncn.streaming import Advance

OPTIONS: dict[str, Any] = {"key": "device", "targets": ("load",), "timestamp": "time", "horizon": 2}


def process(advance: Advance, state: Any, row: dict[str, Any]) -> Iterator[Any]:
    """Advance the stream of a row's device; `state` is a ValueState of bytes."""
    blob, results = advance(state.value(), [row])
    state.update(blob)
    yield from results


def main() -> None:
    from pyflink.common import Types
    from pyflink.datastream import KeyedProcessFunction, StreamExecutionEnvironment
    from pyflink.datastream.state import ValueStateDescriptor

    class Forecast(KeyedProcessFunction):
        def open(self, context: Any) -> None:
            self.advance = Advance(**OPTIONS)
            self.state = context.get_state(ValueStateDescriptor("stream", Types.PICKLED_BYTE_ARRAY()))

        def process_element(self, row: Any, context: Any) -> Iterator[str]:
            yield from (f"{out.key} {out.forecast} {out.alarm}" for out in process(self.advance, self.state, row))

    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_python_executable(sys.executable)
    rows = [{"device": f"d{i % 2}", "time": 60.0 * (i // 2), "load": float(i)} for i in range(20)]
    env.from_collection(rows).key_by(lambda row: row["device"]).process(Forecast(), Types.STRING()).print()
    env.execute()


if __name__ == "__main__":
    main()
