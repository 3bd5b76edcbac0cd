"""What is measured beside the times of a step, at sizes that take no time."""

import subprocess
import sys

import pytest
import torch

from ptncn import kernels
from ptncn.bench import endurance, memory, options
from ptncn.bench.company import Company
from ptncn.bench.growth import measure_growth
from ptncn.bench.machine import BUSY, describe_machine, warning
from ptncn.bench.profiling import profile_step
from ptncn.bench.shapes import Shape

TINY = Shape.parse("6-2x5@2")


def test_memory_is_that_of_a_process_of_its_own() -> None:
    found = memory.in_a_process("ptncn-sgd", "1000-1x1000@1", 3)
    biases = 2 * 1000
    assert found["held"] == 4 * (4 * 1000**2 + biases)
    assert found["held"] < found["peak"] < 10 * found["held"]
    assert (found["what"], found["shape"], found["batch"], found["steps"]) == ("ptncn-sgd", "1000-1x1000", 1, 3)


def test_a_process_that_fails_says_why() -> None:
    with pytest.raises(RuntimeError, match="unknown learner"):
        memory.in_a_process("nothing", "8-1x8@1", 3)


def test_growth_has_times_and_an_exponent() -> None:
    found = measure_growth(0.0, units=(3, 5, 7), layers=(1, 2, 3), batches=(1, 2), width=6)
    assert list(found["units"]) == ["3", "5", "7"]
    assert list(found["batch"]) == ["1", "2"]
    assert 0 <= found["layers_r2"] <= 1
    assert isinstance(found["exponent_units"], float)


@pytest.mark.parametrize("what", ["ptncn-sgd", "ptncn-adam"])
def test_a_long_run_has_a_beginning_and_an_end(what: str) -> None:
    found = endurance.measure_long_run(what, Shape.parse("4-2x3@1"), 1000)
    assert found["first_ms"] > 0
    assert found["last_ms"] > 0
    assert found["denormals"] == 0


def test_denormal_numbers_are_found() -> None:
    tensors = [torch.tensor([1e-39, -1e-45, 1e-37]), torch.tensor([1e-310], dtype=torch.float64), torch.tensor([1])]
    assert endurance.count_denormals(tensors) == 3


def test_data_have_a_share() -> None:
    found = endurance.measure_generator(0.0, Shape.parse("1024-1x4@2"), canvas=32)
    assert 0 < found["share"] < 1
    assert found["frames"] == 20


def test_threads_are_put_back() -> None:
    before = torch.get_num_threads()
    assert options.threads(TINY, 0.0)["ms"] > 0
    assert torch.get_num_threads() == before


def test_half_the_bytes_are_measured() -> None:
    assert options.bfloat16(TINY, 0.0)["option"] == "bfloat16"


def test_a_compiler_that_takes_too_long_is_reported() -> None:
    assert options.compiled(TINY, patience=0.01)["failed"] == "not compiled after 0 seconds"


@pytest.mark.skipif(kernels.load() is None, reason="the compiled kernel was not built: no C compiler")
def test_a_profile_says_where_the_time_goes() -> None:
    found = profile_step(TINY, least=0.01)
    assert list(found["shares"]) == ["products", "activations", "norms", "updates", "the rest"]
    assert all(share > 0 for share in found["shares"].values())
    assert sum(found["shares"].values()) == pytest.approx(1)


def test_a_busy_machine_is_noticed() -> None:
    assert warning(describe_machine(load=0.0)) is None
    assert str(BUSY + 1) in (warning(describe_machine(load=BUSY + 1)) or "")
    assert "others took 90%" in (warning({**describe_machine(load=0.0), "others": 0.9}) or "")


def test_company_is_noticed() -> None:
    company = Company()
    subprocess.run([sys.executable, "-c", "sum(range(10**6))"], check=True)
    assert 0 <= company.share() <= 1
