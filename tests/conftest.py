import os

# Test workers and the programs they start share the cores, so each uses one thread, and threads that a test asks for do
# not spin while they wait. These variables only have an effect before the libraries are loaded.
os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive"}

import pytest
from hypothesis import HealthCheck, settings

import ptncn.network.ptncn
from ptncn import kernels

ANY_SPEED = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}  # the machine may be busy
settings.register_profile("default", derandomize=True, database=None, **ANY_SPEED)
settings.register_profile("fuzz", derandomize=False, max_examples=2_000, print_blob=True, **ANY_SPEED)
settings.load_profile("default")  # `make fuzz` uses the other one: new examples each time


@pytest.fixture
def in_pytorch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take steps in PyTorch."""
    monkeypatch.setattr(ptncn.network.ptncn, "bind_kernel", lambda *_: None)


@pytest.fixture(params=["kernel", "pytorch"])
def either_path(request: pytest.FixtureRequest) -> str:
    """Run the test once with the compiled kernel and once in PyTorch."""
    if request.param == "pytorch":
        request.getfixturevalue("in_pytorch")
    elif kernels.load() is None:
        pytest.skip("the compiled kernel was not built: no C compiler")
    return request.param
