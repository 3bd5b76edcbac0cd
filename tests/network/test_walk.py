"""The first sequences of a random walk over the public calls; `make asan` runs 10,000 under sanitizers."""

import pytest

from ptncn import kernels
from reliability.walk import walk


@pytest.mark.skipif(kernels.load() is None, reason="the compiled kernel was not built: no C compiler")
@pytest.mark.parametrize("seed", range(40))
def test_the_kernel_and_pytorch_agree_on_a_random_walk(seed, tmp_path):
    assert sum(walk(seed, tmp_path).values()) == 9
