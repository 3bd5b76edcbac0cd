"""The first sequences of the random walk over the public calls; `make asan` takes 10,000 under sanitizers."""

import importlib.util
from pathlib import Path

import pytest

from ptncn import kernels

PATH = Path(__file__).resolve().parents[2] / "benchmarks/reliability/walk.py"


@pytest.mark.skipif(kernels.load() is None, reason="the compiled kernel was not built: no C compiler")
@pytest.mark.parametrize("seed", range(40))
def test_the_kernel_and_pytorch_walk_alike(seed, tmp_path):
    spec = importlib.util.spec_from_file_location("walk", PATH)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert sum(module.walk(seed, tmp_path).values()) == 9
