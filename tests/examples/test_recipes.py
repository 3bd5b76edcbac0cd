"""Recipes for other engines give the results of a single process; if an engine is installed, it runs too."""

from __future__ import annotations

import importlib.util
import json
import sqlite3
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ptncn.streaming import Advance, Stream

RECIPES = Path(__file__).parents[2] / "examples" / "recipes"
OPTIONS = {"key": "device", "targets": ("load",), "timestamp": "time", "horizon": 2}
ROWS = [{"device": f"d{i % 2}", "time": 60.0 * (i // 2), "load": float(i * i % 7)} for i in range(24)]


def recipe(name: str):
    spec = importlib.util.spec_from_file_location(name, RECIPES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def expected() -> list:
    return [out.forecast for out in Stream(**OPTIONS).feed(ROWS)]


def test_a_kafka_consumer_does_each_message_once(expected):
    kafka, database, outputs = recipe("kafka_consumer"), sqlite3.connect(":memory:"), []
    for offset, row in [*enumerate(ROWS[:12]), *enumerate(ROWS)]:  # the broker repeats what was not acknowledged
        value = json.dumps(row).encode()
        message = SimpleNamespace(partition=lambda: 0, offset=lambda at=offset: at, value=lambda text=value: text)
        outputs += kafka.process(database, message)
    database.close()
    assert [out.forecast for out in outputs] == expected


def test_quix_streams_keeps_states(expected):
    quix, states, outputs = recipe("quix_streams"), {"d0": {}, "d1": {}}, []
    for row in ROWS:
        state = states[row["device"]]
        outputs.append(quix.process(row, SimpleNamespace(get=state.get, set=state.__setitem__))["forecast"])
    assert outputs == expected


def test_flink_keeps_states(expected):
    flink, advance, states, outputs = recipe("flink"), Advance(**OPTIONS), {}, []
    for row in ROWS:
        key = row["device"]
        state = SimpleNamespace(
            value=lambda key=key: states.get(key), update=lambda blob, key=key: states.update({key: blob})
        )
        outputs += flink.process(advance, state, row)
    assert [out.forecast for out in outputs] == expected


def test_ray_actors_continue_from_the_states_that_they_returned(expected):
    worker = recipe("ray_actors").Worker()
    outputs = [out for row in ROWS[:12] for out in worker.process([row])]
    worker = recipe("ray_actors").Worker(worker.states())
    outputs += [out for row in ROWS[12:] for out in worker.process([row])]
    assert [out.forecast for out in outputs] == expected


def needs(package: str) -> None:
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"needs {package}")


@pytest.mark.parametrize(("name", "package"), [("flink", "pyflink"), ("ray_actors", "ray")])
def test_the_engine_runs_if_its_package_is_installed(name, package):
    needs(package)
    result = subprocess.run([sys.executable, str(RECIPES / f"{name}.py")], capture_output=True, text=True, timeout=280)
    assert result.returncode == 0, result.stderr[-2000:]
    count, devices = 20, {"flink": 2, "ray_actors": 4}[name]
    rows = [{"device": f"d{i % devices}", "time": 60.0 * (i // devices), "load": float(i)} for i in range(count)]
    for out in Stream(**OPTIONS).feed(rows):
        assert str(out.forecast) in result.stdout


@pytest.fixture
def cluster() -> SimpleNamespace:
    """The mock cluster included in librdkafka: real sockets, with the rows in the topic `readings`."""
    needs("confluent_kafka")
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": "none", "test.mock.num.brokers": 1, "log_level": 0})
    for row in ROWS:
        producer.produce("readings", key=row["device"], value=json.dumps(row))
    assert producer.flush(60) == 0
    (broker,) = producer.list_topics("readings", timeout=60).brokers.values()
    return SimpleNamespace(
        address=f"{broker.host}:{broker.port}", topics=lambda: producer.list_topics(timeout=60).topics
    )


def by_device(outs: Iterable[tuple[str, Any]]) -> dict[str, list]:
    """Partitions of a topic arrive in any order, but the rows of a device stay in order."""
    by_key: dict[str, list] = {}
    for device, forecast in outs:
        by_key.setdefault(device, []).append(forecast)
    return by_key


def test_a_kafka_consumer_reads_a_cluster(expected, cluster):
    from confluent_kafka import Consumer

    kafka, database, outputs = recipe("kafka_consumer"), sqlite3.connect(":memory:"), []
    consumer = Consumer({"bootstrap.servers": cluster.address, "group.id": "ptncn", "auto.offset.reset": "earliest"})
    consumer.subscribe(["readings"])
    while len(outputs) < len(ROWS):
        message = consumer.poll(60)
        assert message is not None
        outputs += kafka.process(database, message)
    consumer.close()
    database.close()
    expected_by_device = by_device((row["device"], forecast) for row, forecast in zip(ROWS, expected, strict=True))
    assert by_device((out.key, out.forecast) for out in outputs) == expected_by_device


def test_quix_streams_reads_a_cluster(expected, cluster, tmp_path):
    needs("quixstreams")
    from quixstreams import Application
    from quixstreams.models.topics import TopicConfig, TopicManager

    class Admin:
        """The mock cluster does not report the configuration of its topics."""

        def inspect_topics(self, names: list[str], timeout: float | None = None) -> dict[str, TopicConfig]:
            settings = {"cleanup.policy": "delete", "retention.ms": "-1"}
            return {name: TopicConfig(num_partitions=4, replication_factor=1, extra_config=settings) for name in names}

        def list_topics(self, timeout: float | None = None) -> Any:
            return cluster.topics()

    app = Application(
        broker_address=cluster.address,
        consumer_group="ptncn",
        auto_offset_reset="earliest",
        auto_create_topics=False,
        use_changelog_topics=False,
        state_dir=tmp_path,
        topic_manager=TopicManager(topic_admin=Admin(), consumer_group="ptncn"),
        loglevel=None,
    )
    recipe("quix_streams").forecasts(app)
    outputs = app.run(count=len(ROWS), timeout=120)
    expected_by_device = by_device((row["device"], forecast) for row, forecast in zip(ROWS, expected, strict=True))
    assert by_device((row["device"], row["forecast"]) for row in outputs) == expected_by_device
