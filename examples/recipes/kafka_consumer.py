"""A plain Kafka consumer (confluent-kafka): states and offsets are committed in one SQLite transaction."""

from __future__ import annotations

import json
import sqlite3
from typing import Any

from ptncn.streaming import Advance

advance = Advance(key="device", targets=("load",), timestamp="time", horizon=2)


def process(base: sqlite3.Connection, message: Any) -> list[Any]:
    """Advance the stream of a message's device, unless this offset was already processed."""
    base.execute("CREATE TABLE IF NOT EXISTS streams (key TEXT PRIMARY KEY, state BLOB)")
    base.execute("CREATE TABLE IF NOT EXISTS offsets (part INTEGER PRIMARY KEY, next INTEGER)")
    done = base.execute("SELECT next FROM offsets WHERE part = ?", (message.partition(),)).fetchone()
    if done is not None and message.offset() < done[0]:
        return []
    row = json.loads(message.value())
    held = base.execute("SELECT state FROM streams WHERE key = ?", (row["device"],)).fetchone()
    state, results = advance(held[0] if held else None, [row])
    with base:
        base.execute("INSERT OR REPLACE INTO streams VALUES (?, ?)", (row["device"], state))
        base.execute("INSERT OR REPLACE INTO offsets VALUES (?, ?)", (message.partition(), message.offset() + 1))
    return results


def main() -> None:
    from confluent_kafka import Consumer

    settings = {"bootstrap.servers": "localhost:9092", "group.id": "ptncn", "auto.offset.reset": "earliest"}
    consumer, base = Consumer(settings), sqlite3.connect("streams.db")
    consumer.subscribe(["readings"])
    while True:
        message = consumer.poll(1.0)
        if message is not None and message.error() is None:
            for out in process(base, message):
                print(out.key, out.prediction, out.forecast, out.alarm)


if __name__ == "__main__":
    main()
