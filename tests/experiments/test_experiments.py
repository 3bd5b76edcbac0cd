"""The experiments: sizes, rows, options and cells."""

import json
import math
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from ptncn.cli.reproduce import mean_cells
from ptncn.data import DATASETS, ArraySequences, open_splits
from ptncn.experiments import EXPERIMENTS
from ptncn.experiments.complexity import exponent
from ptncn.experiments.config import SCALES, VIDEO
from ptncn.experiments.continual import phased_run
from ptncn.experiments.one_shot import with_sgd
from ptncn.experiments.phases import stable
from ptncn.experiments.prediction import future_errors
from ptncn.experiments.run import TUNED, RunSpec, options_for
from ptncn.learners import make
from ptncn.learners.registry import describe, names
from ptncn.records import Record, read_record


@pytest.fixture(autouse=True)
def no_data(tmp_path, monkeypatch):
    monkeypatch.setenv("PTNCN_DATA", str(tmp_path / "empty"))


@pytest.mark.parametrize("name", EXPERIMENTS.names())
def test_every_experiment_has_all_scales_and_numbers_of_the_paper_for_rows_it_runs(name):
    experiment = EXPERIMENTS.find(name)
    assert set(experiment.seeds) == set(SCALES)
    for rows in experiment.paper.values():
        assert set(rows) <= set(experiment.all_rows())
    for row in experiment.all_rows():
        assert experiment.row(row).label


def test_an_unknown_experiment_lists_the_known_ones():
    with pytest.raises(ValueError, match=r"did you mean 'zero-shot'.*prediction, continual"):
        EXPERIMENTS.find("zeroshot")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"scale": "huge"}, "choose one of: smoke, laptop, paper"),
        ({"rows": ["lstm-btpp"]}, "did you mean 'lstm-bptt'"),
        ({"data": ["cifar"]}, "choose one of: mnist, notmnist"),
    ],
)
def test_unknown_names_list_the_known_ones(arguments, message):
    with pytest.raises(ValueError, match=message):
        EXPERIMENTS.find("prediction").specs(**{"scale": "smoke", **arguments})


def test_discrete_has_its_own_rows():
    with pytest.raises(ValueError, match=r"did you mean 'sign'.*sign, tanh, cosine, untrained"):
        EXPERIMENTS.find("discrete").specs("smoke", rows=["signs"])


def test_any_learner_of_the_registry_can_be_a_row():
    specs = EXPERIMENTS.find("zero-shot").specs("smoke", rows=["rhn-kf-rtrl"], seeds=range(2))
    assert [(spec.row, spec.seed) for spec in specs[:2]] == [("rhn-kf-rtrl", 0), ("rhn-kf-rtrl", 1)]


@pytest.mark.parametrize("kind", ["video", "text", "other"])
@pytest.mark.parametrize("name", names())
def test_every_learner_has_options_that_it_takes(name, kind):
    hidden = [3] if name == "ptncn" else 3
    make(name, input_size=4, hidden_size=hidden, **describe(name).default_options(kind))


def spec(learner, data, config=VIDEO["smoke"], **others):
    defaults = {"experiment": "prediction", "scale": "smoke", "row": learner, "seed": 0, **others}
    return RunSpec(learner=learner, data=data, config=config, **defaults)


def test_tuned_values_override_defaults_and_serve_data_of_the_same_kind(tmp_path):
    (tmp_path / "gru-bptt-mnist.json").write_text('{"options": {"lr": 0.005}}')
    options, tuned = options_for(spec("gru-bptt", "notmnist", tuned=tmp_path))
    assert options["lr"] == 0.005
    assert options["clip"] == 1.0
    assert tuned.endswith("gru-bptt-mnist.json")
    assert options_for(spec("gru-bptt", "ptb", tuned=tmp_path))[1] is None
    one_at_a_time = replace(VIDEO["smoke"], batch_size=1)
    assert options_for(spec("gru-bptt", "mnist", one_at_a_time, tuned=tmp_path))[1] is None
    (tmp_path / "gru-bptt-continual.json").write_text('{"options": {"lr": 0.002}}')
    assert options_for(spec("gru-bptt", "mnist", one_at_a_time, tuned=tmp_path))[0]["lr"] == 0.002


def test_the_tuned_values_of_the_package_do_not_depend_on_the_current_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert options_for(spec("ptncn", "mnist"))[1] == "tuned/ptncn-mnist.json"
    for file in TUNED.glob("*.json"):
        assert json.loads(file.read_text())["options"]


def test_a_variant_that_does_not_inherit_ignores_the_learners_defaults():
    (best,) = EXPERIMENTS.find("prediction").specs("laptop", rows=["ptncn-best"], data=["mnist"])
    assert set(best.learner_options) == {"preset", "hidden_size", "seed", "output"}


def test_options_and_sizes_of_the_command_override_all_others_and_are_in_the_record():
    (changed,) = EXPERIMENTS.find("prediction").specs(
        "paper",
        rows=["ptncn"],
        data=["mnist"],
        config={"epochs": 3},
        options={"hidden_sizes": [7], "lr": 0.5},
        arguments=("--epochs", "3", "--option", "hidden_sizes=[7]", "--option", "lr=0.5"),
    )
    assert changed.values()["run_config"]["epochs"] == 3
    assert changed.learner_options["hidden_sizes"] == [7]
    assert changed.learner_options["lr"] == 0.5
    assert "hidden_size" not in changed.learner_options
    assert changed.command().endswith("--epochs 3 --option 'hidden_sizes=[7]' --option lr=0.5")


