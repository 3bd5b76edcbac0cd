"""The experiments themselves: their settings, rosters, options and cells."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from ptncn.experiments import NAMES, find_experiment
from ptncn.experiments.base import Job
from ptncn.experiments.complexity import exponent
from ptncn.experiments.continual import plan as continual_plan
from ptncn.experiments.models import default_options, options_for
from ptncn.experiments.one_shot import with_sgd
from ptncn.experiments.reproduce import choose_jobs, make_table
from ptncn.experiments.setting import LAPTOP_VIDEO, PAPER_VIDEO, SCALES, VIDEO
from ptncn.experiments.tasks import STAND_INS, find_source, open_task
from ptncn.learners import make
from ptncn.learners.registry import names
from ptncn.records import Record


@pytest.fixture(autouse=True)
def no_data(tmp_path, monkeypatch):
    monkeypatch.setenv("PTNCN_DATA", str(tmp_path / "empty"))


@pytest.mark.parametrize("name", NAMES)
def test_every_experiment_has_all_scales_and_numbers_of_the_paper_for_models_it_runs(name):
    experiment = find_experiment(name)
    assert set(experiment.seeds) == set(SCALES)
    rosters = {model for roster in experiment.models.values() for model in roster}
    for rows in experiment.paper.values():
        assert set(rows) <= rosters


def test_an_unknown_experiment_lists_what_there_is():
    with pytest.raises(ValueError, match=r"did you mean 'zero-shot'.*prediction, continual"):
        find_experiment("zeroshot")


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        ({"scale": "huge"}, "choose one of: smoke, laptop, paper"),
        ({"models": ["lstm-btpp"]}, "did you mean 'lstm-bptt'"),
        ({"data": ["cifar"]}, "choose one of: mnist, notmnist"),
    ],
)
def test_unknown_names_list_what_there_is(wrong, complaint):
    with pytest.raises(ValueError, match=complaint):
        choose_jobs(find_experiment("prediction"), **{"scale": "smoke", **wrong})


def test_discrete_has_models_of_its_own():
    with pytest.raises(ValueError, match=r"did you mean 'sign'.*sign, tanh, cosine, untrained"):
        choose_jobs(find_experiment("discrete"), "smoke", models=["signs"])


def test_any_learner_of_the_registry_may_take_part():
    jobs = choose_jobs(find_experiment("zero-shot"), "smoke", models=["rhn-kf-rtrl"], seeds=2)
    assert [(job.model, job.seed) for job in jobs[:2]] == [("rhn-kf-rtrl", 0), ("rhn-kf-rtrl", 1)]


@pytest.mark.parametrize("kind", ["video", "text", "other"])
@pytest.mark.parametrize("model", names())
def test_every_learner_has_options_that_it_takes(model, kind):
    hidden = [3] if model == "ptncn" else 3
    make(model, input_size=4, hidden_size=hidden, **default_options(model, kind))


def test_tuned_values_go_before_defaults_and_serve_data_of_the_same_kind(tmp_path):
    (tmp_path / "gru-bptt-mnist.json").write_text('{"options": {"lr": 0.005}}')
    options, tuned = options_for("gru-bptt", "video", "notmnist", VIDEO["smoke"], 0, tmp_path)
    assert options["lr"] == 0.005
    assert options["clip"] == 1.0
    assert tuned.endswith("gru-bptt-mnist.json")
    assert options_for("gru-bptt", "text", "ptb", VIDEO["smoke"], 0, tmp_path)[1] is None
    one_at_a_time = replace(VIDEO["smoke"], batch_size=1)
    assert options_for("gru-bptt", "video", "mnist", one_at_a_time, 0, tmp_path)[1] is None
    (tmp_path / "gru-bptt-continual.json").write_text('{"options": {"lr": 0.002}}')
    assert options_for("gru-bptt", "video", "mnist", one_at_a_time, 0, tmp_path)[0]["lr"] == 0.002


@pytest.mark.parametrize("name", STAND_INS)
def test_embedded_data_stands_in_for_what_is_not_there_and_says_so(name):
    assert find_source(name) == STAND_INS[name]
    task = open_task(name, sequences=10, valid=10, test=10)
    assert STAND_INS[name] in task.notes[0]


def test_exact_rtrl_fits_where_the_papers_does_not():
    with pytest.raises(MemoryError):
        make("lstm-rtrl", input_size=4096, hidden_size=1000, memory_limit=16e9)
    for setting in (LAPTOP_VIDEO, PAPER_VIDEO):
        make("lstm-rtrl", input_size=4096, hidden_size=setting.exact_units, memory_limit=16e9 / setting.batch_size)


def test_continual_learning_is_one_pass_one_video_at_a_time_with_a_row_before_any():
    plan = continual_plan(Job("continual", "smoke", "ptncn", "digits+letters", 0))
    assert [each.name for each in plan.passes] == [
        *("0/digits", "0/letters"),
        *("train/digits", "1/digits", "1/letters"),
        *("train/letters", "2/digits", "2/letters"),
    ]
    assert all(each.learn == each.name.startswith("train") for each in plan.passes)
    assert all(each.batch_size == 1 for each in plan.passes if each.learn)


@pytest.mark.parametrize("model", ["ptncn", "lstm-bptt", "lstm-sab", "lstm-rtrl"])
def test_one_shot_learning_starts_from_the_same_weights_under_plain_sgd(model):
    hidden = [5] if model == "ptncn" else 5
    learner = make(model, input_size=6, hidden_size=hidden, **default_options(model, "video"))
    fresh = with_sgd(learner)
    assert fresh.options()["optimizer"] == "sgd"
    assert fresh.options()["lr"] == 0.01
    for name, value in learner.state_dict().items():
        assert torch.equal(fresh.state_dict()[name], value)


def test_an_exponent_is_the_slope_of_the_larger_half():
    sizes = [8, 16, 32, 64]
    assert exponent(sizes, [100 + n**3 for n in sizes]) < 3
    assert math.isclose(exponent(sizes, [n**3 for n in sizes]), 3.0)


def test_a_table_holds_means_over_trials():
    experiment = find_experiment("discrete")
    base = {"experiment": "discrete", "data": "noisy-cosine", "scale": "smoke", "status": "finished"}
    records = [
        Record(model="sign", seed=seed, metrics={"prequential_se": value}, **base)
        for seed, value in enumerate([1.0, 3.0])
    ]
    assert make_table(experiment, records) == {"prequential_se": {"sign": 2.0}}
    assert np.isclose(experiment.paper["prequential_se"]["tanh"][""], 0.0169)
