"""Quix Streams: the state of a device is a value in its state store."""

from __future__ import annotations

import base64
from typing import Any

from ptncn.streaming import Advance

advance = Advance(key="device", targets=("load",), timestamp="time", horizon=2)


def process(row: dict[str, Any], state: Any) -> dict[str, Any]:
    """The row with its prediction, forecast and alarm. Quix commits the state with the offset."""
    held = state.get("stream")
    blob, (out,) = advance(None if held is None else base64.b64decode(held), [row])
    state.set("stream", base64.b64encode(blob).decode())
    return {**row, "predicted": out.prediction, "forecast": out.forecast, "anomaly": out.anomaly, "alarm": out.alarm}


def forecasts(app: Any) -> Any:
    rows = app.dataframe(app.topic("readings", key_deserializer="str", value_deserializer="json"))
    return rows.apply(process, stateful=True)


def main() -> None:
    from quixstreams import Application

    app = Application(broker_address="localhost:9092", processing_guarantee="exactly-once")
    forecasts(app).to_topic(app.topic("forecasts", value_serializer="json"))
    app.run()


if __name__ == "__main__":
    main()