def test_sizes_that_an_experiment_does_not_have_are_refused():
    with pytest.raises(ValueError, match="--epochs does not apply to discrete"):
        EXPERIMENTS.find("discrete").specs("smoke", config={"epochs": 3})


@pytest.mark.parametrize(
    "file", ["prediction/ptncn-mnist-0", "prediction/gru-bptt-ptb-0", "zero-shot/lstm-sab-mnist-to-notmnist-0"]
)
def test_runs_recorded_by_earlier_versions_have_the_same_values(file):
    """Folders of checkpoints are named after these: a run under way must find its own."""
    known = read_record(Path(__file__).parents[2] / f"results/laptop/{file}.json")
    experiment = EXPERIMENTS.find(known.experiment)
    (spec,) = experiment.specs(known.scale, rows=[known.row], data=[known.data], seeds=[known.seed])
    ours, theirs = (stable(config).copy() for config in (experiment.values(spec), known.config))
    for config in (ours, theirs):
        config.get("training", config).pop("source")  # there is no data here
    assert ours == theirs


@pytest.mark.parametrize("name", [name for name, entry in DATASETS.items() if entry.stand_in])
def test_embedded_data_replaces_missing_data(name):
    splits = open_splits(name, sequences=10, valid=10, test=10)
    assert splits.stand_ins == {name: DATASETS[name].stand_in}
    assert DATASETS[name].stand_in in spec("copy", name).notes()[0]


def test_naming_a_dataset_does_not_read_it(tmp_path, monkeypatch):
    """Its files are there but empty: they would be an error if they were read."""
    monkeypatch.setenv("PTNCN_DATA", str(tmp_path))
    for file in DATASETS["mnist"].files:
        file.place.parent.mkdir(exist_ok=True)
        file.place.touch()
    splits = open_splits("mnist")
    assert (splits.source, splits.kind, splits.metrics) == ("mnist", "video", ("ce", "se"))
    with pytest.raises(ValueError, match="SHA-256"):
        _ = splits.train


def test_exact_rtrl_fits_where_the_papers_size_does_not():
    with pytest.raises(MemoryError):
        make("lstm-rtrl", input_size=4096, hidden_size=1000, memory_limit=16e9)
    for config in (VIDEO["laptop"], VIDEO["paper"]):
        make("lstm-rtrl", input_size=4096, hidden_size=config.exact_units, memory_limit=16e9 / config.batch_size)


def test_continual_learning_is_one_pass_one_video_at_a_time_with_a_row_before_any():
    (spec,) = EXPERIMENTS.find("continual").specs("smoke", rows=["ptncn"], data=["digits+letters"], seeds=[0])
    phases = phased_run(spec).phases
    assert [each.name for each in phases] == [
        *("0/digits", "0/letters"),
        *("train/digits", "1/digits", "1/letters"),
        *("train/letters", "2/digits", "2/letters"),
    ]
    assert all(each.learn == each.name.startswith("train") for each in phases)
    assert all(each.batch_size == 1 for each in phases if each.learn)


@pytest.mark.parametrize("name", ["ptncn", "lstm-bptt", "lstm-sab", "lstm-rtrl"])
def test_one_shot_learning_starts_from_the_same_weights_under_plain_sgd(name):
    hidden = [5] if name == "ptncn" else 5
    learner = make(name, input_size=6, hidden_size=hidden, **describe(name).default_options("video"))
    fresh = with_sgd(learner)
    assert fresh.options()["optimizer"] == "sgd"
    assert fresh.options()["lr"] == 0.01
    for name, value in learner.state_dict().items():
        assert torch.equal(fresh.state_dict()[name], value)


class Oracle:
    """A learner that has seen the videos before."""

    input_size = 4

    def __init__(self, videos):
        self.videos = videos

    def begin(self, batch_size):
        return SimpleNamespace(batch_size=batch_size)

    def step(self, x, state, **others):
        return SimpleNamespace(prediction=x)

    def dream(self, state, steps):
        return self.videos[:, -steps:].transpose(0, 1)


def test_frames_far_ahead_are_predicted_from_those_before():
    videos = torch.tensor([[[0.0, 1.0, 1.0, 0.0]] * 12] * 3)
    data = ArraySequences("videos", list(videos.numpy()))
    assert future_errors(Oracle(videos), data, 3)["se"] == 0.0
    mistaken = future_errors(Oracle(1 - videos), data, 3)
    assert mistaken["se"] == 4.0
    assert mistaken["ce"] == pytest.approx(-4 * math.log(1e-6), rel=0.01)


def test_an_exponent_is_the_slope_of_the_larger_half():
    sizes = [8, 16, 32, 64]
    assert exponent(sizes, [100 + n**3 for n in sizes]) < 3
    assert math.isclose(exponent(sizes, [n**3 for n in sizes]), 3.0)


def test_a_table_shows_means_over_trials():
    experiment = EXPERIMENTS.find("discrete")
    base = {"experiment": "discrete", "data": "noisy-cosine", "scale": "smoke", "status": "finished"}
    records = [
        Record(row="sign", seed=seed, metrics={"prequential_se": value}, **base)
        for seed, value in enumerate([1.0, 3.0])
    ]
    assert mean_cells(experiment, records) == {"prequential_se": {"sign": 2.0}}
    assert np.isclose(experiment.paper["prequential_se"]["tanh"][""], 0.0169)
