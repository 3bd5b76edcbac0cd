"""C rejects unknown codes and memory of the wrong size before it writes anything."""

import ctypes
import re
import warnings
from pathlib import Path

import pytest
import torch

from ptncn import PTNCN, kernels
from ptncn.distributions import DISTRIBUTIONS
from ptncn.kernels import bindings
from ptncn.network import backend
from ptncn.updates import OPTIMIZERS

pytestmark = pytest.mark.skipif(kernels.load() is None, reason="the compiled kernel was not built: no C compiler")


class Call:
    """The structures of a valid learning step, which a test modifies before the call."""

    def __init__(self, **options):
        self.net = PTNCN(4, [3, 2], dtype="float64", **options)
        self.kernel = self.net._backend()[1]
        self.state, self.x = self.net.begin(2), torch.rand(2, 4, dtype=torch.float64)
        self.kernel(self.x, self.state, learn=False)
        self.network = type(self.kernel._network).from_buffer_copy(self.kernel._network)
        _, self.step, self.outputs = self.kernel._begin(2, 2)
        fields = kernels.spans(
            torch.float64, x=self.x, corrected=self.state.corrected, displacement=self.state.displacement
        )
        for name, value in fields.items():
            setattr(self.step, name, value)
        self.step.rule, self.step.rule_error, self.step.rule_bias = self.net.learning.rules(self.kernel._groups)
        self.outputs.fill_(7.0)

    def make(self):
        code = kernels.load().ptncn_step(ctypes.byref(self.network), ctypes.byref(self.step))
        kernels.check("step", code)

    def rejected(self, message):
        before = [weight.clone() for weight in self.net.parameters()], self.state.corrected.clone()
        with pytest.raises(kernels.KernelError, match=message):
            self.make()
        assert (self.outputs == 7.0).all()
        assert torch.equal(self.state.corrected, before[1])
        assert all(map(torch.equal, self.net.parameters(), before[0]))


def test_a_valid_call_succeeds():
    call = Call()
    call.make()
    assert not (call.outputs == 7.0).any()


@pytest.mark.parametrize("part", ["h", "trace", "rate", "angle"])
@pytest.mark.parametrize("count", [0, 1, 10**9])
def test_a_memory_of_the_wrong_size_is_rejected(part, count):
    call = Call(memory=[2, 0])
    memories = call.kernel._add_memories(call.step, call.state.held)
    call.make()
    setattr(memories[0], f"{part}_count", count)
    call.outputs.fill_(7.0)
    call.rejected("does not have the size")


def test_missing_memories_are_rejected():
    Call(memory=2).rejected("does not have the size")


def test_traces_whose_count_would_overflow_are_rejected():
    call = Call(memory=2)
    memories = call.kernel._add_memories(call.step, call.state.held)
    units = (ctypes.c_int64 * 2)(1 << 40, 2)
    call.network.memory = ctypes.addressof(units)
    call.rejected("out of range")
    del memories


@pytest.mark.parametrize("structure", ["network", "step"])
@pytest.mark.parametrize("field", ["bytes", "version"])
def test_structures_of_another_version_are_rejected(structure, field):
    call = Call()
    setattr(getattr(call, structure), field, getattr(getattr(call, structure), field) + 1)
    call.rejected("not of this version")


@pytest.mark.parametrize("rules", [["rule"], ["rule_error"], ["rule_bias"], ["rule", "rule_error", "rule_bias"]])
@pytest.mark.parametrize("code", [-1, 99])
def test_an_unknown_optimiser_is_rejected(rules, code):
    call = Call(optimizer="adam")
    for name in rules:
        getattr(call.step, name).optimizer = code
    call.rejected("code is not known")


@pytest.mark.parametrize("code", [-1, 99])
def test_an_update_by_an_unknown_optimiser_is_rejected(code):
    weight = torch.zeros(3, 2)
    rule = kernels.structure("Rule")(optimizer=code)
    with pytest.raises(kernels.KernelError, match="code is not known"):
        kernels.update(rule, weight, torch.zeros(3, 2), torch.zeros(3, 2), torch.ones(1, 3), torch.ones(1, 2))
    assert not weight.any()


@pytest.mark.parametrize("field", ["error_rule", "rescale", "reduction", "real_bytes"])
@pytest.mark.parametrize("code", [-1, 99])
def test_an_unknown_rule_is_rejected(field, code):
    call = Call()
    setattr(call.network, field, code)
    call.rejected("code is not known")


@pytest.mark.parametrize("field", ["phi", "phi_o"])
def test_an_unknown_activation_is_rejected(field):
    call = Call()
    memories, address, count = kernels.array(ctypes.c_int64, [1, 99])
    setattr(call.network, field, address)
    call.rejected("code is not known")
    assert (len(memories), count) == (2, 2)


@pytest.mark.parametrize("field", ["rows", "threads"])
@pytest.mark.parametrize("value", [0, -1, 1 << 40])
def test_impossible_numbers_of_rows_and_threads_are_rejected(field, value):
    call = Call()
    setattr(call.step, field, value)
    call.rejected("out of range")


@pytest.mark.parametrize(
    "field", ["x", "corrected", "displacement", "logits", "prediction", "e", "z", "y", "clock", "observed", "teaches"]
)
def test_a_span_of_the_wrong_size_is_rejected(field):
    call = Call()
    if getattr(call.step, field) is None:
        setattr(call.step, field, call.x.data_ptr())
    setattr(call.step, f"{field}_count", getattr(call.step, f"{field}_count") - 1)
    call.rejected("does not have the size")


