import pytest
import torch


@pytest.fixture(autouse=True, scope="session")
def _one_thread() -> None:
    """Test workers share the cores; more threads each would only get in each other's way."""
    torch.set_num_threads(1)
