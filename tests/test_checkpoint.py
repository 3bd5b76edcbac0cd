"""A checkpoint resumes a run bit for bit, invalid files are rejected, and a failed write loses nothing."""

import json
import math
import os
import pickle
import subprocess
import sys
import tracemalloc
from io import BytesIO
from itertools import islice
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

import ptncn
from ptncn import PTNCN, CheckpointError
from ptncn.checkpoint_file import decode, encode, read
from ptncn.learners import describe, make, names
from ptncn.updates import Schedule

OLD = Path(__file__).parent / "fixtures"
"""Checkpoints that ptncn 0.1.0 wrote in format 1: each with the observations that followed, and what it expected."""

RUNS = {
    "paper": {},
    "authors": {"preset": "authors"},
    "rmsprop": {"optimizer": "rmsprop", "dtype": "float64"},
    "adam on a schedule": {"optimizer": "adam", "schedule": Schedule("linear", 20, 0.1)},
    "random units": {"activation": "bernoulli", "hidden_prediction": "sigmoid", "presynaptic": "z"},
    "tight ball": {"max_norm": 0.1, "optimizer": "momentum"},
}


def frames(steps):
    return torch.rand(steps, 3, 6, generator=torch.Generator().manual_seed(0))


def run(net, state, xs, start=0):
    rng = torch.Generator().manual_seed(9)
    masks = torch.rand(50, 3, generator=rng) < 0.8
    return torch.stack([net.step(x, state, mask=masks[start + t]).prediction for t, x in enumerate(xs)])


@pytest.mark.parametrize("name", RUNS)
def test_a_run_saved_mid_sequence_continues_bit_for_bit_when_loaded(name, tmp_path):
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


def test_the_same_content_is_the_same_bytes(tmp_path):
    code = "import sys, ptncn; net = ptncn.PTNCN(6, [5]); ptncn.save(sys.argv[1], net, net.begin(1), {'b': 1})"
    files = []
    for seed in "12":  # of Python's hashes
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        subprocess.run([sys.executable, "-c", code, tmp_path / "c"], check=True, env=environment)
        files.append((tmp_path / "c").read_bytes())
    assert files[0] == files[1]


def test_options_survive_json():
    net = PTNCN(6, [5, 4], preset="authors", activation=["tanh", "sign"], schedule=Schedule("cosine", 9), lr=0.1)
    options = json.loads(json.dumps(net.options()))
    assert PTNCN(**options).options() == net.options()


def test_a_custom_activation_must_be_passed_again(tmp_path):
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


def flips(data):
    """The data with one bit changed, once for each bit."""
    for position in range(len(data)):
        for bit in range(8):
            altered = bytearray(data)
            altered[position] ^= 1 << bit
            yield bytes(altered)


def test_any_flipped_bit_is_detected(tmp_path):
    mean, path = make("mean", input_size=2), tmp_path / "mean.ckpt"
    state = mean.begin(1)
    mean.step(torch.tensor([[0.5, 0.25]]), state)
    ptncn.save(path, mean, state, {"é": [1, math.nan]})
    for index, data in enumerate(flips(path.read_bytes())):
        with pytest.raises(CheckpointError):
            decode(BytesIO(data), len(data))
        if index % 9 == 0:  # one bit of almost each byte, another one from byte to byte
            path.write_bytes(data)
            with pytest.raises(CheckpointError, match=r"mean\.ckpt: "):
                ptncn.load(path)


@pytest.mark.parametrize("version", [1, 2])
def test_a_flipped_bit_in_any_byte_of_a_network_is_detected(version, good):
    data = (good if version == 2 else OLD / "esn-1.ckpt").read_bytes()
    for altered in islice(flips(data), 0, None, 9):
        with pytest.raises(CheckpointError):
            decode(BytesIO(altered), len(data))


def test_a_file_truncated_anywhere_is_rejected(good):
    data, path = good.read_bytes(), good.with_name("cut.ckpt")
    for size in range(len(data)):
        with pytest.raises(CheckpointError):
            decode(BytesIO(data[:size]), size)
    path.write_bytes(data + b"\0")
    with pytest.raises(CheckpointError, match=r"cut\.ckpt"):
        ptncn.load(path)


@pytest.mark.parametrize("name", ["ptncn", "lstm", "esn"])
def test_files_of_format_1_still_resume(name):
    learner, state, extra = ptncn.load(OLD / f"{name}-1.ckpt")
    predictions = torch.stack([learner.step(x, state).prediction for x in extra["frames"]])
    torch.testing.assert_close(predictions, extra["predictions"])
    assert extra["log"] == [1, None, "é", 0.5]


