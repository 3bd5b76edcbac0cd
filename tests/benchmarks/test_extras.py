"""The extras, at tiny sizes."""

import doctest
import importlib

import pytest
import torch

from ptncn import kernels
from speed import extras, machine, memory, options
from speed.machine import MAX_LOAD, BackgroundLoad, describe_machine, warning
from speed.shapes import Shape

TINY = Shape.parse("6-2x5@2")


def test_memory_is_measured_in_a_separate_process() -> None:
    result = memory.in_subprocess("ptncn-sgd", "1000-1x1000@1", 3)
    biases = 2 * 1000
    assert result["held"] == 4 * (4 * 1000**2 + biases)
    assert result["held"] < result["peak"] < 10 * result["held"]
    assert (result["what"], result["shape"], result["batch"], result["steps"]) == ("ptncn-sgd", "1000-1x1000", 1, 3)


def test_a_failing_subprocess_reports_its_error() -> None:
    with pytest.raises(RuntimeError, match="unknown learner"):
        memory.in_subprocess("nothing", "8-1x8@1", 3)


def test_growth_has_times_and_an_exponent() -> None:
    result = extras.measure_growth(0.0, units=(3, 5, 7), layers=(1, 2, 3), batches=(1, 2), width=6)
    assert list(result["units"]) == ["3", "5", "7"]
    assert list(result["batch"]) == ["1", "2"]
    assert 0 <= result["layers_r2"] <= 1
    assert isinstance(result["exponent_units"], float)


@pytest.mark.parametrize("what", ["ptncn-sgd", "ptncn-adam"])
def test_a_long_run_has_a_beginning_and_an_end(what: str) -> None:
    result = extras.measure_long_run(what, Shape.parse("4-2x3@1"), 1000)
    assert result["first_ms"] > 0
    assert result["last_ms"] > 0
    assert result["denormals"] == 0


def test_denormal_numbers_are_counted() -> None:
    tensors = [torch.tensor([1e-39, -1e-45, 1e-37]), torch.tensor([1e-310], dtype=torch.float64), torch.tensor([1])]
    assert extras.count_denormals(tensors) == 3


def test_the_generator_takes_a_share_of_the_time() -> None:
    result = extras.measure_generator(0.0, Shape.parse("1024-1x4@2"), canvas=32)
    assert 0 < result["share"] < 1
    assert result["frames"] == 20


def test_the_number_of_threads_is_restored() -> None:
    before = torch.get_num_threads()
    assert options.threads(TINY, 0.0)["ms"] > 0
    assert torch.get_num_threads() == before


def test_bfloat16_is_measured() -> None:
    assert options.bfloat16(TINY, 0.0)["option"] == "bfloat16"


def test_a_step_with_a_memory_is_timed_in_turn_with_one_without() -> None:
    result = options.trace_memory(TINY, 0.0, threads=1)
    assert result["option"] == "memory of 128"
    assert min(result["ms"], result["plain_ms"]) > 0


def test_a_compiler_that_exceeds_its_time_limit_is_reported() -> None:
    assert options.compiled(TINY, timeout=0.01)["failed"] == "not compiled after 0 seconds"


@pytest.mark.skipif(kernels.load() is None, reason="the compiled kernel was not built: no C compiler")
def test_a_profile_has_the_share_of_each_part() -> None:
    result = extras.profile_step(TINY, min_seconds=0.01)
    assert list(result["shares"]) == ["products", "activations", "norms", "updates", "the rest"]
    assert all(share > 0 for share in result["shares"].values())
    assert sum(result["shares"].values()) == pytest.approx(1)


def test_a_busy_machine_gives_a_warning() -> None:
    assert warning(describe_machine(load=0.0)) is None
    assert str(MAX_LOAD + 1) in (warning(describe_machine(load=MAX_LOAD + 1)) or "")
    assert "other processes used 90%" in (warning({**describe_machine(load=0.0), "others": 0.9}) or "")


def test_finished_children_do_not_count_as_background_load(monkeypatch: pytest.MonkeyPatch) -> None:
    busy, own = iter([100.0, 103.0]), iter([10.0, 12.0])
    monkeypatch.setattr(machine, "busy_seconds", lambda: next(busy))
    monkeypatch.setattr(machine, "_own_seconds", lambda: next(own))
    monkeypatch.setattr(machine.os, "cpu_count", lambda: 2)
    clock = iter([7.0, 12.0])
    monkeypatch.setattr(machine.time, "perf_counter", lambda: next(clock))
    assert BackgroundLoad().share() == pytest.approx((3.0 - 2.0) / (2 * 5.0))


@pytest.mark.parametrize("module", ["shapes", "sections", "machine", "extras"])
def test_docstring_examples_run(module: str) -> None:
    result = doctest.testmod(importlib.import_module(f"speed.{module}"))
    assert (result.failed, result.attempted > 0) == (0, True)
