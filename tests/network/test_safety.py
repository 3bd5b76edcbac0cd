"""Changing batch sizes, threads that share a network, rebound parameters, and states that do not fit."""

import os
import subprocess
import sys
import threading
from copy import deepcopy

import pytest
import torch
from torch import Tensor
from torch.nn.utils import parameters_to_vector, vector_to_parameters

import ptncn
from ptncn import PTNCN, kernels
from ptncn.network.parameters import Gate
from ptncn.updates import factors

pytestmark = pytest.mark.usefixtures("either_path")


def frames(count, rows, size, seed=0):
    return torch.rand(count, rows, size, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def weights(net):
    return {name: weight.clone() for name, weight in net.synapses().items()}


@pytest.mark.parametrize("batches", [(1, 4), (1, 2, 3), (3, 1, 20), (4, 20, 1)])
@pytest.mark.parametrize("large", [True, False])
def test_the_batch_size_may_change_at_any_time(batches, large, monkeypatch):
    """The queue of postponed updates is empty, half full or just applied when the batch size changes."""
    results = []
    for limit in (0 if large else 1 << 40, 1 << 40):
        monkeypatch.setattr(factors, "LARGE", limit)
        monkeypatch.setattr("ptncn.network.backend.SMALL", 0 if large else 1 << 18)
        net = PTNCN(6, [5, 4], dtype="float64", max_norm=None, lr=0.01, error_rule="transpose")
        for turn in range(2):
            for rows in batches:
                state = net.begin(rows)
                for x in frames(7 * turn + 9, rows, 6):
                    net.step(x, state)
        results.append(weights(net))
    for name, weight in results[0].items():
        torch.testing.assert_close(weight, results[1][name], rtol=0, atol=1e-10)


def test_a_large_network_changes_between_small_batch_sizes():
    net = PTNCN(800, [700], dtype="float64")
    for rows in (1, 4, 1, 2):
        state = net.begin(rows)
        for x in frames(33, rows, 800):
            out = net.step(x, state)
    assert torch.isfinite(out.prediction).all()


@pytest.mark.parametrize("optimizer", ["sgd", "rmsprop", "adam", "adafactor"])
def test_a_saturated_layer_does_not_end_in_nan(optimizer):
    """Saturated units have updates of 0; rescaling those to unit norm must not compute 0 · ∞."""
    net = PTNCN(4, [5, 3], optimizer=optimizer, rescale="unit", weight_std=100.0)
    state = net.begin(1)
    for x in frames(10, 1, 4):
        net.step(x + 1, state)
    assert all(weight.isfinite().all() for weight in net.state_dict().values())


def in_threads(count, work):
    errors = []

    def run(number):
        try:
            work(number)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors, errors[0]


def test_threads_with_separate_states_do_not_affect_each_other():
    net = PTNCN(40, [64, 32], dtype="float64", seed=1)
    states, expected = [], []
    for number in range(4):
        state = net.begin(1 + number)
        for x in frames(3, 1 + number, 40, seed=number):
            net.step(x, state, learn=False)
        states.append(state)
        expected.append(net.predict(state))

    def work(number):
        for _ in range(100):
            assert torch.equal(net.predict(states[number]), expected[number])
            clone = states[number].clone()
            assert torch.equal(net.step(expected[number], clone, learn=False).prediction, expected[number])

    in_threads(4, work)


def test_no_update_is_lost_when_threads_take_the_first_steps_together(monkeypatch):
    """The kernel, the views of the weights and the queues are built once, by the thread that comes first."""
    monkeypatch.setattr(factors, "LARGE", 0)
    x = frames(1, 1, 30)[0]
    alone = PTNCN(30, [40, 20], first_frame=True)
    for _ in range(4):
        alone.step(x, alone.begin(1))
    for _ in range(40):
        net, start = PTNCN(30, [40, 20], first_frame=True), threading.Barrier(4)
        states = [net.begin(1) for _ in range(4)]
        net._forget_views()

        def work(number, net=net, states=states, start=start):
            start.wait()
            net.step(x, states[number])

        in_threads(4, work)
        assert all(torch.equal(weight, weights(net)[name]) for name, weight in weights(alone).items())


def test_learning_steps_of_two_threads_exclude_each_other(monkeypatch):
    """Without rescaling and with a fixed drive, updates of W commute: any order of whole steps gives the same sum."""
    monkeypatch.setattr(factors, "LARGE", 0)
    options = {"rescale": "none", "lr": 1e-9, "error_rule": "fixed", "max_norm": None, "lam": 0.0}
    results = []
    for threaded in (True, False):
        net = PTNCN(30, [40], dtype="float64", **options)
        before = weights(net)

        def work(number, net=net):
            state = net.begin(1)
            for x in frames(200, 1, 30, seed=number):
                net.step(x, state)
                net.predict(state)

        if threaded:
            in_threads(2, work)
        else:
            work(0)
            work(1)
        assert net.learning.optimizer.updates == 398
        results.append({name: weight - before[name] for name, weight in weights(net).items()})
    for name, change in results[0].items():
        torch.testing.assert_close(change, results[1][name], rtol=0, atol=5e-12)  # an update is 1e-10


@pytest.mark.parametrize("take", ["snapshot", "deepcopy"])
def test_a_copy_is_taken_between_two_steps_of_another_thread(take):
    """Weights, moments and the number of updates belong together, however the threads take turns."""
    xs = frames(150, 1, 30)
    options = {"dtype": "float64", "optimizer": "adam", "lr": 0.01}
    net, replayed = PTNCN(30, [40, 20], **options), PTNCN(30, [40, 20], **options)
    copies = []

    def work(number):
        if number:
            while len(copies) < 30:
                copies.append(net.snapshot() if take == "snapshot" else deepcopy(net).snapshot())
        else:
            state = net.begin(1)
            for x in xs:
                net.step(x, state)

    in_threads(2, work)
    known, state = {0: replayed.snapshot()}, replayed.begin(1)
    for x in xs:
        replayed.step(x, state)
        known[replayed.learning.optimizer.updates] = replayed.snapshot()
    for copied in copies:
        expected = known[copied["learning"]["updates"]]
        for name, weight in copied["weights"].items():
            assert torch.equal(weight, expected["weights"][name])
        for name, moment in copied["learning"]["moments"].items():
            assert torch.equal(moment, expected["learning"]["moments"][name])


def test_a_schedule_may_read_its_own_network():
    """It is called in the middle of a learning step, which excludes other threads but not its own."""
    net = PTNCN(
        5, [4], dtype="float64", schedule=lambda updates: float(batch_sizes.append(len(net.predict(other))) or 1.0)
    )
    state, other, batch_sizes = net.begin(2), net.begin(3), []
    for x in frames(3, 2, 5):
        net.step(x, state)
    assert set(batch_sizes) == {3}


def rebind_vector(net, other):
    vector_to_parameters(parameters_to_vector(other.parameters()).clone(), net.parameters())


def rebind_data(net, other):
    for mine, theirs in zip(net.parameters(), other.parameters(), strict=True):
        mine.data = theirs.data.clone()


def rebind_some(net, other):
    """Through references to the parameters, so that no method of the network is called."""
    for name, theirs in other.named_parameters():
        net._parameters[name].data = theirs.data.clone()


def load_weights(net, other):
    net.load_state_dict(other.state_dict())


def assign_weights(net, other):
    net.load_state_dict(deepcopy(other.state_dict()), assign=True)


@pytest.mark.parametrize("rebind", [rebind_vector, rebind_data, rebind_some, load_weights, assign_weights])
@pytest.mark.parametrize("large", [True, False])
def test_predictions_use_the_current_parameters(rebind, large, monkeypatch):
    monkeypatch.setattr(factors, "LARGE", 0 if large else 1 << 40)
    net, other = (PTNCN(6, [5, 4], dtype="float64", seed=seed, max_norm=0.3, weight_std=0.5) for seed in (0, 1))
    state = net.begin(1)
    for x in frames(5, 1, 6):
        net.step(x, state)
    rebind(net, other)
    for x in frames(5, 1, 6, seed=1):
        twin = state.clone()
        assert torch.equal(net.predict(state), other.predict(state))
        out, expected = net.step(x, state), other.step(x, twin)
        torch.testing.assert_close(out.prediction, expected.prediction, rtol=0, atol=1e-12)
    for name, weight in other.synapses().items():
        torch.testing.assert_close(net.synapses()[name], weight, rtol=0, atol=1e-12)


def test_a_square_matrix_that_was_transposed_in_place_is_detected():
    net = PTNCN(5, [5], dtype="float64", weight_std=0.5)
    state = net.begin(1)
    net.step(frames(1, 1, 5)[0], state)
    net.W1.data = net.W1.data.T
    plain = deepcopy(net)
    plain.compiled = False
    assert torch.allclose(net.predict(state), plain.predict(state), rtol=0, atol=1e-14)
    assert torch.isfinite(net.step(frames(1, 1, 5)[0], state).prediction).all()


def test_parameters_of_another_shape_or_type_are_rejected():
    net = PTNCN(5, [4], dtype="float64")
    net.W1.data = torch.zeros(4, 3, dtype=torch.float64)
    with pytest.raises(ValueError, match=r"W1: expected \(4, 5\)"):
        net.predict(net.begin(1))
    net = PTNCN(5, [4], dtype="float64")
    state = net.begin(1)
    net.step(frames(1, 1, 5)[0], state)
    net.W1.data = net.W1.data.view(5, 4)  # at the same address
    with pytest.raises(ValueError, match=r"W1: expected \(4, 5\) numbers of torch.float64, got \(5, 4\)"):
        net.predict(state)
    net = PTNCN(5, [4], dtype="float64")
    state = net.begin(1)
    net.W1.data = net.W1.data.view(torch.int64)  # at the same address, with the same shape
    with pytest.raises(ValueError, match=r"W1: expected .* of torch.float64, got .* of torch.int64"):
        net.predict(state)
    net = PTNCN(5, [4], dtype="float64")
    net.R1.data = net.R1.data.float()
    with pytest.raises(ValueError, match=r"R1: expected .* of torch.float64, got .* of torch.float32"):
        net.begin(1)


@pytest.mark.parametrize("optimizer", ["momentum", "nesterov", "rmsprop", "adam", "adafactor"])
@pytest.mark.parametrize("replace", [False, True])
def test_learning_uses_moments_that_were_rebound(optimizer, replace):
    """Rebound through `.data` or as a new buffer: the kernel once kept writing into their former memory."""
    net, plain = (PTNCN(6, [5, 4], dtype="float64", optimizer=optimizer, lr=0.01) for _ in range(2))
    plain.compiled = False
    state, twin = net.begin(2), plain.begin(2)
    for number, x in enumerate(frames(30, 2, 6)):
        if number % 7 == 5:
            for each in (net, plain):
                optimizer_state = each.learning.optimizer
                for name, moment in list(optimizer_state.named_buffers()):
                    if replace:
                        setattr(optimizer_state, name, moment * 0.5)
                    else:
                        moment.data = moment.data * 0.5
            torch.full((1000,), 1e300, dtype=torch.float64)  # reuses the freed memory
        net.step(x, state)
        plain.step(x, twin)
    for name, weight in plain.synapses().items():
        torch.testing.assert_close(net.synapses()[name], weight, rtol=0, atol=1e-6)


def test_moments_of_another_type_are_rejected():
    net = PTNCN(5, [4], dtype="float64", optimizer="adam")
    state = net.begin(1)
    net.step(frames(1, 1, 5)[0], state)
    net.learning.optimizer.W1_mean.data = torch.zeros(4, 5)
    with pytest.raises((ValueError, RuntimeError), match="float"):
        net.step(frames(1, 1, 5)[0], state)


def test_a_missing_parameter_is_named():
    for remove in (lambda net: setattr(net, "W1", None), lambda net: delattr(net, "W1")):
        net = PTNCN(5, [4], dtype="float64")
        state = net.begin(1)
        remove(net)
        with pytest.raises(ValueError, match="W1: expected a parameter of the network"):
            net.predict(state)


def test_additional_parameters_are_left_unchanged():
    net, plain = PTNCN(5, [4], dtype="float64"), PTNCN(5, [4], dtype="float64")
    net.register_parameter("scale", torch.nn.Parameter(torch.ones(3)))
    net.add_module("head", torch.nn.Linear(2, 2))
    net.W1.data = net.W1.data.clone()
    state, twin = net.begin(1), plain.begin(1)
    for x in frames(5, 1, 5):
        assert torch.equal(net.step(x, state).prediction, plain.step(x, twin).prediction)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_a_network_in_half_precision_is_rejected(dtype):
    net = PTNCN(5, [4]).to(dtype)
    with pytest.raises(ValueError, match="expected parameters of float32 or float64"):
        net.begin(1)


def test_networks_beyond_the_limits_of_the_kernel_run_in_pytorch(monkeypatch):
    monkeypatch.setattr(kernels, "MOST_ROWS", 3)
    monkeypatch.setattr(kernels, "MOST_LAYERS", 2)
    for layers, rows in ((1, 5), (3, 2)):
        for optimizer in ("sgd", "adam"):
            net = PTNCN(4, [3] * layers, dtype="float64", optimizer=optimizer)
            state = net.begin(rows)
            for x in frames(3, rows, 4):
                net.step(x, state)
            kernel = net._backend()[1]
            assert kernel is None or not kernel.takes(state)
            assert torch.isfinite(net.predict(state)).all()


def test_the_number_of_threads_is_capped_at_the_limit_of_the_kernel(monkeypatch):
    monkeypatch.setattr(torch, "get_num_threads", lambda: 5000)
    net = PTNCN(4, [3], dtype="float64")
    assert torch.isfinite(net.predict(net.begin(1))).all()


FORK = """
import os, signal, sys, torch
from ptncn import PTNCN
torch.set_num_threads(2)
net = PTNCN(300, [400], optimizer=sys.argv[1])
state, x = net.begin(8), torch.rand(8, 300)
for _ in range(2):
    net.step(x, state)
child = os.fork()
if not child:
    signal.alarm(60)
    net.step(x, state)
    os._exit(0 if torch.isfinite(net.predict(state)).all() else 1)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_a_forked_process_continues_with_the_network_of_its_parent(optimizer, either_path):
    """OpenMP's threads do not survive a fork. The kernel works without them; PyTorch's own operations would hang."""
    if either_path == "pytorch":
        pytest.skip("PyTorch hangs in a process that was forked after a parallel operation")
    result = subprocess.run([sys.executable, "-c", FORK, optimizer], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("part", ["W1", "state", "moment"])
def test_a_tensor_with_a_shrunk_storage_is_rejected(part):
    """PyTorch itself reads and writes beyond such a storage, so this is about the kernel alone."""
    net = PTNCN(64, [64], optimizer="adam")
    state = net.begin(2)
    net.step(torch.rand(2, 64), state)
    if net._backend()[1] is None:
        pytest.skip("no kernel")
    parts = {"W1": net._parameters["W1"], "state": state.corrected, "moment": net.learning.optimizer.W1_mean}
    parts[part].untyped_storage().resize_(8)
    with pytest.raises(kernels.KernelError, match="storage was made smaller"):
        net.step(torch.rand(2, 64), state)


def test_a_lazily_negated_observation_is_read_with_its_sign():
    """The imaginary part of a conjugate is negated when it is read; its memory holds the opposite sign."""
    net, plain = PTNCN(1, [2], output="gaussian"), PTNCN(1, [2], output="gaussian")
    state, twin = net.begin(1), plain.begin(1)
    x = torch.full((1, 1), 0.5j).conj().imag
    assert x.is_neg()
    assert x.is_contiguous()
    for _ in range(3):
        assert torch.equal(net.step(x, state).prediction, plain.step(torch.tensor([[-0.5]]), twin).prediction)


@pytest.mark.parametrize("value", [None, "text", 3, {"x": "text"}, {"x": torch.tensor(1.0)}, {"x": torch.ones(1, 2)}])
@pytest.mark.parametrize("field", ["held", "waiting"])
def test_a_state_with_wrong_dicts_is_rejected(field, value):
    net = PTNCN(5, [4], dtype="float64", memory=2)
    state = net.begin(1)
    setattr(state, field, value)
    with pytest.raises(ValueError, match="state"):
        net.predict(state)


@pytest.mark.parametrize("change", [Tensor.to_sparse, Tensor.to_mkldnn, Tensor.tolist, Tensor.numpy])
def test_a_state_in_another_layout_is_rejected(change):
    net = PTNCN(5, [4], dtype="float32")
    state = net.begin(1)
    state.corrected = change(state.corrected)
    with pytest.raises(ValueError, match=r"state.corrected: expected a dense tensor of shape \(1, 9\), got"):
        net.predict(state)


@pytest.mark.parametrize("field", ["corrected", "displacement", "uncorrected", "seen"])
def test_a_state_with_fewer_rows_than_its_batch_size_is_rejected(field):
    net = PTNCN(6, [5, 4], presynaptic="z")
    state, x = net.begin(4), torch.rand(4, 6)
    net.step(x, state, mask=torch.tensor([True, True, False, True]))
    setattr(state, field, getattr(state, field)[:1].clone())
    for call in (lambda: net.step(x, state), lambda: net.predict(state), lambda: net.dream(state, 2)):
        with pytest.raises(ValueError, match=rf"state\.{field}: expected shape \(4,"):
            call()


def test_such_a_state_in_a_checkpoint_is_rejected(tmp_path):
    net = PTNCN(6, [5, 4])
    state = net.begin(1)
    state.batch_size = 4
    ptncn.save(tmp_path / "bad.ckpt", net, state)
    with pytest.raises(ValueError, match=r"state\.corrected: expected a tensor of shape \(4, 15\)"):
        ptncn.load(tmp_path / "bad.ckpt")


WRONG_FIELDS = {
    "rows as a float": lambda state: setattr(state, "batch_size", 1.0),
    "rows as text": lambda state: setattr(state, "batch_size", "1"),
    "steps as text": lambda state: setattr(state, "steps", "x"),
    "no tensor": lambda state: setattr(state, "corrected", None),
    "seen as numbers": lambda state: setattr(state, "seen", torch.ones(1)),
    "short memories": lambda state: state.held.update({name: part[..., :1] for name, part in state.held.items()}),
    "no memories": lambda state: state.held.clear(),
}


@pytest.mark.parametrize("corrupt", WRONG_FIELDS.values(), ids=WRONG_FIELDS.keys())
def test_a_state_with_wrong_fields_is_rejected(corrupt, tmp_path):
    """By `step` and `predict`, and when it is loaded from a checkpoint."""
    net, x = PTNCN(6, [5], memory=2), torch.rand(1, 6)
    state = net.begin(1)
    net.step(x, state)
    corrupt(state)
    for call in (lambda: net.step(x, state), lambda: net.predict(state)):
        with pytest.raises(ValueError, match=r"state.*: expected"):
            call()
    ptncn.save(tmp_path / "bad.ckpt", net, state)
    with pytest.raises(ptncn.CheckpointError, match=": expected"):
        ptncn.load(tmp_path / "bad.ckpt")


def test_a_state_without_pending_forecasts_is_rejected():
    net = PTNCN(3, [4], output="gaussian", readout="rls", horizons=[1, 3])
    state = net.begin(1)
    state.waiting.clear()
    with pytest.raises(ValueError, match="expected one of a network with the same horizons"):
        net.step(torch.zeros(1, 3), state)


def test_a_state_that_is_not_contiguous_is_stepped_correctly():
    net, x = PTNCN(6, [5, 4]), torch.rand(2, 6)
    state, plain = net.begin(2), net.begin(2)
    net.step(x, state)
    net.step(x, plain)
    for name in ("corrected", "displacement"):
        wide = torch.zeros(2, 2 * getattr(state, name).shape[1])
        wide[:, ::2] = getattr(state, name)
        setattr(state, name, wide[:, ::2])
    torch.testing.assert_close(net.step(x, state, learn=False).prediction, net.step(x, plain, learn=False).prediction)
    torch.testing.assert_close(state.corrected, plain.corrected)


def test_an_observation_may_be_part_of_the_state():
    net = PTNCN(6, [5], dtype="float64")
    state = net.begin(1)
    net.step(frames(1, 1, 6)[0], state)
    out = net.step(state.corrected[:, :6], state)
    assert torch.isfinite(out.prediction).all()


def test_a_queue_of_the_wrong_size_is_rejected():
    net = PTNCN(6, [5])
    tree = net.snapshot()
    for rows, width in ((1, 7), (33, 11)):
        tree["postponed"]["R1"] = torch.zeros(rows, width), torch.zeros(rows, 5)
        with pytest.raises(ValueError, match="queue: expected at most 32 rows"):
            PTNCN(6, [5]).restore(tree)


def test_a_gate_lets_readers_overlap_and_excludes_writers():
    gate, inside, seen = Gate(), [0, 0], []

    def work(number):
        for i in range(200):
            writes = (i + number) % 7 == 0
            with gate.writing if writes else gate.reading:
                inside[writes] += 1
                seen.append(tuple(inside))
                inside[writes] -= 1

    in_threads(4, work)
    assert gate.readers == gate.waiting == gate.depth == 0
    assert all(writers == 0 or (writers == 1 and readers == 0) for readers, writers in seen)


@pytest.mark.parametrize("sizes", [(4, [10**9]), (10**12, [4]), (4, [10**5, 10**6])])
def test_weights_that_do_not_fit_into_memory_are_rejected_before_allocation(sizes, monkeypatch):
    monkeypatch.setattr("ptncn.network.layers.available_memory", lambda: 8_000_000_000)
    monkeypatch.setattr("torch.empty", None)
    with pytest.raises(MemoryError, match=r"^the weights of \d+ → .* need .*, and 8.00 GB are available$"):
        PTNCN(*sizes)
