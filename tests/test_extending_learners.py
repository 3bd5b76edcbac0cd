"""Custom learners, distributions, optimisers and metrics are added and used throughout."""

import inspect
import json
import math
import tomllib
from pathlib import Path

import numpy as np
import pytest
import test_contract
import torch

import ptncn
from commands import call
from ptncn.data import DATASETS, ArraySequences, Dataset
from ptncn.distributions import DISTRIBUTIONS, Distribution
from ptncn.experiments.phases import SequenceErrors
from ptncn.learners import LEARNERS, Entry, describe, make
from ptncn.learners.base import GRADIENT_OPTIMIZERS
from ptncn.metrics import METRICS, FrameMean, GradientMeter, Metric, make_metric
from ptncn.registry import Registry
from ptncn.training import evaluate, run
from ptncn.updates import OPTIMIZERS, Optimizer
from speed.cases import measure
from step import make_plan

EXAMPLE = Path(__file__).parents[1] / "examples/ptncn-example-learner"
CHECKS = [
    check
    for name, check in vars(test_contract).items()
    if name.startswith("test_") and list(inspect.signature(check).parameters) == ["name"]
]


@pytest.fixture
def example(monkeypatch, tmp_path):
    """The example package as pip would install it, found through its metadata."""
    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())["project"]
    info = tmp_path / f"ptncn_example_learner-{project['version']}.dist-info"
    info.mkdir()
    info.joinpath("METADATA").write_text(f"Name: {project['name']}\nVersion: {project['version']}\n")
    ((group, points),) = project["entry-points"].items()
    lines = [f"{name} = {where}" for name, where in points.items()]
    info.joinpath("entry_points.txt").write_text("\n".join([f"[{group}]", *lines, ""]))
    monkeypatch.syspath_prepend(str(EXAMPLE / "src"))
    monkeypatch.syspath_prepend(str(tmp_path))
    registry = Registry[Entry]("learner", group)  # the global one has already loaded its entry points
    LEARNERS.add("linear-ar", registry.find("linear-ar"))
    yield describe("linear-ar")
    LEARNERS.remove("linear-ar")


def sines(steps=200):
    """(T, 2, 2) four sines of their own speed and phase."""
    time = torch.arange(steps)[:, None, None]
    return 0.5 + 0.4 * torch.sin(torch.tensor([[0.3, 0.5], [0.7, 0.2]]) * time + torch.tensor([[0, 1], [2, 3]]))


def error_of(learner, xs):
    state = learner.begin(xs.shape[1])
    errors = [learner.step(x, state).errors[0].square().sum().item() for x in xs]
    return float(np.mean(errors[-50:]))


def test_a_learner_of_another_package_is_found_made_and_learns(example):
    assert example.label == "linear AR"
    learner = make("linear-ar", input_size=2, hidden_size=4, output="gaussian", lr=1.0)
    copy = make("copy", input_size=2, output="gaussian")
    assert error_of(learner, sines(2000)) < 0.5 * error_of(copy, sines(2000))


@pytest.mark.usefixtures("example")
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_a_learner_of_another_package_passes_the_contract(check):
    check("linear-ar")


@pytest.mark.usefixtures("example")
def test_a_learner_of_another_package_is_saved_and_loaded(tmp_path):
    test_contract.test_a_run_saved_mid_sequence_continues_bit_for_bit("linear-ar", "float64", 7, tmp_path)


def test_the_contract_has_its_checks():
    assert len(CHECKS) > 15


@pytest.fixture
def counts():
    """Counts with a rate: the error unit is prediction − observation, as for every distribution."""
    poisson = Distribution(
        "poisson",
        mean=torch.exp,
        nll=lambda logits, x: (torch.exp(logits) - x * logits).sum(-1),
        to_logits=lambda mean, least: torch.log(mean.clamp_min(1e-3)),
        sample=lambda mean, generator: torch.poisson(mean, generator=generator),
        metrics=("mae",),
    )
    DISTRIBUTIONS.add("poisson", poisson)
    yield torch.poisson(3 * sines(60), generator=torch.Generator().manual_seed(0))
    DISTRIBUTIONS.remove("poisson")


