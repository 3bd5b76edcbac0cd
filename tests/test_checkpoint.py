"""A checkpoint resumes a run bit for bit, refuses anything else, and is never lost to a failed write."""

import json
import os
import pickle

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file

import ptncn
from ptncn import PTNCN, CheckpointError
from ptncn.updates import Schedule

RUNS = {
    "paper": {},
    "authors": {"preset": "authors"},
    "rmsprop": {"optimizer": "rmsprop", "dtype": "float64"},
    "adam on a schedule": {"optimizer": "adam", "schedule": Schedule("linear", 20, 0.1)},
    "chance": {"activation": "bernoulli", "hidden_prediction": "sigmoid", "presynaptic": "z"},
    "tight ball": {"max_norm": 0.1, "optimizer": "momentum"},
}


def frames(steps):
    return torch.rand(steps, 3, 6, generator=torch.Generator().manual_seed(0))


def run(net, state, xs, start=0):
    chance = torch.Generator().manual_seed(9)
    masks = torch.rand(50, 3, generator=chance) < 0.8
    return torch.stack([net.step(x, state, mask=masks[start + t]).prediction for t, x in enumerate(xs)])


@pytest.mark.parametrize("name", RUNS)
def test_saved_in_the_middle_of_a_sequence_the_run_goes_on_bit_for_bit(name, tmp_path):
    net = PTNCN(6, [5, 4], **RUNS[name])
    state = net.begin(3)
    xs = frames(40)
    run(net, state, xs[:15])
    ptncn.save(tmp_path / "run.ckpt", net, state, extra={"epoch": 3, "loss": 0.1, "best": None, "log": [1, "a"]})
    saved = net.state_dict()["W1"].clone()
    expected = run(net, state, xs[15:], start=15)
    loaded = ptncn.load(tmp_path / "run.ckpt")
    assert torch.equal(loaded.learner.state_dict()["W1"], saved)
    assert loaded.extra == {"epoch": 3, "loss": 0.1, "best": None, "log": [1, "a"]}
    assert torch.equal(run(loaded.learner, loaded.state, xs[15:], start=15), expected)
    for key, value in net.state_dict().items():
        assert torch.equal(value, loaded.learner.state_dict()[key])
    assert torch.equal(state.corrected, loaded.state.corrected)


def test_options_survive_json():
    net = PTNCN(6, [5, 4], preset="authors", activation=["tanh", "sign"], schedule=Schedule("cosine", 9), lr=0.1)
    options = json.loads(json.dumps(net.options()))
    assert PTNCN(**options).options() == net.options()


def test_an_activation_of_ones_own_must_be_given_again(tmp_path):
    net = PTNCN(6, [5], activation=torch.sin)
    ptncn.save(tmp_path / "run.ckpt", net)
    with pytest.raises(CheckpointError, match="custom"):
        ptncn.load(tmp_path / "run.ckpt")
    assert ptncn.load(tmp_path / "run.ckpt", activation=torch.sin).state is None


@pytest.fixture
def good(tmp_path):
    path = tmp_path / "run.ckpt"
    net = PTNCN(6, [5])
    ptncn.save(path, net, net.begin(2))
    return path


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(where=st.floats(0, 1, exclude_max=True), what=st.integers(1, 255), cut=st.booleans())
def test_a_truncated_or_altered_file_is_refused_by_name(good, where, what, cut):
    data = bytearray(good.read_bytes())
    position = int(where * len(data))
    if cut:
        data = data[:position]
    else:
        data[position] ^= what
    broken = good.with_name("broken.ckpt")
    broken.write_bytes(data)
    with pytest.raises(CheckpointError, match=r"broken\.ckpt"):
        ptncn.load(broken)


def test_foreign_files_are_refused_and_nothing_in_them_runs(good, tmp_path):
    pickled = tmp_path / "evil.pkl"
    pickled.write_bytes(pickle.dumps(Canary(tmp_path / "ran")))
    foreign = tmp_path / "foreign.safetensors"
    save_file({"W1": torch.zeros(2)}, foreign)
    empty = tmp_path / "empty"
    empty.touch()
    for path in (pickled, foreign, empty):
        with pytest.raises(CheckpointError, match=path.name):
            ptncn.load(path)
    assert not (tmp_path / "ran").exists()
    with pytest.raises(FileNotFoundError, match="missing"):
        ptncn.load(tmp_path / "missing")


def test_an_unknown_learner_or_a_newer_format_is_refused(good, tmp_path):
    from safetensors import safe_open

    with safe_open(good, "pt") as file:
        metadata = file.metadata()
    newer = tmp_path / "newer.ckpt"
    save_file(load_file(good), newer, {**metadata, "format_version": "99"})
    with pytest.raises(CheckpointError, match="format 99"):
        ptncn.load(newer)


def test_a_write_that_fails_leaves_the_good_file_and_nothing_else(good, monkeypatch):
    before = good.read_bytes()

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    net = PTNCN(6, [5], seed=1)
    with pytest.raises(OSError, match="No space left"):
        ptncn.save(good, net)
    assert good.read_bytes() == before
    assert [path.name for path in good.parent.iterdir()] == [good.name]


class Canary:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (open, (str(self.path), "w"))
