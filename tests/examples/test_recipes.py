"""Recipes for other engines say what one process says; with an engine's package, the engine itself runs too."""

from __future__ import annotations

import importlib.util
import json
import sqlite3
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

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
    kafka, base, found = recipe("kafka_consumer"), sqlite3.connect(":memory:"), []
    for offset, row in [*enumerate(ROWS[:12]), *enumerate(ROWS)]:  # the broker repeats what was not acknowledged
        value = json.dumps(row).encode()
        message = SimpleNamespace(partition=lambda: 0, offset=lambda at=offset: at, value=lambda text=value: text)
        found += kafka.process(base, message)
    base.close()
    assert [out.forecast for out in found] == expected


def test_quix_streams_keeps_states(expected):
    quix, states, found = recipe("quix_streams"), {"d0": {}, "d1": {}}, []
    for row in ROWS:
        held = states[row["device"]]
        found.append(quix.process(row, SimpleNamespace(get=held.get, set=held.__setitem__))["forecast"])
    assert found == expected


def test_flink_keeps_states(expected):
    flink, advance, states, found = recipe("flink"), Advance(**OPTIONS), {}, []
    for row in ROWS:
        key = row["device"]
        state = SimpleNamespace(
            value=lambda key=key: states.get(key), update=lambda blob, key=key: states.update({key: blob})
        )
        found += flink.process(advance, state, row)
    assert [out.forecast for out in found] == expected


def test_ray_actors_go_on_from_the_states_they_handed_out(expected):
    worker = recipe("ray_actors").Worker()
    found = [out for row in ROWS[:12] for out in worker.process([row])]
    worker = recipe("ray_actors").Worker(worker.states())
    found += [out for row in ROWS[12:] for out in worker.process([row])]
    assert [out.forecast for out in found] == expected


@pytest.mark.parametrize(("name", "package"), [("flink", "pyflink"), ("ray_actors", "ray")])
def test_the_engine_runs_where_its_package_is(name, package):
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"needs {package}")
    subprocess.run([sys.executable, str(RECIPES / f"{name}.py")], check=True, timeout=300)