@pytest.mark.parametrize("name", ["ptncn", "lstm-bptt", "gru-snap1", "lru-rtrl", "esn-ridge", "copy"])
def test_every_kind_of_learner_takes_a_new_distribution(name, counts, tmp_path):
    learner = make(name, input_size=2, hidden_size=6, output="poisson")
    _, state = run(learner, counts[:30], learn=True)
    ptncn.save(tmp_path / "run", learner, state)
    loaded, loaded_state, _ = ptncn.load(tmp_path / "run")
    for x in counts[30:]:
        out, again = learner.step(x, state), loaded.step(x, loaded_state)
        assert torch.equal(out.prediction, again.prediction)
        torch.testing.assert_close(out.prediction, torch.exp(out.logits))


def test_the_gradient_of_a_new_distribution_is_that_of_its_likelihood(counts):
    meter = GradientMeter(make("lstm-rtrl", input_size=2, hidden_size=4, output="poisson", dtype="float64", lr=1e-15))
    run(meter, counts[:10].double(), learn=True)
    assert meter.compute()["cosine"] == pytest.approx(1, abs=1e-9)


def test_the_network_dreams_in_a_new_distribution(counts):
    network = ptncn.PTNCN(2, [6], output="poisson")
    _, state = run(network, counts, learn=True)
    dreamt = network.dream(state, 20, sample=True)
    assert torch.equal(dreamt, dreamt.round())
    assert (dreamt >= 0).all()


class AbsoluteError(FrameMean):
    name = "mae"

    def per_frame(self, step, x):
        return (step.prediction.double() - x).abs().mean(-1)


@pytest.fixture
def absolute():
    METRICS.add("mae", Metric(AbsoluteError, "MAE"))
    yield
    METRICS.remove("mae")


@pytest.mark.usefixtures("absolute")
def test_a_new_metric_is_measured_by_name_and_by_sequence(counts):
    learner = make("copy", input_size=2, output="poisson")
    by_sequence = SequenceErrors("mae")
    whole = evaluate(learner, [counts], [make_metric("mae")])["mae"]
    run(learner, counts, meters=[by_sequence])
    by_sequence.close()
    by_hand = (counts[1:] - counts[:-1].clamp_min(1e-3)).abs().mean().item()
    assert whole == pytest.approx(by_hand, rel=1e-5)
    assert by_sequence.by_sequence().mean() == pytest.approx(by_hand, rel=1e-5)


@pytest.fixture
def counted(counts, absolute):
    """A dataset of counts, whose observations have the new distribution."""

    def load(dataset, split):
        return ArraySequences(f"counted/{split}", counts.numpy()[dataset.splits.index(split) :].swapaxes(0, 1))

    about = "two sequences of counts"
    DATASETS.add(
        "counted", Dataset(name="counted", label="counts", about=about, kind="other", output="poisson", load=load)
    )
    yield "counted"
    DATASETS.remove("counted")


def invoke(*arguments):
    return call(*arguments).stdout