def forge(path, change, tensors=None):
    """Rewrite a checkpoint with a changed text and a valid checksum."""
    text, own = read(path)
    body = json.loads(text)
    changed = change(body)
    text = changed if isinstance(changed, str) else json.dumps(body)
    path.write_bytes(encode(text, own if tensors is None else tensors(own), "0.1.0"))


def fields(body):
    return dict(body["state"]["dict"])


def rename(body, name, value):
    body["state"]["dict"] = [[key, value if key == name else old] for key, old in body["state"]["dict"]]


FORGERIES = {
    "layers that the file has no weights for": lambda body: body["options"].update(hidden_sizes=[10**9]),
    "a layer more": lambda body: body["options"].update(hidden_sizes=[5, 5]),
    "inputs without end": lambda body: body["options"].update(input_size=10**30),
    "a size that is no number": lambda body: body["options"].update(hidden_sizes=["5"]),
    "a NaN option": lambda body: body["options"].update(lr=math.nan),
    "an integer of 5,000 digits": lambda body: json.dumps(body).replace('"seed": 0', f'"seed": 1{"0" * 5000}'),
    "an option of another type": lambda body: body["options"].update(biases="False"),
    "an unknown option": lambda body: body["options"].update(shell="rm"),
    "an unknown learner": lambda body: body.update(kind="os.system"),
    "a learner that is no name": lambda body: body.update(kind=["ptncn"]),
    "no options": lambda body: body.update(options=None),
    "more rows than tensors have": lambda body: rename(body, "batch_size", 4),
    "rows without end": lambda body: rename(body, "batch_size", 10**12),
    "no rows": lambda body: rename(body, "batch_size", 0),
    "a state of other sizes": lambda body: rename(body, "sizes", {"tuple": [6, 7]}),
    "a negative count": lambda body: rename(body, "steps", -1),
    "a tensor twice": lambda body: rename(body, "displacement", fields(body)["corrected"]),
    "a tensor that is not there": lambda body: rename(body, "corrected", {"tensor": "nowhere"}),
    "a field that is not a tensor": lambda body: rename(body, "corrected", 3),
    "an unknown tag": lambda body: rename(body, "corrected", {"eval": "1"}),
    "a dict without pairs": lambda body: body.update(extra={"dict": [1]}),
    "a part missing": lambda body: body.pop("state"),
    "a text that is a list": lambda body: "[]",
    "a text that is not JSON": lambda body: "{",
    "nesting": lambda body: "[" * 200_000,
    "nested containers": lambda body: json.dumps(body)[:-1] + ', "extra": ' + '{"list": [' * 5000 + "]}" * 5000 + "}",
}


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forged_text_with_a_valid_checksum_is_rejected(name, good):
    forge(good, FORGERIES[name])
    with pytest.raises(CheckpointError, match=r"run\.ckpt"):
        ptncn.load(good)


@pytest.mark.parametrize(
    "change",
    [
        lambda x: {**x, "state.corrected": x["state.corrected"][:1]},
        lambda x: {**x, "state.corrected": x["state.corrected"].double()},
        lambda x: {**x, "state.corrected": x["state.corrected"].T.contiguous()},
        lambda x: {**x, "learner.weights.W1": x["learner.weights.W1"].double()},
        lambda x: {**x, "learner.weights.W1": x["learner.weights.W1"][:, :1].contiguous()},
        lambda x: {**x, "more": torch.zeros(1)},
    ],
    ids=["one row", "state in float64", "state transposed", "weights in float64", "weights cut", "a tensor too many"],
)
def test_a_forged_tensor_with_a_valid_checksum_is_rejected(change, good):
    forge(good, lambda body: None, change)
    with pytest.raises(CheckpointError, match=r"run\.ckpt"):
        ptncn.load(good)


@pytest.mark.parametrize("name", [name for name in names() if describe(name).size_class not in ("layers", "none")])
def test_sizes_are_rejected_before_memory_is_allocated(name, tmp_path):
    path, learner = tmp_path / "run.ckpt", make(name, input_size=3, hidden_size=2)
    ptncn.save(path, learner, None, torch.zeros(200_000))  # so that three inputs for each unit look possible
    forge(path, lambda body: body["options"].update(hidden_size=50_000))
    tracemalloc.start()
    with pytest.raises(CheckpointError, match=r"sizes require|exact RTRL"):
        ptncn.load(path)
    assert tracemalloc.get_traced_memory()[1] < 50e6
    tracemalloc.stop()


def counters(tree, path=()):
    """The places of numbers in a tree of tagged containers."""
    for key, value in tree["dict"]:
        if isinstance(value, dict) and "dict" in value:
            yield from counters(value, (*path, key))
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield (*path, key)


