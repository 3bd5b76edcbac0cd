"""Networks in one array take the same steps as separate networks."""

import numpy as np
import pytest
import torch

from ptncn import kernels
from ptncn.network.slots import NetworkArray, is_plain, pack, unpack
from ptncn.streaming import default_learner

needs_kernel = pytest.mark.skipif(kernels.load() is None, reason="the kernel was not built")


def step_alone(network, state, x):
    """One row through `network.step`, as in a bank of separate networks."""
    row = torch.from_numpy(x[None])
    missing = row.isnan()
    if missing.all() and not state.steps:
        return np.zeros(sum(network.sizes[1:]), dtype=np.float32)
    if missing.any():
        row = torch.where(missing, network.predict(state), row)
    return torch.cat(network.step(row, state, learn=not bool(missing.all())).corrected, 1).numpy()[0]


@needs_kernel
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("hidden", [(8,), (6, 4)])
def test_networks_in_an_array_equal_separate_networks_bit_for_bit(hidden, threads, monkeypatch):
    monkeypatch.setattr("ptncn.network.slots.SHARE", 5)
    monkeypatch.setenv("OMP_NUM_THREADS", str(threads))
    rng = np.random.default_rng(0)
    slots, x = rng.integers(0, 3, 60), rng.normal(size=(60, 4)).astype(np.float32)
    x[rng.random(x.shape) < 0.1] = np.nan
    x[[0, 30]] = np.nan
    array = NetworkArray(default_learner(4, hidden=hidden))
    array.resize(2)
    array.resize(3)
    result = np.concatenate([array.step(slots[part], x[part], learn=True) for part in (slice(0, 25), slice(25, 60))])
    networks = [default_learner(4, hidden=hidden) for _ in range(3)]
    states = [network.begin(1) for network in networks]
    expected = [step_alone(networks[slot], states[slot], row) for slot, row in zip(slots, x, strict=True)]
    np.testing.assert_array_equal(result, expected)
    for slot in range(3):
        np.testing.assert_array_equal(array.rows[slot], pack(networks[slot], states[slot]))
        assert array.steps[slot] == states[slot].steps


@needs_kernel
def test_all_slots_use_the_step_size_of_the_network():
    arrays = [NetworkArray(default_learner(2, hidden=(4,))) for _ in range(2)]
    x = np.random.default_rng(1).normal(size=(5, 2)).astype(np.float32)
    for array, lr in zip(arrays, (1e-3, 1e-2), strict=True):
        array.resize(1)
        array.network.lr = lr
        array.step(np.zeros(5, dtype=np.int64), x, learn=True)
    other = NetworkArray(default_learner(2, hidden=(4,), lr=1e-2))
    other.resize(1)
    other.step(np.zeros(5, dtype=np.int64), x, learn=True)
    np.testing.assert_array_equal(arrays[1].rows, other.rows)
    assert (arrays[0].rows != other.rows).any()


@needs_kernel
def test_an_unknown_slot_is_rejected():
    array = NetworkArray(default_learner(2, hidden=(4,)))
    array.resize(2)
    before = array.rows.copy()
    for slot in (-1, 2):
        with pytest.raises(kernels.KernelError, match="out of range"):
            array.step(np.array([0, slot]), np.zeros((2, 2), dtype=np.float32), learn=True)
    np.testing.assert_array_equal(array.rows, before)


def test_a_row_can_be_copied_back_into_a_network():
    first, second = (default_learner(2, hidden=(4,)) for _ in range(2))
    states = first.begin(1), second.begin(1)
    for value in (0.5, -1.0, 0.25):
        first.step(torch.full((1, 2), value), states[0])
    unpack(pack(first, states[0]), second, states[1])
    np.testing.assert_array_equal(pack(first, states[0]), pack(second, states[1]))
    with pytest.raises(ValueError, match="of float32"):
        unpack(np.zeros(3, dtype=np.float32), second, states[1])


@pytest.mark.parametrize(
    "options",
    [{"optimizer": "adam"}, {"memory": 4}, {"teaching": "small"}, {"schedule": {"kind": "linear", "steps": 9}}],
)
def test_networks_with_further_state_are_not_plain(options):
    assert not is_plain(default_learner(2, hidden=(4,), options=options))
    assert is_plain(default_learner(2, hidden=(4,)))