def test_a_new_distribution_and_a_new_metric_go_from_the_data_to_the_report(counted, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert set(json.loads(invoke("train", "gru-bptt", counted, "--units", "4", "--json"))) == {"mae"}
    assert json.loads(invoke("eval", "trained/network.safetensors", counted, "--json"))["mae"] > 0
    rows = ("--learners", "ptncn,copy", "--data", counted)
    cells = json.loads(invoke("reproduce", "prediction", "--scale", "smoke", *rows, "--json"))
    assert set(cells["test_mae"]) == {"ptncn", "copy"}
    invoke("report", "results", "--out", "report")
    assert "**Test MAE, counts**" in Path("report/prediction.md").read_text()


def test_a_learner_of_another_package_goes_through_every_command(example, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PTNCN_DATA", str(tmp_path / "empty"))
    assert json.loads(invoke("learners", "--json"))["linear-ar"]["about"] == example.about
    options = ("--sequences", "20", "--canvas", "28", "--units", "2", "--json")
    assert json.loads(invoke("train", "linear-ar", "digits", *options))["se"] > 0
    config = json.loads(invoke("tune", "linear-ar", "mnist", "--scale", "smoke", "--trials", "1", "--json"))
    assert set(config["options"]) == {"lr"}
    rows = ("--learners", "linear-ar", "--data", "mnist", "--configs", "configs")
    cells = json.loads(invoke("reproduce", "prediction", "--scale", "smoke", *rows, "--json"))
    assert list(cells["test_se"]) == ["linear-ar"]
    invoke("report", "results", "--out", "report")
    assert example.label in Path("report/prediction.md").read_text()
    Path("feed.csv").write_text("load\n" + "".join(f"{t % 5}\n" for t in range(30)))
    invoke("stream", "feed.csv", "--learner", "linear-ar", "--out", "out.csv", "--quiet")
    assert len(Path("out.csv").read_text().splitlines()) == 31


@pytest.fixture
def adadelta():
    GRADIENT_OPTIMIZERS.add("adadelta", torch.optim.Adadelta)
    yield "adadelta"
    GRADIENT_OPTIMIZERS.remove("adadelta")


def test_a_new_optimiser_is_an_option_of_the_commands(adadelta, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    options = ("--sequences", "20", "--canvas", "28", "--units", "2", "--json")
    assert json.loads(invoke("train", "gru-tbptt", "digits", *options, "-o", f"optimizer={adadelta}"))["se"] > 0


@pytest.mark.parametrize("name", ["lstm-tbptt", "rnn-immediate", "esn-sgd"])
def test_a_new_optimiser_moves_weights_and_is_saved_with_its_moments(name, adadelta, tmp_path):
    learner = make(name, input_size=2, hidden_size=4, optimizer=adadelta, lr=1.0)
    before = learner.readout.weight.clone()
    run(learner, sines(30), learn=True)
    assert not torch.equal(learner.readout.weight, before)
    ptncn.save(tmp_path / "run", learner)
    loaded = ptncn.load(tmp_path / "run").learner
    ours, theirs = (run(each, sines(30), learn=True).predictions for each in (learner, loaded))
    assert torch.equal(ours, theirs)


class SignDescent(Optimizer):
    """weight −= lr · sign of the gradient; PyTorch takes every step, since the kernel has no such rule."""

    def move(self, weight, moments, pre, post, lr):
        weight.sub_(lr * (pre.T @ post).sign())


@pytest.fixture
def signs():
    OPTIMIZERS.add("signs", SignDescent)
    yield "signs"
    OPTIMIZERS.remove("signs")


def test_a_new_optimiser_of_the_network_learns_and_is_trained_saved_and_tested(signs, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    options = {"output": "gaussian", "optimizer": signs, "lr": 1e-3, "rescale": "none", "max_norm": 30.0}
    network = make("ptncn", input_size=2, hidden_sizes=[4], **options)
    before = {name: weight.clone() for name, weight in network.named_parameters()}
    state = network.begin(2)
    network.step(sines()[0], state)
    network.step(sines()[1], state)
    moved = (network.get_parameter("W1") - before["W1"]).abs()
    assert torch.allclose(moved[moved > 0], torch.tensor(1e-3), rtol=1e-3)
    ptncn.save("run", network, state)
    again = ptncn.load("run")
    for x in sines(20)[2:]:
        assert torch.equal(network.step(x, state).prediction, again.learner.step(x, again.state).prediction)
    small = ["--units", "4", "--sequences", "20", "--canvas", "28", "--json"]
    tested = json.loads(invoke("train", "ptncn", "digits", "-o", "optimizer=signs", *small))
    assert json.loads(invoke("eval", "trained/network.safetensors", "digits", "--json"))
    assert tested["se"] > 0


@pytest.mark.usefixtures("example")
def test_a_learner_of_another_package_is_timed_by_the_benchmark():
    plan = make_plan(quick=True, shapes=["2-1x4@1"], names=["linear-ar"], seconds=0.01)
    rows, skipped = measure(plan.shapes[0], plan.cases, plan.seconds, min_samples=1)
    assert "linear-ar" in {row["what"] for row in rows}
    assert not skipped


def test_names_that_are_taken_stay_as_they_are():
    with pytest.raises(ValueError, match="learner 'ptncn' is registered already"):
        LEARNERS.add("ptncn", describe("copy"))
    assert math.isfinite(make("ptncn", input_size=2, hidden_size=3).lr)
