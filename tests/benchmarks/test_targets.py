"""Targets are checked against the figures of the record."""

from typing import Any

import example_record

from speed.targets import check_targets


def _target(record: dict[str, Any], text: str) -> dict[str, Any]:
    (target,) = [each for each in check_targets(record) if text in each["target"]]
    return target


def test_a_target_is_met_or_missed_by_its_ratio() -> None:
    record = example_record.record()
    near = "4096-3x1000, batch 20: "
    assert _target(record, f"{near}ptncn-sgd at most 1.15 × products")["met"]  # 11 / 10
    assert not _target(record, f"{near}ptncn-sgd-transpose at most 1.15 × products-learnt-e")["met"]  # 15 / 12
    assert _target(record, f"{near}ptncn-sgd faster than lstm-bptt")["met"]
    assert _target(record, f"{near}ptncn-rmsprop at most 1.6 × ptncn-sgd")["met"]
    assert not _target(record, f"{near}ptncn-adam at most 1.6 × ptncn-sgd")["met"]  # 22 / 11
    assert _target(record, "4096-3x1000, batch 1: ptncn-sgd at most 1.5 × read")["met"]  # 11 / 8
    assert not _target(record, "4096-3x1000, batch 1: ptncn-sgd-transpose at most 1.5 × read")["met"]  # 15 / 8


def test_adafactor_may_take_twice_as_long_as_plain_descent_where_updates_are_deferred() -> None:
    record = example_record.record()
    large = example_record.SHAPES[1]
    words = "ptncn-adafactor at most 2 × ptncn-sgd"
    assert not any(words in each["target"] for each in check_targets(record))
    record["rows"].append(example_record.row(large, "ptncn-adafactor", 21.9))
    assert _target(record, words)["met"]  # 21.9 / 11
    record["rows"][-1]["ms"] = 22.1
    assert not _target(record, words)["met"]


def test_a_memory_may_add_half_the_time_of_a_step() -> None:
    record = example_record.record()
    times = {"shape": "49-1x600", "batch": 50, "of": "text", "plain_ms": 2.0, "ms": 2.9}
    record["trace-memory"] = [{"option": "memory of 128", **times}]
    assert _target(record, "a step with a memory of 128 at most 1.5 ×")["met"]
    record["trace-memory"][-1]["ms"] = 3.1
    assert not _target(record, "a step with a memory of 128")["met"]


def test_observations_a_second_are_counted() -> None:
    target = _target(example_record.record(), "observations a second")
    assert target["met"]
    assert target["reached"] == "9,091 a second"


def test_growing_memory_is_a_miss() -> None:
    record = example_record.record()
    words = "peak memory does not grow"
    assert _target(record, words)["met"]
    record["memory"]["lengths"][1]["peak"] += 10e6
    assert not _target(record, words)["met"]


def test_slowing_down_and_denormal_numbers_are_misses() -> None:
    record = example_record.record()
    record["long"][0] |= {"last_ms": 0.06, "denormals": 3}
    assert not _target(record, "last tenth")["met"]
    assert not _target(record, "denormal")["met"]


def test_a_target_without_figures_is_left_out() -> None:
    assert check_targets({"rows": []}) == []
