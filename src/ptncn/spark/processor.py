"""What Spark calls with the rows of a key."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ptncn.streaming.results import Observation
from ptncn.streaming.stream import Advance

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
else:
    try:
        from pyspark.sql.streaming.stateful_processor import StatefulProcessor
    except ImportError:  # without the extra this can be imported all the same; `forecast` says what is missing
        StatefulProcessor = object


class StreamProcessor(StatefulProcessor):  # type: ignore[misc, unused-ignore]  # Any without the extra
    """Keeps one stream for each key: its blob is the value in the state store."""

    def __init__(self, options: Mapping[str, Any], columns: Sequence[str], timeout: float | None) -> None:
        self.options, self.columns = dict(options), list(columns)
        self.timeout = None if timeout is None else int(timeout * 1000)

    def init(self, handle: StatefulProcessorHandle) -> None:
        import torch

        torch.set_num_threads(1)
        self.handle, self.advance = handle, Advance(**self.options)
        self.blob = handle.getValueState("stream", "blob binary, seen long")

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:  # noqa: N802
        import pandas as pd

        order = self.options["timestamp"]
        batch = pd.concat(list(rows)).sort_values(order, kind="stable")
        state, seen = self.blob.get() or (None, 0)
        named = batch.where(batch.notna(), None).to_dict("records")
        state, observations = self.advance(None if state is None else bytes(state), named)
        self.blob.update((state, seen + len(observations)))
        if self.timeout is not None:
            for timer in list(self.handle.listTimers()):
                self.handle.deleteTimer(timer)
            self.handle.registerTimer(timerValues.getCurrentProcessingTimeInMs() + self.timeout)
        yield self._table([_row(seen + i, out) for i, out in enumerate(observations)])

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[pd.DataFrame]:  # noqa: N802
        """Forget a key that fell silent."""
        _, seen = self.blob.get() or (None, 0)
        self.blob.clear()
        yield self._table([{"key": str(key[0]), "index": seen, "alarm": False, "silent": True}])

    def close(self) -> None:
        pass

    def _table(self, rows: list[dict[str, Any]]) -> pd.DataFrame:
        import pandas as pd

        return pd.DataFrame(rows, columns=self.columns)


def _row(index: int, out: Observation) -> dict[str, Any]:
    """An observation by the names of `output_schema`."""
    row: dict[str, Any] = {"key": out.key, "index": index, "timestamp": None, "silent": False}
    row["timestamp"] = None if out.timestamp is None else str(out.timestamp)
    for name, value in out.observed.items():
        row[name] = value
        row[f"{name}_predicted"] = None if out.prediction is None else out.prediction[name]
        for step, ahead in enumerate(out.forecast, start=1):
            row[f"{name}_ahead{step}"] = ahead[name]
            if out.lower:
                row[f"{name}_ahead{step}_lower"] = out.lower[step - 1][name]
                row[f"{name}_ahead{step}_upper"] = out.upper[step - 1][name]
    return row | {"surprise": out.surprise, "anomaly": out.anomaly, "alarm": out.alarm, "severity": out.severity}
