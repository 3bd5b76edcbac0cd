"""Contestants take turns, and nobody is left out. No test looks at how long anything takes."""

import time

import pytest

from ptncn.bench import timing
from ptncn.bench.timing import Contestant, interleave


def _counting(log: list[str], name: str) -> Contestant:
    return Contestant(name, lambda steps: log.append(name))


def test_they_take_turns() -> None:
    log: list[str] = []
    interleave([_counting(log, "a"), _counting(log, "b")], budget=0.0, least=4)
    measured = log[-8:]
    assert measured == ["a", "b"] * 4


def test_each_is_sampled_however_little_time_there_is() -> None:
    samples = interleave([_counting([], "a"), _counting([], "b")], budget=0.0, least=3)
    assert [len(each.ms) for each in samples.values()] == [3, 3]


def test_what_is_very_slow_is_sampled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timing, "SLOW", 0.0)
    slow = Contestant("slow", lambda steps: time.sleep(0.01))
    assert len(interleave([slow], budget=0.0, least=5)["slow"].ms) == 1


def test_what_is_very_slow_comes_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timing, "SLOW", 0.005)
    log: list[str] = []
    slow = Contestant("slow", lambda steps: (log.append("slow"), time.sleep(0.01)))
    samples = interleave([slow, _counting(log, "a")], budget=0.0, least=3)
    assert log[-4:] == ["a", "a", "a", "slow"]
    assert list(samples) == ["slow", "a"]


def test_steps_come_in_whole_units() -> None:
    taken: list[int] = []
    samples = interleave([Contestant("a", taken.append, unit=20)], budget=0.0, least=2)
    assert all(steps % 20 == 0 for steps in taken)
    assert samples["a"].steps == taken[-1]


def test_a_summary_is_median_and_spread() -> None:
    samples = interleave([Contestant("a", lambda steps: None)], budget=0.0, least=1)["a"]
    samples.ms = [1.0, 2.0, 3.0, 4.0, 100.0]
    assert samples.summary() == {"ms": 3.0, "iqr": 2.0, "samples": 5, "steps": samples.steps}
