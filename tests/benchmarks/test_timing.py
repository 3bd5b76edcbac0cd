"""Cases take turns and each is sampled. No test depends on how long anything takes."""

import pytest

from speed import timing
from speed.timing import Case, interleave


def _counting(log: list[str], name: str) -> Case:
    return Case(name, lambda steps: log.append(name))


def test_cases_take_turns() -> None:
    log: list[str] = []
    interleave([_counting(log, "a"), _counting(log, "b")], budget=0.0, min_samples=4)
    measured = log[-8:]
    assert measured == ["a", "b"] * 4


def test_each_case_is_sampled_even_without_a_budget() -> None:
    samples = interleave([_counting([], "a"), _counting([], "b")], budget=0.0, min_samples=3)
    assert [len(each.ms) for each in samples.values()] == [3, 3]


def test_a_very_slow_case_is_sampled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timing, "SLOW", -1.0)
    slow = Case("slow", lambda steps: None)
    assert len(interleave([slow], budget=0.0, min_samples=5)["slow"].ms) == 1


def test_a_very_slow_case_comes_last(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, log = [0.0], []
    monkeypatch.setattr(timing.time, "perf_counter", lambda: clock[0])

    def crawl(steps: int) -> None:
        log.append("slow")
        clock[0] += 2 * timing.SLOW

    slow = Case("slow", crawl)
    samples = interleave([slow, _counting(log, "a")], budget=0.0, min_samples=3)
    assert log[-4:] == ["a", "a", "a", "slow"]
    assert list(samples) == ["slow", "a"]


def test_steps_come_in_whole_units() -> None:
    taken: list[int] = []
    samples = interleave([Case("a", taken.append, unit=20)], budget=0.0, min_samples=2)
    assert all(steps % 20 == 0 for steps in taken)
    assert samples["a"].steps == taken[-1]


def test_a_summary_is_median_and_spread() -> None:
    samples = interleave([Case("a", lambda steps: None)], budget=0.0, min_samples=1)["a"]
    samples.ms = [1.0, 2.0, 3.0, 4.0, 100.0]
    assert samples.summary() == {"ms": 3.0, "iqr": 2.0, "samples": 5, "steps": samples.steps}