def put(tree, path, value):
    for key in path[:-1]:
        tree = dict(tree["dict"])[key]
    next(pair for pair in tree["dict"] if pair[0] == path[-1])[1] = value


@pytest.mark.parametrize("value", [None, "x", True, -1, math.nan, math.inf, pytest.param(10**400, id="huge")])
def test_a_forged_count_or_step_size_is_refused(value, tmp_path):
    """An optimiser that has made −1 updates would divide by zero at its next one."""
    net = PTNCN(2, [3], output="gaussian", preset="best", optimizer="adam", teaching="small", output_bias="mean")
    ptncn.save(tmp_path / "n.ckpt", net)
    text, _ = read(tmp_path / "n.ckpt")
    places = list(counters(json.loads(text)["learner"]))
    assert {path[-1] for path in places} == {"lr", "updates", "count"}
    for path in places:
        ptncn.save(tmp_path / "n.ckpt", net)
        forge(tmp_path / "n.ckpt", lambda body, path=path: put(body["learner"], path, value))
        with pytest.raises(CheckpointError, match=rf"{path[-1]}: expected") as caught:
            ptncn.load(tmp_path / "n.ckpt")
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("optimizer", ["rmsprop", "adam", "adagrad", "momentum"])
def test_forged_moments_and_step_sizes_of_gradient_learners_are_refused(optimizer, tmp_path):
    learner = make("gru-tbptt", input_size=2, hidden_size=3, output="gaussian", optimizer=optimizer, lr=0.01)
    state = learner.begin(1)
    for x in torch.rand(6, 1, 2):
        learner.step(x, state)
    learner.end(state)
    path = tmp_path / "l.ckpt"

    def refused(change, tensors=None):
        ptncn.save(path, learner)
        forge(path, change, tensors)
        with pytest.raises(CheckpointError, match=r"optimizer|lr") as caught:
            ptncn.load(path)
        assert "\n" not in str(caught.value)

    def group(body):
        return dict(dict(dict(body["learner"]["dict"])["optimizer"]["dict"])["param_groups"]["list"][0]["dict"])

    def set_lr(body, value):
        pairs = dict(dict(body["learner"]["dict"])["optimizer"]["dict"])["param_groups"]["list"][0]["dict"]
        next(pair for pair in pairs if pair[0] == "lr")[1] = value

    ptncn.save(path, learner)
    text, tensors = read(path)
    assert group(json.loads(text))["lr"] == 0.01
    for value in (None, "x", True, -1, math.nan, math.inf, 10**400):
        refused(lambda body, value=value: set_lr(body, value))
    moments = [name for name in tensors if ".state." in name and tensors[name].ndim]
    assert moments
    for name in moments:
        refused(lambda body: None, lambda own, name=name: {**own, name: own[name][1:].contiguous()})
    ptncn.save(path, learner)
    assert ptncn.load(path).learner.lr == 0.01


def test_a_file_does_not_choose_the_device(good):
    forge(good, lambda body: body["options"].update(device="cuda"))
    with pytest.raises(CheckpointError, match="a file must not choose the device: 'cuda'"):
        ptncn.load(good)


def test_missing_parts_of_a_file_are_named(good):
    forge(good, lambda body: body["learner"]["dict"].pop())
    with pytest.raises(CheckpointError, match=r"nothing refers to|there is no '\w+'"):
        ptncn.load(good)


def test_keys_with_the_same_text_keep_separate_tensors(tmp_path):
    net, tree = PTNCN(2, [2]), {1: torch.zeros(1), "1": torch.ones(2)}
    ptncn.save(tmp_path / "c", net, None, tree)
    loaded = ptncn.load(tmp_path / "c").extra
    assert [(key, value.tolist()) for key, value in loaded.items()] == [(1, [0.0]), ("1", [1.0, 1.0])]


def test_a_link_stays_a_link(good, tmp_path):
    (tmp_path / "link").symlink_to(good)
    ptncn.save(tmp_path / "link", PTNCN(6, [5], seed=1))
    assert (tmp_path / "link").is_symlink()
    assert ptncn.load(good).learner.seed == 1


def test_foreign_files_are_rejected_and_nothing_in_them_runs(good, tmp_path):
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


def test_an_unknown_learner_or_a_newer_format_is_rejected(good, tmp_path):
    from safetensors import safe_open

    with safe_open(good, "pt") as file:
        metadata = file.metadata()
    newer = tmp_path / "newer.ckpt"
    save_file(load_file(good), newer, {**metadata, "format_version": "99"})
    with pytest.raises(CheckpointError, match="format 99"):
        ptncn.load(newer)


def test_a_failed_write_keeps_the_old_file_and_leaves_nothing_else(good, monkeypatch):
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
