import os

# Test workers and the programs they start share the cores. More threads would only get in each other's way, and those
# of tests that ask for some do not spin while they wait. All this counts only before the libraries are loaded.
os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive"}

import pytest
from hypothesis import HealthCheck, settings

import ptncn.network.ptncn
from ptncn import kernels

ANY_SPEED = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}  # on a busy machine too
settings.register_profile("default", derandomize=True, database=None, **ANY_SPEED)
settings.register_profile("fuzz", derandomize=False, max_examples=2_000, print_blob=True, **ANY_SPEED)
settings.load_profile("default")  # `make fuzz` asks for the other one: new examples each time


@pytest.fixture
def in_pytorch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps are taken in PyTorch."""
    monkeypatch.setattr(ptncn.network.ptncn, "bind_kernel", lambda *_: None)


@pytest.fixture(params=["kernel", "pytorch"])
def either_path(request: pytest.FixtureRequest) -> str:
    """Once by the compiled kernel, once by its twin in PyTorch."""
    if request.param == "pytorch":
        request.getfixturevalue("in_pytorch")
    elif kernels.load() is None:
        pytest.skip("the compiled kernel was not built: no C compiler")
    return request.param