@pytest.mark.parametrize("field", ["x", "corrected", "displacement", "z"])
def test_a_missing_span_is_rejected(field):
    call = Call()
    setattr(call.step, field, None)
    call.rejected("does not have the size")


def test_more_rows_than_the_tensors_hold_are_rejected():
    call = Call()
    call.step.rows = 4
    call.rejected("does not have the size")


def test_missing_moments_are_rejected():
    for code in (1, 3, 4, 5):
        call = Call()
        for rule in (call.step.rule, call.step.rule_error, call.step.rule_bias):
            rule.optimizer = code
        call.rejected("moments are missing")


def test_rules_of_different_optimisers_are_rejected():
    call = Call(optimizer="adafactor")
    call.step.rule_bias.optimizer = 0
    call.rejected("code is not known")


def test_a_queue_without_room_is_rejected(monkeypatch):
    monkeypatch.setattr("ptncn.updates.factors.LARGE", 0)
    monkeypatch.setattr(backend, "SMALL", 0)
    call = Call()
    call.step.postpone = 1
    for queued in (31, 33, -1):
        memories, call.step.queued, call.step.queued_count = kernels.array(ctypes.c_int64, [queued, *[0] * 17])
        call.rejected("no room")
    assert len(memories) == 18


def test_spans_require_contiguous_tensors_of_the_right_type():
    tensor = torch.zeros(4, 3)
    assert kernels.span(tensor, torch.float32) == (tensor.data_ptr(), 12)
    for wrong in (tensor.T, tensor[:, :2], tensor.double(), tensor.to("meta")):
        with pytest.raises(kernels.KernelError, match=r"contiguous torch.float32 tensor on the CPU"):
            kernels.span(wrong, torch.float32)


def test_updates_whose_factors_do_not_fit_are_rejected():
    weight, rule = torch.zeros(5, 4), OPTIMIZERS["adam"]({}, PTNCN(1, [1]).config).rule(0.1, 0.0)
    with pytest.raises(ValueError, match="factors: expected an update of"):
        kernels.update(rule, weight, weight.clone(), weight.clone(), torch.zeros(2, 4), torch.zeros(2, 4))
    with pytest.raises(kernels.KernelError, match="moments are missing"):
        kernels.update(rule, weight, None, weight.clone(), torch.zeros(2, 5), torch.zeros(2, 4))


def test_codes_in_python_equal_those_of_the_header():
    header = (Path(kernels.__file__).with_name("step.h")).read_text(encoding="utf-8")
    codes = {}
    for line in header.splitlines():
        if line.startswith("enum {") and "REFUSALS" not in line:
            names = [name.strip() for name in line[6 : line.index("}")].split(",")]
            codes |= {name: code for code, name in enumerate(names)}
    for name, optimizer in OPTIMIZERS.items():
        assert optimizer.kernel_code in (None, codes.get(name.upper()))
    assert [codes[name.upper()] for name in backend._ACTIVATIONS] == list(range(9))
    assert [codes[name.upper()] for name in backend._ERROR_RULES] == [0, 1, 2]
    assert [codes[name.upper()] for name in backend._RESCALINGS] == [0, 1, 2]
    assert [codes[name.upper()] for name in backend._REDUCTIONS] == [0, 1, 2]
    means = {"gaussian": "IDENTITY", "bernoulli": "SIGMOID", "categorical": "SOFTMAX"}
    assert {name: DISTRIBUTIONS[name].kernel_code for name in means} == {name: codes[c] for name, c in means.items()}


def test_limits_in_python_equal_those_of_the_header():
    text = (Path(kernels.__file__).with_name("check.h")).read_text(encoding="utf-8")
    limits = dict(re.findall(r"(MOST_\w+) = (1 << \d+)", text))
    assert len(limits) == 4
    for name, limit in limits.items():
        base, _, shift = limit.partition(" << ")
        assert getattr(bindings, name) == int(base) << int(shift)


def test_without_the_step_library_steps_run_in_pytorch(monkeypatch):
    def fail(path):
        raise OSError("libgomp.so.1: cannot open shared object file")

    monkeypatch.setattr(ctypes, "CDLL", fail)
    kernels.load.cache_clear()
    try:
        with pytest.warns(UserWarning, match="steps run in PyTorch: libgomp"):
            assert kernels.load() is None
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert PTNCN(7, [5])._backend()[1] is None
    finally:
        monkeypatch.undo()
        kernels.load.cache_clear()


@pytest.mark.parametrize("name", ["_step", "_forecast", "_anomaly", "_gauge", "_format"])
def test_a_library_that_cannot_be_loaded_gives_a_warning(monkeypatch, name):
    def fail(path):
        raise OSError("libgomp.so.1: cannot open shared object file")

    if kernels.open_library(name, {}) is None:
        pytest.skip("the kernel is not built")
    monkeypatch.setattr(ctypes, "CDLL", fail)
    with pytest.warns(UserWarning, match="cannot be loaded; Python is used instead: libgomp"):
        assert kernels.open_library(name, {}) is None


def test_a_library_without_a_function_gives_a_warning():
    with pytest.warns(UserWarning, match="cannot be loaded; Python is used instead: .*missing_function"):
        assert kernels.open_library("_step", {"ptncn_step": ctypes.c_int, "missing_function": ctypes.c_int}) is None
